"""From a time at every point to one time a shape."""

from __future__ import annotations

import numpy as np

from prism.intrinsic.table import TimeTable
from prism.typing import Floats, Times

PASSES = 3


def plain_mean(tau: Floats) -> Times:
    """[Eq. tau-mean] Arithmetic mean over the observed points, (N, M) -> (N,)."""
    seen = ~np.isnan(tau)
    count = seen.sum(axis=-1)
    total = np.where(seen, tau, 0.0).sum(axis=-1)
    return np.divide(total, count, out=np.full(len(tau), np.nan), where=count > 0)


def weighted_mean(tau: Floats, info: Floats) -> Times:
    """[Eq. tau-fisher] Mean over the observed points weighted by Fisher information, (N,)."""
    weight = np.where(np.isnan(tau), 0.0, info)
    total = weight.sum(axis=-1)
    part = (weight * np.nan_to_num(tau)).sum(axis=-1)
    return np.divide(part, total, out=np.full(len(tau), np.nan), where=total > 0)


def fisher_mean(tau: Floats, table: TimeTable, t: Times) -> Times:
    """Fisher-weighted mean: weights at t where it is known, else at the estimate itself.

    Where t is unknown (NaN) the weights are taken at the current estimate and the mean repeated,
    starting from the plain mean.
    """
    centre = np.where(np.isnan(t), plain_mean(tau), t)
    known = ~np.isnan(t)
    estimate = centre
    for _ in range(PASSES):
        info = table.information(np.repeat(centre[:, None], tau.shape[1], axis=1))
        estimate = weighted_mean(tau, info)
        centre = np.where(known, centre, estimate)
    return estimate
