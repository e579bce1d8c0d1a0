"""PRISM, the finished object."""

from prism.model.calibrated import Calibration
from prism.model.core import PRISM

__all__ = ["PRISM", "Calibration"]
