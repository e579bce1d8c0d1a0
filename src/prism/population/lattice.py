"""Evaluating many shapes at the cost of a few times.

All shapes share the template points and time is one number, so a step need not run the networks at
every shape's own time. It runs them on a lattice of times, moved by a random offset at every step,
and reads the shapes off by cubic interpolation: the networks' cost no longer grows with the shapes
in a step, and the error is of fourth order in the lattice's spacing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class TimeLattice:
    """Times at which to evaluate, and how to read the shapes off them.

    Attributes:
        times: (k,) where the networks are evaluated.
        weights: (b, k) interpolation weights of every shape, rows summing to one; None where the
            lattice is the shapes' own times.
        spacing: Between neighbours in time; 0 where the lattice is the shapes' own times.
    """

    times: Tensor
    weights: Tensor | None
    spacing: float

    @classmethod
    def over(cls, s: Tensor, offset: Tensor, size: int) -> TimeLattice:
        """Cover times s (b,) in [0, 1] by `size` equidistant times; 0 takes s itself.

        Args:
            s: (b,) normalised times of the shapes.
            offset: () in [0, 1), the lattice's shift in units of its spacing.
            size: Lattice points, at least 6.
        """
        if size == 0:
            return cls(s, None, 0.0)
        spacing = 1 / (size - 4)
        place = s / spacing + 2 - offset  # lattice point k lies at (k - 2 + offset) * spacing
        index = torch.arange(size, device=s.device)
        return cls((index - 2 + offset) * spacing, cubic_weights(place, size), spacing)

    def values(self, network: Callable[[Tensor, Tensor], Tensor], p: Tensor) -> Tensor:
        """Evaluate a network (p, s) -> R^c at the lattice's times, (k, m, c)."""
        return network(p, self.times[:, None])

    def read(self, values: Tensor) -> Tensor:
        """What every shape has, (b, m, c), by values (k, m, c) at the lattice's times."""
        if self.weights is None:
            return values
        return (self.weights @ values.flatten(1)).unflatten(1, values.shape[1:])


def cubic_weights(place: Tensor, size: int) -> Tensor:
    """Lagrange weights (b, size) of the four lattice points around each place in index units."""
    first = place.floor().clamp(1, size - 3) - 1
    u = place - first  # between 1 and 2 inside the lattice
    a, b, c, d = u, u - 1, u - 2, u - 3
    four = torch.stack([-b * c * d / 6, a * c * d / 2, -a * b * d / 2, a * b * c / 6], dim=-1)
    column = first.long()[:, None] + torch.arange(4, device=place.device)
    return place.new_zeros(len(place), size).scatter(1, column, four)
