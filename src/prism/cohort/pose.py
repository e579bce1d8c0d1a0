"""Pose of shapes in correspondence: shapes as scanners gave them, laid upon their mean."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from prism.cohort.values import Correspondence
from prism.errors import QueryError
from prism.typing import Floats, Points

Keep = Literal["size", "form"]
ROUNDS, SETTLED = 100, 1e-10


def rotation_onto(a: Points, b: Points) -> Floats:
    """[Eq. procrustes] The rotation R with least sum |R a - b|^2, from the SVD of sum b a'."""
    U, _, Vt = np.linalg.svd(b.T @ a)
    U[:, -1] *= np.linalg.det(U @ Vt)
    return U @ Vt


def align(
    cohort: Correspondence, keep: Keep = "size", onto: Points | None = None
) -> Correspondence:
    """Turn and shift every shape onto the mean of all (generalised Procrustes); gaps stay gaps.

    Position and orientation go, which scanners choose; size stays unless only the form is kept.
    The template becomes the mean of the aligned shapes.

    Args:
        cohort: Shapes in correspondence, in any pose.
        keep: "size": growth in size is part of what is studied. "form": every shape is scaled to
            the same centroid size as well.
        onto: (M, n) a template to lay them upon instead, as new visits upon a known cohort's.
    """
    if keep not in ("size", "form"):
        raise QueryError(f"keep must be 'size' or 'form'. Got {keep!r}.", "Choose one of them.")
    if onto is not None:
        points = np.stack([laid_upon(onto, shape, keep) for shape in cohort.points])
        return replace(cohort, points=points, template=onto)
    mean = _centred(cohort.points[np.argmin(np.isnan(cohort.points).sum((1, 2)))])
    mean = np.where(np.isnan(mean), 0.0, mean)
    for _ in range(ROUNDS):
        points = np.stack([laid_upon(mean, shape, keep) for shape in cohort.points])
        following = np.nanmean(points, axis=0)
        moved = np.abs(following - mean).max() / np.abs(mean).max()
        mean = following
        if moved < SETTLED:
            break
    return replace(cohort, points=points, template=mean)


def laid_upon(mean: Points, shape: Points, keep: Keep) -> Points:
    """A shape in the pose of the mean, judged by the points it has."""
    seen = ~np.isnan(shape[:, 0])
    own, other = _centred(shape), mean - mean[seen].mean(axis=0)
    scale = np.sqrt((other[seen] ** 2).sum() / (own[seen] ** 2).sum()) if keep == "form" else 1.0
    R = rotation_onto(own[seen], other[seen])
    return scale * own @ R.T + mean[seen].mean(axis=0)


def _centred(shape: Points) -> Points:
    return shape - np.nanmean(shape, axis=0)
