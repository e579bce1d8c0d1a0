"""Cohorts whose truth is known."""

from prism.simulate.anny import anny
from prism.simulate.starman import starman
from prism.simulate.study import Study
from prism.simulate.tubes import tubes

__all__ = ["Study", "anny", "starman", "tubes"]
