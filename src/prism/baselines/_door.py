"""What the baselines ask of a cohort, checked once, at the door."""

from __future__ import annotations

import numpy as np

from prism.cohort import Correspondence
from prism.errors import FitError, QueryError
from prism.typing import Floats, Times

LEAST_SHAPES = 3


def training_rows(cohort: Correspondence) -> tuple[Floats, Times]:
    """(N, M n) coordinates, NaN where missing, and (N,) ages of a cohort one can learn from."""
    if len(cohort) < LEAST_SHAPES:
        raise FitError(
            f"a baseline needs at least {LEAST_SHAPES} shapes. Got {len(cohort)}.",
            "Add shapes.",
        )
    if unknown := int(np.isnan(cohort.visits.t).sum()):
        raise FitError(
            f"{unknown} of {len(cohort)} training visits have no age.",
            "Leave these visits out: cohort[~np.isnan(cohort.visits.t)].",
        )
    for m in np.flatnonzero(~cohort.observed.any(axis=0)):
        raise FitError(f"point {m} is missing in every training shape.", "Remove this point.")
    return cohort.points.reshape(len(cohort), -1), cohort.visits.t


def query_rows(cohort: Correspondence, shape: tuple[int, ...]) -> Floats:
    """(N, M n) coordinates, NaN where missing, of shapes with the points of the training ones."""
    if cohort.points.shape[1:] != shape:
        raise QueryError(
            f"shapes must have points of shape {shape}. Got {cohort.points.shape[1:]}.",
            "Ask about shapes in correspondence with those of the fit.",
        )
    return cohort.points.reshape(len(cohort), -1)


def known_times(cohort: Correspondence) -> Times:
    """(N,) ages, all of them known."""
    if unknown := int(np.isnan(cohort.visits.t).sum()):
        raise QueryError(
            f"{unknown} of {len(cohort)} visits have no age, and this score compares with peers.",
            "Leave these visits out: cohort[~np.isnan(cohort.visits.t)].",
        )
    return cohort.visits.t
