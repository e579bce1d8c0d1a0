"""Ridge regression of age on the principal components of shapes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prism.baselines.subspace import Subspace
from prism.typing import Floats, Strings, Times

STRENGTHS = np.logspace(-10, 2, 49)  # of the ridge, in units of the first axis' variance
COMPONENTS = 20
TINY = 1e-9


@dataclass(frozen=True)
class AgeRidge:
    """Age as a linear function of principal components.

    Attributes:
        subspace: Principal axes of the shapes.
        weights: (k,) age a unit of score.
        intercept: Age of the mean shape.
        strength: Strength of the ridge that was chosen, in units of the first axis' variance.
    """

    subspace: Subspace
    weights: Floats
    intercept: float
    strength: float

    @classmethod
    def fit(
        cls, rows: Floats, start: Floats, t: Times, subject: Strings, components: int = COMPONENTS
    ) -> AgeRidge:
        """Fit.

        Args:
            rows: (N, D) coordinates, NaN where missing.
            start: (N, D) the same with the gaps filled, to begin with.
            t: (N,) ages.
            subject: (N,) whose the rows are.
            components: Most principal axes; fewer where the data have fewer.
        """
        subspace = Subspace.fit_through_gaps(rows, start, components)
        scores = subspace.scores(rows)
        strength = _best_strength(scores, t, subject)
        return cls(subspace, *_ridge(scores, t, strength), strength)

    @classmethod
    def none(cls, size: int) -> AgeRidge:
        """Before anything was learned, for rows of this many coordinates."""
        return cls(Subspace.none(size), np.zeros(0), 0.0, 0.0)

    def __call__(self, rows: Floats) -> Times:
        """Ages (N,) of rows (N, D); gaps are filled from what was observed."""
        return self.intercept + self.subspace.scores(rows) @ self.weights

    def gap_error(self, known: np.ndarray) -> float:
        """Standard deviation of what gaps add to the age of a row that shows `known` (D,) alone."""
        variance = self.weights @ self.subspace.gap_covariance(known) @ self.weights
        return float(np.sqrt(max(variance, 0.0)))


def _ridge(scores: Floats, t: Times, strength: float) -> tuple[Floats, float]:
    """Weights (k,) and intercept of t on scores (N, k): (X'X + penalty 1)^-1 X' (t - mean)."""
    centre, X = scores.mean(axis=0), scores - scores.mean(axis=0)
    U, singular, axes = np.linalg.svd(X, full_matrices=False)
    shrunk = _kept(singular, strength) * (U.T @ (t - t.mean()))
    weights = axes.T @ np.divide(shrunk, singular, out=np.zeros_like(shrunk), where=singular > 0)
    return weights, float(t.mean() - centre @ weights)


def _kept(singular: Floats, strength: float) -> Floats:
    """Share (k,) of each direction that the ridge keeps, s^2 / (s^2 + strength s_1^2)."""
    if not singular.size or singular[0] == 0:
        return np.zeros_like(singular)
    return singular**2 / (singular**2 + strength * singular[0] ** 2)


def _best_strength(scores: Floats, t: Times, subject: Strings) -> float:
    """Strength with the least squared error of age, each subject left out in turn."""
    U, singular, _ = np.linalg.svd(scores - scores.mean(axis=0), full_matrices=False)
    names, owner = np.unique(subject, return_inverse=True)
    groups = [np.flatnonzero(owner == i) for i in range(len(names))]
    if len(groups) == 1:
        return float(STRENGTHS[-1])
    errors = [_left_out_error(U, _kept(singular, s), t, groups) for s in STRENGTHS]
    return float(STRENGTHS[int(np.argmin(errors))])


def _left_out_error(U: Floats, kept: Floats, t: Times, groups: list[np.ndarray]) -> float:
    """Mean squared error of the left-out rows, without refitting.

    With the hat matrix H, the residuals of a group left out are (1 - H_gg)^-1 r_g.
    """
    residual = t - t.mean() - U @ (kept * (U.T @ (t - t.mean())))
    alone = np.array([rows[0] for rows in groups if len(rows) == 1], dtype=int)
    free = 1 - 1 / len(t) - (U[alone] ** 2) @ kept
    total = float(np.sum((residual[alone] / np.maximum(free, TINY)) ** 2))
    for rows in groups:
        if len(rows) > 1:
            hat = (U[rows] * kept) @ U[rows].T + 1 / len(t)
            out = np.linalg.lstsq(np.eye(len(rows)) - hat, residual[rows], rcond=None)[0]
            total += float(out @ out)
    return total / len(t)
