"""Metrics: pure functions of arrays. Each says squared or not, one- or two-sided, count, unit."""

from __future__ import annotations

from prism.metrics.coverage import (
    LEVELS,
    coverage,
    coverage_table,
    pit,
    pit_histogram,
    relative_error,
)
from prism.metrics.detection import OperatingPoint, at_threshold, auc, auc_interval, youden
from prism.metrics.distance import EMD_COUNT, chamfer, emd, emd_squared, hausdorff
from prism.metrics.sampling import (
    CONTOUR_COUNT,
    SURFACE_COUNT,
    resample_contour,
    sample_shape,
    sample_shapes,
    sample_surface,
)
from prism.metrics.time import mae, pearson_r, r_squared, time_metrics

__all__ = [
    "CONTOUR_COUNT",
    "EMD_COUNT",
    "LEVELS",
    "SURFACE_COUNT",
    "OperatingPoint",
    "at_threshold",
    "auc",
    "auc_interval",
    "chamfer",
    "coverage",
    "coverage_table",
    "emd",
    "emd_squared",
    "hausdorff",
    "mae",
    "pearson_r",
    "pit",
    "pit_histogram",
    "r_squared",
    "relative_error",
    "resample_contour",
    "sample_shape",
    "sample_shapes",
    "sample_surface",
    "time_metrics",
    "youden",
]
