"""PRISM: how anatomy changes with age, how much healthy people differ, and where one departs.

The front door: values, verbs and learned objects, imported when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_DOORS = {
    "Cohort": "prism.cohort",
    "Correspondence": "prism.cohort",
    "Truth": "prism.cohort",
    "Visits": "prism.cohort",
    "GaussianField": "prism.gaussian",
    "fisher_information": "prism.fisher",
    "temporal_std": "prism.fisher",
    "score": "prism.fisher",
    "TimeTable": "prism.intrinsic",
    "InverseEncoder": "prism.intrinsic",
    "mle_time": "prism.intrinsic",
    "joint_mle_time": "prism.intrinsic",
    "PRISM": "prism.model",
    "PopulationConfig": "prism.population",
    "TimeMap": "prism.applications",
    "Trajectory": "prism.applications",
    "Prediction": "prism.applications",
    "Anomaly": "prism.applications",
    "anomaly": "prism.applications",
    "evaluate": "prism.applications",
    "intrinsic_time": "prism.applications",
    "predict_shape": "prism.applications",
    "trajectory": "prism.applications",
    "write_report": "prism.report",
}
_ROOMS = ("errors", "metrics", "simulate")

__all__ = ["__version__", *sorted(_DOORS), *_ROOMS]


def __getattr__(name: str) -> Any:
    """Open a door on first use, so that `import prism` stays fast."""
    if name in _DOORS:
        return getattr(import_module(_DOORS[name]), name)
    if name in _ROOMS:
        return import_module(f"prism.{name}")
    raise AttributeError(f"module 'prism' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the front door."""
    return sorted(__all__)


if TYPE_CHECKING:
    from prism import errors, metrics, simulate
    from prism.applications import (
        Anomaly,
        Prediction,
        TimeMap,
        Trajectory,
        anomaly,
        evaluate,
        intrinsic_time,
        predict_shape,
        trajectory,
    )
    from prism.cohort import Cohort, Correspondence, Truth, Visits
    from prism.fisher import fisher_information, score, temporal_std
    from prism.gaussian import GaussianField
    from prism.intrinsic import InverseEncoder, TimeTable, joint_mle_time, mle_time
    from prism.model import PRISM
    from prism.population import PopulationConfig
    from prism.report import write_report
