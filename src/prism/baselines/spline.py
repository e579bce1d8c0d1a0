"""Every coordinate on its own: a spline mean over age with a variance that changes with age."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prism.baselines._door import known_times, query_rows, training_rows
from prism.cohort import Correspondence
from prism.course import Course, local_mean
from prism.typing import Floats, Shapes, Times

GRID = 33  # ages at which the variance is tabulated
TOP_SHARE = 0.05
LEAST_STD = 1e-9  # as a share of the shape's size


@dataclass(frozen=True)
class PointwiseSpline:
    """A growth chart of every coordinate.

    Attributes:
        shape: (M, n) of one shape.
        course: Mean of the coordinates; its knots are chosen by generalised cross-validation.
        t_grid: (T,) ages.
        std: (T, M n) standard deviation of the coordinates at these ages.
    """

    shape: tuple[int, ...]
    course: Course
    t_grid: Times
    std: Floats

    @classmethod
    def fit(cls, correspondence: Correspondence) -> PointwiseSpline:
        """Fit to normal shapes with known ages; missing points take no part."""
        rows, t = training_rows(correspondence)
        course = Course.fit_smooth(rows, t)
        t_grid = np.linspace(t.min(), t.max(), GRID)
        free = max(1 - len(course.coefficients) / len(t), 1 / len(t))
        variance = local_mean((rows - course(t)) ** 2, t, t_grid) / free
        least = LEAST_STD * np.ptp(correspondence.template, axis=0).max()
        std = np.maximum(np.sqrt(variance), least)
        return cls(correspondence.points.shape[1:], course, t_grid, std)

    def mean_shapes(self, t: Times) -> Shapes:
        """Mean shape at times t (N,), (N, M, n)."""
        return self.course(t).reshape(-1, *self.shape)

    def score(self, correspondence: Correspondence) -> Floats:
        """Mean of the largest twentieth of |z| over the observed points, (N,); high is strange.

        |z| of a point is the length of its n coordinates' z-scores for age.
        """
        rows, t = query_rows(correspondence, self.shape), known_times(correspondence)
        z = ((rows - self.course(t)) / self._std(t)).reshape(-1, *self.shape)
        return _top_mean(np.linalg.norm(z, axis=-1))

    def _std(self, t: Times) -> Floats:
        """Standard deviations at t (N,), linear between the tabulated ages, (N, M n)."""
        if np.ptp(self.t_grid) == 0:
            return np.repeat(self.std[:1], len(t), axis=0)
        at = np.interp(t, self.t_grid, np.arange(len(self.t_grid)))
        low = np.minimum(at.astype(int), len(self.t_grid) - 2)
        part = (at - low)[:, None]
        return (1 - part) * self.std[low] + part * self.std[low + 1]


def _top_mean(distance: Floats) -> Floats:
    """Mean (N,) of the largest twentieth of the known distances (N, M) of each row."""
    ordered = -np.sort(-distance, axis=1)  # largest first, NaN last
    known = (~np.isnan(distance)).sum(axis=1)
    top = np.ceil(TOP_SHARE * known).astype(int)
    part = np.arange(distance.shape[1]) < top[:, None]
    return np.where(part, ordered, 0.0).sum(axis=1) / top
