"""Centre, size and orientation of shapes: taken off before registration, put back after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from prism.cohort import SDFSamples
from prism.errors import CohortError
from prism.typing import Floats, Points, Shapes

SIZE_PER_RADIUS = 2.0  # the common size: rms radius 1/2, so that shapes reach to about one


@dataclass(frozen=True)
class Similarity:
    """One similarity a shape, from the user's coordinates to the common ones and back.

    Attributes:
        centre: (N, n) points that come to lie at zero, in the length unit.
        size: (N,) lengths that become one, in the length unit.
        rotation: (N, n, n) rotations applied after centring.
    """

    centre: Points
    size: Floats
    rotation: Floats

    def __len__(self) -> int:
        """Count shapes."""
        return len(self.size)

    def __getitem__(self, rows: slice | np.ndarray) -> Similarity:
        """Select shapes."""
        return Similarity(self.centre[rows], self.size[rows], self.rotation[rows])

    @classmethod
    def joined(cls, parts: Sequence[Similarity]) -> Similarity:
        """Those of the shapes of several, one after the other."""
        names = ("centre", "size", "rotation")
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def to_common(self, y: Shapes) -> Shapes:
        """[Eq. similarity] x = R (y - c) / s of points y (N, P, n)."""
        return (y - self.centre[:, None]) @ self.rotation.mT / self.size[:, None, None]

    def from_common(self, x: Shapes) -> Shapes:
        """Return points x (N, P, n) to the user's coordinates: y = s R' x + c."""
        return self.size[:, None, None] * x @ self.rotation + self.centre[:, None]

    def turned(self, rotation: Floats) -> Similarity:
        """The same, followed by rotations (N, n, n)."""
        return Similarity(self.centre, self.size, rotation @ self.rotation)

    @property
    def mean(self) -> Similarity:
        """One similarity of average centre and size, in the common orientation."""
        n = self.centre.shape[-1]
        return Similarity(self.centre.mean(0)[None], self.size.mean()[None], np.eye(n)[None])


def by_moments(samples: Sequence[SDFSamples]) -> Similarity:
    """Centre of mass and rms radius of each surface; the orientation stays as it is.

    Raises:
        CohortError: A shape has no size.
    """
    clouds = [np.asarray(s.surface, dtype=np.float64) for s in samples]
    centre = np.stack([cloud.mean(axis=0) for cloud in clouds])
    radius = np.array(
        [np.sqrt(((x - c) ** 2).sum(-1).mean()) for x, c in zip(clouds, centre, strict=True)]
    )
    for row in np.flatnonzero(~(radius > 0)):
        raise CohortError(f"shape {row + 1} is a single point.", "Leave it out.")
    n = centre.shape[-1]
    rotation = np.tile(np.eye(n), (len(radius), 1, 1))
    return Similarity(centre, SIZE_PER_RADIUS * radius, rotation)
