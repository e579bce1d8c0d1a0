"""An age-blind anomaly score: how far a shape lies from all shapes, under probabilistic PCA."""

from __future__ import annotations

from dataclasses import dataclass

from prism.baselines._door import query_rows, training_rows
from prism.baselines.subspace import Subspace
from prism.cohort import Correspondence
from prism.course import Course
from prism.typing import Floats


@dataclass(frozen=True)
class PPCAScore:
    """Mahalanobis distance under a low-rank plus isotropic covariance of whole shapes.

    Attributes:
        shape: (M, n) of one shape.
        subspace: The law of the shapes.
    """

    shape: tuple[int, ...]
    subspace: Subspace

    @classmethod
    def fit(cls, correspondence: Correspondence, components: int = 20) -> PPCAScore:
        """Fit to normal shapes; ages serve only to fill gaps at first, from a cubic course."""
        rows, t = training_rows(correspondence)
        start = Course.fit(rows, t).fill(rows, t)
        subspace = Subspace.fit_through_gaps(rows, start, components)
        return cls(correspondence.points.shape[1:], subspace)

    def score(self, correspondence: Correspondence) -> Floats:
        """Squared distance a coordinate, (N,), over the observed points; high is strange."""
        return self.subspace.mahalanobis(query_rows(correspondence, self.shape))
