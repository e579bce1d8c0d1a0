"""Every figure of a report; each returns a matplotlib Figure and computes nothing new."""

from __future__ import annotations

from prism.report.bands import information_ablation, spread_bands
from prism.report.fans import information_map, shape_fan
from prism.report.forecasts import prediction_overlay
from prism.report.visits import anomaly_ranking, time_scatter

__all__ = [
    "anomaly_ranking",
    "information_ablation",
    "information_map",
    "prediction_overlay",
    "shape_fan",
    "spread_bands",
    "time_scatter",
]
