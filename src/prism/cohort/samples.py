"""SDFSamples: what a surface looks like from nearby, and its file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from prism.cohort.files import naming, read_arrays, write_arrays
from prism.errors import CohortError

Singles = NDArray[np.float32]
ARRAYS = ("surface", "normals", "points", "distance")


@dataclass(frozen=True)
class SDFSamples:
    """Points on and around one shape, in the shape's own coordinates.

    Attributes:
        surface: (S, n) points on the surface, uniform by area.
        normals: (S, n) unit outward normals there.
        points: (Q, n) points off the surface: the near band first, then the padded box.
        distance: (Q,) signed distances of `points`, negative inside, in the length unit.
        near: How many of `points` belong to the near band.
        length_unit: Unit of points and distances; empty when not stated.
    """

    surface: Singles
    normals: Singles
    points: Singles
    distance: Singles
    near: int
    length_unit: str = ""

    def __post_init__(self) -> None:
        """Check shapes and finiteness; keep single precision."""
        for name in ARRAYS:
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float32))
        self._check_shapes()
        for name in ARRAYS:
            if not np.isfinite(getattr(self, name)).all():
                raise CohortError(
                    f"{name} holds values that are not finite.", "Sample the shape again."
                )

    def _check_shapes(self) -> None:
        n = self.surface.shape[-1] if self.surface.ndim == 2 else 0
        rows = len(self.points)
        right = n in (2, 3) and self.normals.shape == self.surface.shape
        right = right and self.points.shape == (rows, n) and self.distance.shape == (rows,)
        if not right or not 0 <= self.near <= rows:
            shapes = {name: getattr(self, name).shape for name in ARRAYS}
            raise CohortError(
                f"samples do not fit together: {shapes}, near {self.near}.",
                "Give (S, n) surface points and normals, (Q, n) points and (Q,) distances.",
            )

    @property
    def dimension(self) -> int:
        """Space dimension n."""
        return self.surface.shape[-1]

    @property
    def size(self) -> float:
        """Diagonal of the bounding box of the surface points."""
        return float(np.linalg.norm(np.ptp(self.surface, axis=0)))


def write_samples(samples: SDFSamples, path: Path) -> None:
    """Write samples as .npz: the same samples give the same bytes."""
    arrays = {name: getattr(samples, name) for name in ARRAYS}
    write_arrays(path, {**arrays, "near": samples.near, "length_unit": samples.length_unit})


def read_samples(path: Path) -> SDFSamples:
    """Read samples that `write_samples` wrote."""
    stored = read_arrays(path)
    with naming(path):
        missing = [name for name in (*ARRAYS, "near", "length_unit") if name not in stored]
        if missing:
            raise CohortError(f"{', '.join(missing)} missing.", "Sample the shape again.")
        arrays = {name: stored[name] for name in ARRAYS}
        return SDFSamples(
            **arrays, near=int(stored["near"]), length_unit=str(stored["length_unit"])
        )
