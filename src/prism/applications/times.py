"""How old does this anatomy look, as a whole and at every point?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prism.cohort import Correspondence, Visits
from prism.fisher import spread_of
from prism.intrinsic import fisher_mean, joint_mle_time, mle_time, plain_mean
from prism.model import PRISM
from prism.typing import Floats, Times


@dataclass(frozen=True)
class TimeMap:
    """Intrinsic time of every visit and of every point, in the model's time unit.

    Attributes:
        visits: The visits the rows belong to.
        tau: (N,) recommended estimate of the whole shape's intrinsic time (joint likelihood).
        tau_se: (N,) its standard error: how well the points agree, and how well the population's
            own clock is known from the subjects it was learned from.
        tau_mean: (N,) plain mean of the encoder's times (the paper's, age unknown).
        tau_fisher: (N,) Fisher-weighted mean of the encoder's times (the paper's, age known).
        tau_mle: (N,) Fisher-weighted mean of the points' likelihood times.
        z: (N,) (tau - t) in units of the population's temporal spread; NaN where t is unknown.
        point_tau: (N, M) likelihood time of every point; NaN where missing or unreadable.
        point_se: (N, M) its standard error I^-1/2; infinite where time cannot be read.
        point_tau_encoder: (N, M) the encoder's time of every point.
        extrapolated: (N,) True where tau lies outside the training ages.
    """

    visits: Visits
    tau: Times
    tau_se: Times
    tau_mean: Times
    tau_fisher: Times
    tau_mle: Times
    z: Times
    point_tau: Floats
    point_se: Floats
    point_tau_encoder: Floats
    extrapolated: np.ndarray


def intrinsic_time(model: PRISM, cohort: Correspondence) -> TimeMap:
    """Estimate the intrinsic time of every visit; ages may be unknown (NaN)."""
    d, t = model.displacements(cohort), cohort.visits.t
    joint = joint_mle_time(model.table, d)
    points = mle_time(model.table, d)
    encoded = model.encoder(model.template, d)
    se = np.asarray(spread_of(points.info))
    readable = (se < model.population.units.t_range) & ~np.isnan(points.tau)
    return TimeMap(
        visits=cohort.visits,
        tau=joint.tau,
        tau_se=np.hypot(joint.se, clock_error(model, joint.tau)),
        tau_mean=plain_mean(encoded),
        tau_fisher=fisher_mean(encoded, model.table, t),
        tau_mle=fisher_mean(points.tau, model.table, np.full(len(t), np.nan)),
        z=(joint.tau - t) / overall_spread(model, t),
        point_tau=np.where(readable, points.tau, np.nan),
        point_se=np.where(readable, se, np.inf),
        point_tau_encoder=encoded,
        extrapolated=model.outside_ages(joint.tau),
    )


def overall_spread(model: PRISM, t: Times) -> Times:
    """Temporal spread of the whole shape at t: the Fisher-weighted mean of sigma_tau^2, (N,)."""
    known = ~np.isnan(t)
    sigma_tau = model.spread(np.where(known, t, model.ages[0]))
    readable = np.isfinite(sigma_tau)
    info = np.where(readable, 1 / np.where(readable, sigma_tau, 1.0) ** 2, 0.0)
    total = info.sum(axis=1)
    square = np.divide(readable.sum(axis=1), total, out=np.full(len(t), np.nan), where=total > 0)
    return np.where(known, np.sqrt(square), np.nan)


def clock_error(model: PRISM, tau: Times) -> Times:
    """Standard error of the mean trajectory itself, in time: sqrt(pi / 2) sigma / sqrt(N), (N,).

    The trajectory is the median of finitely many subjects; whoever is dated by it shares its error.
    """
    first, last = model.ages
    spread = overall_spread(model, np.clip(tau, first, last))
    return np.sqrt(np.pi / 2) * spread / np.sqrt(model.subjects)
