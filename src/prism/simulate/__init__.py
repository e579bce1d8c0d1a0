"""Cohorts whose truth is known."""

from prism.simulate.starman import starman
from prism.simulate.study import Study

__all__ = ["Study", "starman"]
