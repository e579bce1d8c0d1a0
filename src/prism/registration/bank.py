"""Samples of all shapes in common coordinates, on the device, and how a step draws from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from prism.cohort import SDFSamples
from prism.errors import CohortError
from prism.registration.similarity import Similarity
from prism.typing import Floats


@dataclass(frozen=True)
class Bank:
    """Samples of N shapes in common coordinates, in single precision.

    Attributes:
        surface: (N, S, 2n) points on the surfaces with their outward normals.
        near: (N, Q, n + 1) points near the surfaces with their signed distances.
        box: (N, R, n + 1) points of the boxes, likewise.
    """

    surface: Tensor
    near: Tensor
    box: Tensor

    @classmethod
    def of(
        cls, samples: Sequence[SDFSamples], similarity: Similarity, device: torch.device
    ) -> Bank:
        """Bring samples to common coordinates; all shapes keep as many as the poorest has."""
        check_samples(samples)
        places = similarity.to_common(_stack([s.surface for s in samples]))
        normals = _stack([s.normals for s in samples]) @ similarity.rotation.mT
        near = _stack([_around(s, slice(0, s.near)) for s in samples])
        box = _stack([_around(s, slice(s.near, None)) for s in samples])
        blocks = [np.concatenate([places, normals], axis=-1)]
        blocks += [_common(block, similarity) for block in (near, box)]
        return cls(*(torch.as_tensor(block, dtype=torch.float32).to(device) for block in blocks))

    def __len__(self) -> int:
        """Count shapes."""
        return len(self.surface)

    @property
    def n(self) -> int:
        """Space dimension."""
        return self.box.shape[-1] - 1


def check_samples(samples: Sequence[SDFSamples]) -> None:
    """Refuse shapes that cannot be registered together."""
    if not len(samples):
        raise CohortError("there is no shape to register.", "Give at least one.")
    for name in ("dimension", "length_unit"):
        found = sorted({str(getattr(s, name)) for s in samples})
        if len(found) > 1:
            raise CohortError(
                f"shapes of different {name} cannot be registered together: {', '.join(found)}.",
                "Bring them to one, or register them apart.",
            )


def _around(samples: SDFSamples, part: slice) -> np.ndarray:
    """(Q, n + 1) points off the surface with their distances."""
    return np.concatenate([samples.points[part], samples.distance[part, None]], axis=-1)


def _common(block: Floats, similarity: Similarity) -> Floats:
    """Points and distances (N, Q, n + 1) in common coordinates."""
    distance = block[..., -1:] / similarity.size[:, None, None]
    return np.concatenate([similarity.to_common(block[..., :-1]), distance], axis=-1)


def _stack(arrays: list[np.ndarray]) -> np.ndarray:
    least = min(len(array) for array in arrays)
    return np.stack([array[:least] for array in arrays])


def window(block: Tensor, rows: Tensor, count: int, draw: torch.Generator) -> Tensor:
    """(B, count, k) samples of the shapes `rows`: neighbours in a list that has no order."""
    size = block.shape[1]
    start = torch.randint(max(size, 1), (len(rows), 1), generator=draw)
    picks = (start + torch.arange(min(count, size))) % max(size, 1)
    return block[rows[:, None].to(block.device), picks.to(block.device)]


def turn(step: int, batch: int, shapes: int, seed: int) -> Tensor:
    """(batch,) shapes of this step: all are visited equally often, in an order of their own."""
    places = torch.arange(step * batch, (step + 1) * batch)
    epochs = places // shapes
    parts = [
        _order(shapes, seed, epoch)[places[epochs == epoch] % shapes]
        for epoch in range(int(epochs[0]), int(epochs[-1]) + 1)
    ]
    return torch.cat(parts)


def _order(shapes: int, seed: int, epoch: int) -> Tensor:
    draw = torch.Generator().manual_seed(seed * 1_000_003 + epoch)
    return torch.randperm(shapes, generator=draw)
