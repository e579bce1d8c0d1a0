"""From raw shapes to samples of their signed distance."""

from __future__ import annotations

from prism.preprocess.distance import signed_distance
from prism.preprocess.many import sample_cohort
from prism.preprocess.sdf import SamplingConfig, sample_sdf

__all__ = ["SamplingConfig", "sample_cohort", "sample_sdf", "signed_distance"]
