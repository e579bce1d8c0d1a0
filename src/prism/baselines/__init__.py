"""Plain competitors: what a neural model must beat before anyone needs it."""

from prism.baselines.age_ridge import AgeRidge
from prism.baselines.pca_ridge import PCARidge
from prism.baselines.ppca import PPCAScore
from prism.baselines.spline import PointwiseSpline

__all__ = ["AgeRidge", "PCARidge", "PPCAScore", "PointwiseSpline"]
