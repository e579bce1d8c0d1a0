"""A population tabulated in time at fixed points, for answers in microseconds.

The analysed points are the template's, so all that varies is one number a point: its time.
Tabulating mu, L and their time derivatives once on a grid of knots and interpolating by cubic
Hermite splines replaces every further pass through the networks; the interpolation error is of
fourth order in the distance of the knots.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from prism.errors import QueryError
from prism.fisher import field_and_rate
from prism.gaussian import GaussianField, Population, packed_size, solve_lower
from prism.typing import Floats, Points

KNOTS = 65
CHUNK = 65_536


@dataclass(frozen=True)
class TimeTable:
    """mu, L and their rates at M points and K equidistant times.

    Attributes:
        first: First knot, in the time unit.
        spacing: Distance of two knots.
        value: (M, K, n + k) mu and packed L.
        rate: (M, K, n + k) their time derivatives.
        n: Space dimension.
    """

    first: float
    spacing: float
    value: Tensor
    rate: Tensor
    n: int

    @classmethod
    def of(
        cls, population: Population, p: Points, span: tuple[float, float], knots: int = KNOTS
    ) -> TimeTable:
        """Tabulate a population at points p (M, n) over a span of times."""
        if not span[1] > span[0]:
            raise QueryError(f"the span {span} is empty.", "Give a later end than beginning.")
        device = getattr(population, "device", torch.device("cpu"))
        points = torch.as_tensor(np.asarray(p), dtype=torch.float64, device=device)
        times = torch.linspace(*span, knots, dtype=torch.float64, device=device)
        values, rates = [], []
        with torch.no_grad():
            for part in points.split(max(1, CHUNK // knots)):
                moving = field_and_rate(population, part[:, None], times[None])
                values.append(torch.cat([moving.field.mu, moving.field.L], dim=-1).cpu())
                rates.append(torch.cat([moving.mu_t, moving.L_t], dim=-1).cpu())
        spacing = (span[1] - span[0]) / (knots - 1)
        return cls(span[0], spacing, torch.cat(values), torch.cat(rates), points.shape[-1])

    @property
    def last(self) -> float:
        """Last knot."""
        return self.first + self.spacing * (self.value.shape[1] - 1)

    @property
    def points(self) -> int:
        """Count tabulated points."""
        return len(self.value)

    def at(self, t: Tensor) -> tuple[GaussianField, Tensor]:
        """Field and mu_t at times t (N, M), one a shape and point; clamped to the span.

        An unknown time (NaN) gives an unknown answer.
        """
        place = ((t - self.first) / self.spacing).clamp(0, self.value.shape[1] - 1)
        knot = place.nan_to_num(0.0).long().clamp_max(self.value.shape[1] - 2)
        u = (place - knot)[..., None]
        row = torch.arange(self.points) * self.value.shape[1] + knot
        value, rate = self.value.flatten(0, 1), self.rate.flatten(0, 1) * self.spacing
        a, b, da, db = value[row], value[row + 1], rate[row], rate[row + 1]
        # H(u) = a + u [da + u (3 (b - a) - 2 da - db + u (2 (a - b) + da + db))]
        square, cube = 3 * (b - a) - 2 * da - db, 2 * (a - b) + da + db
        here = a + u * (da + u * (square + u * cube))
        n = self.n
        slope = (da + u * (2 * square + 3 * u * cube))[..., :n] / self.spacing
        return GaussianField(here[..., :n], here[..., n : n + packed_size(n)]), slope

    def nearest_knot(self, d: Tensor) -> Tensor:
        """Time of the knot whose mean lies nearest to displacement d (N, M, n), (N, M)."""
        mu = self.value[..., : self.n]  # (M, K, n)
        best = [
            (mu.square().sum(-1) - 2 * torch.einsum("mkn,bmn->bmk", mu, rows)).argmin(-1)
            for rows in d.split(max(1, 4_000_000 // (mu.shape[0] * mu.shape[1])))
        ]
        return self.first + self.spacing * torch.cat(best).to(d.dtype)

    def information(self, t: Floats) -> Floats:
        """I_mu at times t (N, M), as an array."""
        field, mu_t = self.at(torch.as_tensor(t, dtype=torch.float64))
        return (solve_lower(field.L, mu_t) ** 2).sum(-1).numpy()
