"""A subspace of shapes: principal axes, their variances, and one variance for all the rest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prism.typing import Floats

LEAST_SHARE = 1e-12  # axes with less of the first axis' variance are rounding errors
LEAST_REST = 1e-10  # least variance off the subspace, as a share of the mean variance
ROUNDS = 10  # of filling gaps and fitting again
TINY = np.finfo(np.float64).tiny
ROUNDING = 1e-12  # least standard deviation, as a share of the largest coordinate


@dataclass(frozen=True)
class Subspace:
    """Probabilistic PCA: y ~ N(mean, V diag(variances) V' + rest (1 - V V')).

    Attributes:
        mean: (D,) mean of the coordinates.
        axes: (D, k) orthonormal columns V.
        variances: (k,) variance along each axis, falling.
        rest: Variance along every direction off the axes.
    """

    mean: Floats
    axes: Floats
    variances: Floats
    rest: float

    @classmethod
    def fit(cls, rows: Floats, components: int) -> Subspace:
        """Fit to rows (N, D) without gaps; at most `components` axes, fewer where data end."""
        mean = rows.mean(axis=0)
        _, singular, axes = np.linalg.svd(rows - mean, full_matrices=False)
        spectrum = singular**2 / (len(rows) - 1)
        rank = int((spectrum > LEAST_SHARE * spectrum[0]).sum())
        k = min(components, rank, len(rows) - 1)
        rounding = (ROUNDING * np.abs(rows).max()) ** 2
        least = max(LEAST_REST * spectrum.sum() / rows.shape[1], rounding, TINY)
        rest = max(spectrum[k:].sum() / max(rows.shape[1] - k, 1), least)
        return cls(mean, axes[:k].T, np.maximum(spectrum[:k], rest), float(rest))

    @classmethod
    def none(cls, size: int) -> Subspace:
        """No axis at all, of rows of this many coordinates."""
        return cls(np.zeros(size), np.zeros((size, 0)), np.zeros(0), 1.0)

    @classmethod
    def fit_through_gaps(cls, rows: Floats, start: Floats, components: int) -> Subspace:
        """Fit to rows (N, D) with gaps (NaN): from a first filling, fill and fit in turn.

        A gap filled from the mean course alone would break the shape at its edge, and teach the
        subspace such breaks.
        """
        space = cls.fit(start, components)
        for _ in range(ROUNDS if np.isnan(rows).any() else 0):
            space = cls.fit(space.fill(rows), components)
        return space

    def scores(self, rows: Floats) -> Floats:
        """Coordinates (N, k) along the axes of rows (N, D), gaps filled."""
        return (self.fill(rows) - self.mean) @ self.axes

    def shapes(self, scores: Floats) -> Floats:
        """Rows (..., D) with these scores (..., k)."""
        return self.mean + scores @ self.axes.T

    def fill(self, rows: Floats) -> Floats:
        """Rows (N, D) with their gaps (NaN) at the mean, given the known coordinates."""
        filled = rows.copy()
        for i in np.flatnonzero(np.isnan(rows).any(axis=1)):
            gap = np.isnan(rows[i])
            filled[i, gap] = self.shapes(self._expected(rows[i], ~gap))[gap]
        return filled

    def _expected(self, row: Floats, known: np.ndarray) -> Floats:
        """Expected low-rank scores (k,) of one row, given its known coordinates.

        y = mean + W x + e with W = V (variances - rest)^1/2:
        W x has the scores S (V_o' V_o S + rest)^-1 V_o' (y_o - mean_o), S = variances - rest.
        """
        signal = self.variances - self.rest
        V = self.axes[known]
        system = (V.T @ V) * signal + self.rest * np.eye(len(signal))
        return signal * np.linalg.solve(system, V.T @ (row - self.mean)[known])

    def gap_covariance(self, known: np.ndarray) -> Floats:
        """Covariance (k, k) by which scores err whose rows show the coordinates known (D,) alone.

        With G = V_o'V_o and C = (S^-1 + G / rest)^-1 of the low-rank scores given what is known,
        what fills the gaps errs by (1 - G) C (1 - G) + rest (1 - G).
        """
        signal, one = self.variances - self.rest, np.eye(len(self.variances))
        G = self.axes[known].T @ self.axes[known]
        C = self.rest * signal[:, None] * np.linalg.inv(self.rest * one + G * signal)
        return (one - G) @ C @ (one - G) + self.rest * (one - G)

    def mahalanobis(self, rows: Floats) -> Floats:
        """Squared distance (N,) from the mean of the known coordinates, a known coordinate.

        Filled with their expectation, the gaps add nothing: the distance of the full row is then
        the distance of its known part.
        """
        away = self.fill(rows) - self.mean
        scores = away @ self.axes
        off = (away**2).sum(axis=1) - (scores**2).sum(axis=1)
        total = (scores**2 / self.variances).sum(axis=1) + np.maximum(off, 0.0) / self.rest
        return total / (~np.isnan(rows)).sum(axis=1)
