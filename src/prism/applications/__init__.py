"""The questions users ask of a model."""

from prism.applications.anomalies import Anomaly, anomaly
from prism.applications.charts import GrowthChart, growth_chart
from prism.applications.evaluation import evaluate
from prism.applications.predictions import RULES, Prediction, left_out, predict_shape
from prism.applications.times import TimeMap, intrinsic_time
from prism.applications.trajectories import Trajectory, trajectory

__all__ = [
    "RULES",
    "Anomaly",
    "GrowthChart",
    "Prediction",
    "TimeMap",
    "Trajectory",
    "anomaly",
    "evaluate",
    "growth_chart",
    "intrinsic_time",
    "left_out",
    "predict_shape",
    "trajectory",
]
