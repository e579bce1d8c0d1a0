"""Residuals of visits, with the field's covariance split into signal and measurement noise."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from prism.covariation.small import lower_root, parts, whole
from prism.typing import Floats


@dataclass(frozen=True)
class Visible:
    """What was seen of some visits, and how far it could be believed.

    Attributes:
        r: (..., M, n) residuals d - mu; zero where missing.
        A: (..., M, n, n) lower-triangular root of the signal covariance; zero where missing.
        noise: (..., M) variance nu^2 of one coordinate's measurement; one where missing.
        tolerance: Standard deviation below which no residual is believed, in the length unit.
    """

    r: Floats
    A: Floats
    noise: Floats
    tolerance: float

    @classmethod
    def of(cls, r: Floats, Sigma: Floats, noise_share: float, tolerance: float) -> Visible:
        """[Eq. signal-noise] A A' = Sigma - nu^2 1, nu^2 a share of Sigma's least eigenvalue.

        Args:
            r: (..., M, n) residuals; NaN where missing.
            Sigma: (..., M, n, n) the field's covariance.
            noise_share: Between 0 and 1.
            tolerance: See above.
        """
        seen = ~np.isnan(r[..., 0])
        noise = noise_share * least_eigenvalue(Sigma)
        A = whole(lower_root(parts(Sigma - noise[..., None, None] * np.eye(r.shape[-1]))))
        return cls(
            np.nan_to_num(r),
            np.where(seen[..., None, None], A, 0.0),
            np.where(seen, noise, 1.0),
            tolerance,
        )

    def __getitem__(self, index: Any) -> Visible:
        """Select visits, or points with a tuple index."""
        return Visible(self.r[index], self.A[index], self.noise[index], self.tolerance)

    def __len__(self) -> int:
        """Count visits."""
        return len(self.r)

    @cached_property
    def A_parts(self) -> Floats:
        """A with its components first, (n, n, ..., M)."""
        return parts(self.A)

    @cached_property
    def r_parts(self) -> Floats:
        """Residuals with their components first, (n, ..., M)."""
        return parts(self.r, axes=1)

    @property
    def seen(self) -> np.ndarray:
        """(..., M) True where a point was observed."""
        return self.A[..., 0, 0] != 0


def least_eigenvalue(S: Floats) -> Floats:
    """Least eigenvalue of positive matrices (..., n, n), written out for n = 2 and 3."""
    n = S.shape[-1]
    centre = np.trace(S, axis1=-2, axis2=-1) / n
    if n == 2:
        half = 0.5 * np.hypot(S[..., 0, 0] - S[..., 1, 1], 2 * S[..., 0, 1])
        return np.maximum(centre - half, 0.0)
    B = S - centre[..., None, None] * np.eye(3)
    size = np.sqrt(np.square(B).sum((-2, -1)) / 6)
    safe = np.where(size > 0, size, 1.0)
    angle = np.arccos(np.clip(_determinant(B) / (2 * safe**3), -1, 1)) / 3
    # eigenvalues are centre + 2 size cos(angle + 2 pi k / 3); the least has k = 1
    return np.maximum(centre + 2 * size * np.cos(angle + 2 * np.pi / 3), 0.0)


def _determinant(B: Floats) -> Floats:
    a, b, c = B[..., 0, 0], B[..., 0, 1], B[..., 0, 2]
    d, e, f = B[..., 1, 1], B[..., 1, 2], B[..., 2, 2]
    return a * (d * f - e * e) - b * (b * f - c * e) + c * (b * e - c * d)
