"""PRISM, the finished object."""

from prism.model.core import PRISM, Calibration

__all__ = ["PRISM", "Calibration"]
