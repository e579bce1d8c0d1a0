"""How old does this anatomy look, as a whole and at every point?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prism.applications.ages import AgePosterior, age_of
from prism.cohort import Correspondence, Visits
from prism.fisher import spread_of
from prism.intrinsic import PointTimes, fisher_mean, mle_time, plain_mean
from prism.model import PRISM
from prism.model.clock import clock_error, clock_spread, point_clock_error
from prism.model.state import BLOCK_VALUES, Residuals, date, forecast_residuals
from prism.typing import Floats, Times


@dataclass(frozen=True)
class TimeMap:
    """Intrinsic time of every visit and of every point, in the model's time unit.

    Attributes:
        visits: The visits the rows belong to.
        tau: (N,) recommended estimate of the whole shape's intrinsic time (pooled likelihood).
        tau_se: (N,) its standard error: measurement, what points do by themselves, and how well
            the population's own clock is known from the subjects it was learned from; infinite
            where tau is no estimate but a bound, the end of the times that were searched.
        tau_mean: (N,) plain mean of the encoder's times (the paper's, age unknown).
        tau_fisher: (N,) Fisher-weighted mean of the encoder's times (the paper's, age known).
        tau_mle: (N,) Fisher-weighted mean of the points' likelihood times.
        z: (N,) (tau - t) in units of how far people of that age differ; NaN where t is unknown.
        point_tau: (N, M) time of every point, pooled with the rest of the shape; NaN where the
            shape says nothing about it, or that it lies beyond the times searched.
        point_se: (N, M) its standard error; infinite where time cannot be read.
        point_tau_mle: (N, M) likelihood time of every point by itself.
        point_tau_encoder: (N, M) the encoder's time of every point.
        age: What the shape, and an uncertain age where one was given, say of the calendar age.
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
    point_tau_mle: Floats
    point_tau_encoder: Floats
    age: AgePosterior
    extrapolated: np.ndarray


def intrinsic_time(model: PRISM, cohort: Correspondence) -> TimeMap:
    """Estimate the intrinsic time of every visit; ages may be unknown (NaN) or uncertain.

    A column `t_error` of the visits holds the standard error of an uncertain age.
    """
    d, t = model.displacements(cohort), cohort.visits.t
    how = model.covariation
    whole = date(how, model.table, d, model.calibration.modes * how.traits)
    spread = whole.spread * model.calibration.spread_scale
    points = mle_time(model.table, d)
    encoded = model.encoder(model.template, d)
    bound = (whole.tau <= model.table.first) | (whole.tau >= model.table.last)
    se = model.calibration.doubt * np.hypot(whole.se, clock_error(model, whole.tau))
    pooled, pooled_se = _pooled_points(model, cohort, np.where(np.isnan(t), whole.tau, t))
    return TimeMap(
        visits=cohort.visits,
        tau=whole.tau,
        tau_se=np.where(bound, np.inf, se),
        tau_mean=plain_mean(encoded),
        tau_fisher=fisher_mean(encoded, model.table, t),
        tau_mle=fisher_mean(points.tau, model.table, np.full(len(t), np.nan)),
        z=(whole.tau - t) / spread,
        point_tau=pooled,
        point_se=pooled_se,
        point_tau_mle=_where_readable(model, points, np.asarray(spread_of(points.info)))[0],
        point_tau_encoder=encoded,
        age=age_of(model, cohort),
        extrapolated=model.outside_ages(whole.tau),
    )


def _where_readable(model: PRISM, points: PointTimes, se: Floats) -> tuple[Floats, Floats]:
    """NaN and infinity where the standard error exceeds the training range, or time is a bound."""
    readable = (se < model.population.units.t_range) & ~np.isnan(points.tau) & ~points.at_edge
    return np.where(readable, points.tau, np.nan), np.where(readable, se, np.inf)


def _pooled_points(model: PRISM, cohort: Correspondence, t: Times) -> tuple[Floats, Floats]:
    """Time and standard error of every point of the anatomy that the visit shows, cleared of noise.

    The shape is conditioned on itself: points take from the rest what co-varies with them.
    """
    tau, se = np.full(cohort.points.shape[:2], np.nan), np.full(cohort.points.shape[:2], np.inf)
    known, size = np.flatnonzero(~np.isnan(t)), max(1, BLOCK_VALUES // model.template.size)
    if len(known):
        se[known] = point_clock_error(model, t[known])
    for first in range(0, len(known), size):
        rows = known[first : first + size]
        seen = Residuals.of_shapes(model.table, model.displacements(cohort[rows]), t[rows])
        past = list(np.arange(len(rows))[:, None])
        clear = forecast_residuals(model.covariation, model.table, seen, past, t[rows])
        points = mle_time(model.table, seen.mu + clear.mean[:, 0])
        error = np.hypot(_time_error(seen, clear.cov_state[:, 0], points.info), se[rows])
        tau[rows], se[rows] = _where_readable(model, points, error)
    return tau, se


def _time_error(seen: Residuals, cov: Floats, info: Floats) -> Floats:
    """Standard error of the time of points whose displacement has covariance cov, (N, M).

    tau is mu_t' Sigma^-1 d / I, hence its variance is w' cov w with w = Sigma^-1 mu_t / I.
    """
    w = np.linalg.solve(seen.Sigma, seen.mu_t[..., None])[..., 0]
    speed = (w * seen.mu_t).sum(-1)
    variance = (w * (cov @ w[..., None])[..., 0]).sum(-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((speed > 0) & (info > 0), np.sqrt(np.maximum(variance, 0)) / speed, np.inf)


def tempo_spread(model: PRISM, t: Times) -> Times:
    """How far tau and t differ among people of ages t: standard deviation, (N,)."""
    known, how = model.calibration, model.covariation
    return known.spread_scale * clock_spread(model, how, t, known.modes * how.traits)
