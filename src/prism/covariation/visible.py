"""Residuals of visits, with the field's covariance split into signal and measurement noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

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
        A = lower_root(Sigma - noise[..., None, None] * np.eye(r.shape[-1]))
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


def lower_root(S: Floats) -> Floats:
    """Lower-triangular root of positive matrices (..., n, n), n small; tiny pivots are kept up."""
    n = S.shape[-1]
    least = 1e-12 * np.trace(S, axis1=-2, axis2=-1) + 1e-300
    A = np.zeros_like(S)
    for j in range(n):
        pivot = S[..., j, j] - np.square(A[..., j, :j]).sum(-1)
        A[..., j, j] = np.sqrt(np.maximum(pivot, least))
        for i in range(j + 1, n):
            dot = (A[..., i, :j] * A[..., j, :j]).sum(-1)
            A[..., i, j] = (S[..., i, j] - dot) / A[..., j, j]
    return A


def inverse_positive(Q: Floats) -> tuple[Floats, Floats]:
    """Inverse (..., n, n) and log determinant (...) of positive matrices, by their lower root."""
    n = Q.shape[-1]
    A = lower_root(Q)
    B = np.zeros_like(A)  # A^-1, column by column
    for j in range(n):
        B[..., j, j] = 1 / A[..., j, j]
        for i in range(j + 1, n):
            B[..., i, j] = -(A[..., i, j:i] * B[..., j:i, j]).sum(-1) / A[..., i, i]
    log_det = 2 * sum(np.log(A[..., j, j]) for j in range(n))
    return B.swapaxes(-1, -2) @ B, np.asarray(log_det)
