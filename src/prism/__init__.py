"""PRISM: how anatomy changes with age, how much healthy people differ, and where one departs.

The front door: values, verbs and learned objects, imported when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from prism import errors as errors
    from prism import metrics as metrics
    from prism import simulate as simulate
    from prism.applications import Anomaly as Anomaly
    from prism.applications import GrowthChart as GrowthChart
    from prism.applications import Prediction as Prediction
    from prism.applications import TimeMap as TimeMap
    from prism.applications import Trajectory as Trajectory
    from prism.applications import anomaly as anomaly
    from prism.applications import evaluate as evaluate
    from prism.applications import growth_chart as growth_chart
    from prism.applications import intrinsic_time as intrinsic_time
    from prism.applications import predict_shape as predict_shape
    from prism.applications import trajectory as trajectory
    from prism.cohort import Cohort as Cohort
    from prism.cohort import Correspondence as Correspondence
    from prism.cohort import SDFSamples as SDFSamples
    from prism.cohort import Shape as Shape
    from prism.cohort import Truth as Truth
    from prism.cohort import Visits as Visits
    from prism.cohort import align as align
    from prism.cohort import read_shape as read_shape
    from prism.cohort import write_shape as write_shape
    from prism.fisher import fisher_information as fisher_information
    from prism.fisher import score as score
    from prism.fisher import temporal_std as temporal_std
    from prism.gaussian import GaussianField as GaussianField
    from prism.intrinsic import InverseEncoder as InverseEncoder
    from prism.intrinsic import TimeTable as TimeTable
    from prism.intrinsic import joint_mle_time as joint_mle_time
    from prism.intrinsic import mle_time as mle_time
    from prism.model import PRISM as PRISM
    from prism.population import PopulationConfig as PopulationConfig
    from prism.preprocess import sample_cohort as sample_cohort
    from prism.preprocess import sample_sdf as sample_sdf
    from prism.registration import Registration as Registration
    from prism.registration import RegistrationConfig as RegistrationConfig
    from prism.report import write_report as write_report

_DOORS = {
    "Cohort": "prism.cohort",
    "Correspondence": "prism.cohort",
    "Truth": "prism.cohort",
    "Visits": "prism.cohort",
    "SDFSamples": "prism.cohort",
    "Shape": "prism.cohort",
    "align": "prism.cohort",
    "read_shape": "prism.cohort",
    "write_shape": "prism.cohort",
    "sample_sdf": "prism.preprocess",
    "sample_cohort": "prism.preprocess",
    "Registration": "prism.registration",
    "RegistrationConfig": "prism.registration",
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
    "GrowthChart": "prism.applications",
    "TimeMap": "prism.applications",
    "Trajectory": "prism.applications",
    "Prediction": "prism.applications",
    "Anomaly": "prism.applications",
    "anomaly": "prism.applications",
    "evaluate": "prism.applications",
    "growth_chart": "prism.applications",
    "intrinsic_time": "prism.applications",
    "predict_shape": "prism.applications",
    "trajectory": "prism.applications",
    "write_report": "prism.report",
}
_ROOMS = ("errors", "metrics", "simulate")


def __getattr__(name: str) -> Any:
    """Open a door on first use, so that `import prism` stays fast."""
    if name in _DOORS:
        return getattr(import_module(_DOORS[name]), name)
    if name in _ROOMS:
        return import_module(f"prism.{name}")
    raise AttributeError(f"module 'prism' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the front door."""
    return sorted(["__version__", *_DOORS, *_ROOMS])
