"""Displacement -> intrinsic time: encoder, likelihood, pooling."""

from prism.intrinsic.encoder import EncoderConfig, InverseEncoder
from prism.intrinsic.likelihood import JointTimes, PointTimes, joint_mle_time, mle_time
from prism.intrinsic.pooling import fisher_mean, plain_mean, weighted_mean
from prism.intrinsic.table import TimeTable

__all__ = [
    "EncoderConfig",
    "InverseEncoder",
    "JointTimes",
    "PointTimes",
    "TimeTable",
    "fisher_mean",
    "joint_mle_time",
    "mle_time",
    "plain_mean",
    "weighted_mean",
]
