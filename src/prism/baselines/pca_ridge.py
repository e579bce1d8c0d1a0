"""PCA of shapes, a cubic course of the scores over age, and ridge regression back to age."""

from __future__ import annotations

from dataclasses import dataclass

from prism.baselines._door import query_rows, training_rows
from prism.baselines.age_ridge import COMPONENTS, AgeRidge
from prism.cohort import Correspondence
from prism.course import Course
from prism.typing import Shapes, Times


@dataclass(frozen=True)
class PCARidge:
    """Principal components with a mean course and an age.

    Attributes:
        shape: (M, n) of one shape.
        ridge: Principal axes of the shapes, and their way back to age.
        course: Cubic polynomial in t of the scores.
    """

    shape: tuple[int, ...]
    ridge: AgeRidge
    course: Course

    @classmethod
    def fit(cls, correspondence: Correspondence, components: int = COMPONENTS) -> PCARidge:
        """Fit; gaps are filled at first from a cubic course of every coordinate over age.

        Args:
            correspondence: Training shapes with known ages.
            components: Most principal axes; fewer where the data have fewer.
        """
        rows, t = training_rows(correspondence)
        start = Course.fit(rows, t).fill(rows, t)
        ridge = AgeRidge.fit(rows, start, t, correspondence.visits.subject, components)
        course = Course.fit(ridge.subspace.scores(rows), t)
        return cls(correspondence.points.shape[1:], ridge, course)

    def mean_shapes(self, t: Times) -> Shapes:
        """Mean shape at times t (N,), (N, M, n)."""
        return self.ridge.subspace.shapes(self.course(t)).reshape(-1, *self.shape)

    def age(self, correspondence: Correspondence) -> Times:
        """Age of every shape, (N,); gaps are filled from the points that were observed."""
        return self.ridge(query_rows(correspondence, self.shape))
