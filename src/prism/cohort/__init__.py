"""Cohorts, their values and their files."""

from __future__ import annotations

from prism.cohort.ages import same_unit
from prism.cohort.check import check_cohort
from prism.cohort.covariates import known_covariates, unfamiliar
from prism.cohort.folder import Cohort, require_correspondence
from prism.cohort.landmarks import match_landmarks
from prism.cohort.parallel import Advance, Progress, in_parallel, silent
from prism.cohort.pose import align, laid_upon, rotation_onto
from prism.cohort.raw_shapes import RawShapes
from prism.cohort.samples import SDFSamples, read_samples, write_samples
from prism.cohort.shape import Shape
from prism.cohort.shape_file import ShapeFile, read_shape, write_shape
from prism.cohort.values import Correspondence, Truth, Visits

__all__ = [
    "Advance",
    "Cohort",
    "Correspondence",
    "Progress",
    "RawShapes",
    "SDFSamples",
    "Shape",
    "ShapeFile",
    "Truth",
    "Visits",
    "align",
    "check_cohort",
    "in_parallel",
    "known_covariates",
    "laid_upon",
    "match_landmarks",
    "read_samples",
    "read_shape",
    "require_correspondence",
    "rotation_onto",
    "same_unit",
    "silent",
    "unfamiliar",
    "write_samples",
    "write_shape",
]
