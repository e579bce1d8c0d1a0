"""Cohorts, their values and their files."""

from __future__ import annotations

from prism.cohort.check import check_cohort
from prism.cohort.folder import Cohort, require_correspondence
from prism.cohort.values import Correspondence, Truth, Visits

__all__ = [
    "Cohort",
    "Correspondence",
    "Truth",
    "Visits",
    "check_cohort",
    "require_correspondence",
]
