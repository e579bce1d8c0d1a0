"""PCA of shapes, a cubic course of the scores over age, and ridge regression back to age."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prism.baselines._door import query_rows, training_rows
from prism.baselines.course import Course
from prism.baselines.subspace import Subspace
from prism.cohort import Correspondence
from prism.typing import Floats, Shapes, Strings, Times

STRENGTHS = np.logspace(-10, 2, 49)  # of the ridge, in units of the first axis' variance


@dataclass(frozen=True)
class PCARidge:
    """Principal components with a mean course and an age.

    Attributes:
        shape: (M, n) of one shape.
        subspace: Principal axes of the shapes.
        course: Cubic polynomial in t of the scores.
        weights: (k,) age a unit of score.
        intercept: Age of the mean shape.
        strength: Strength of the ridge that was chosen, in units of the first axis' variance.
    """

    shape: tuple[int, ...]
    subspace: Subspace
    course: Course
    weights: Floats
    intercept: float
    strength: float

    @classmethod
    def fit(cls, correspondence: Correspondence, components: int = 20) -> PCARidge:
        """Fit; gaps are filled at first from a cubic course of every coordinate over age.

        Args:
            correspondence: Training shapes with known ages.
            components: Most principal axes; fewer where the data have fewer.
        """
        rows, t = training_rows(correspondence)
        start = Course.fit(rows, t).fill(rows, t)
        subspace = Subspace.fit_through_gaps(rows, start, components)
        scores = subspace.scores(rows)
        strength = _best_strength(scores, t, correspondence.visits.subject)
        weights, intercept = _ridge(scores, t, strength)
        course = Course.fit(scores, t)
        return cls(correspondence.points.shape[1:], subspace, course, weights, intercept, strength)

    def mean_shapes(self, t: Times) -> Shapes:
        """Mean shape at times t (N,), (N, M, n)."""
        return self.subspace.shapes(self.course(t)).reshape(-1, *self.shape)

    def age(self, correspondence: Correspondence) -> Times:
        """Age of every shape, (N,); gaps are filled from the points that were observed."""
        rows = query_rows(correspondence, self.shape)
        return self.intercept + self.subspace.scores(rows) @ self.weights


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
    total = 0.0
    for rows in groups:
        hat = (U[rows] * kept) @ U[rows].T + 1 / len(t)
        out = np.linalg.lstsq(np.eye(len(rows)) - hat, residual[rows], rcond=None)[0]
        total += float(out @ out)
    return total / len(t)
