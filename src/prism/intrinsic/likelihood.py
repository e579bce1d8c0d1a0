"""Intrinsic time by likelihood: safeguarded Fisher scoring, all points of all shapes at once.

The estimate solves the *mean score* equation mu_t' Sigma^-1 (d - mu) = 0. It is the score of the
paper's likelihood without the terms of Sigma's own change in time. With Sigma = s^2 mu_t mu_t' + S
those terms would pull every estimate towards ages at which people differ less (by s ds/dt, several
per cent of the age range on Starman), while the mean score is the exact score of d = mu(tau) + e,
e ~ N(0, S), and is unbiased. The literal maximum stays available as `maximum_likelihood`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from prism.gaussian import forward_substitution
from prism.intrinsic.table import TimeTable
from prism.typing import Floats, Shapes, Times

ITERATIONS = 25
TOLERANCE = 1e-6  # of the span; scoring converges so fast that the error left is far smaller
REACH = 0.08  # most of the span in one step
BLOCK = 32_768  # points worked on at once


@dataclass(frozen=True)
class PointTimes:
    """Intrinsic time of every point of every shape.

    Attributes:
        tau: (N, M) estimates in the time unit; NaN where the point is missing.
        info: (N, M) Fisher information at the estimate; zero where the point is missing.
        at_edge: (N, M) True where the estimate stopped at the end of the searched span.
    """

    tau: Floats
    info: Floats
    at_edge: np.ndarray


@dataclass(frozen=True)
class JointTimes:
    """One intrinsic time a shape: tau (N,), its standard error se (N,), both in the time unit."""

    tau: Times
    se: Times


def mle_time(table: TimeTable, d: Shapes) -> PointTimes:
    """[Eq. mle-tau] Time of every point by Fisher scoring on the mean score equation.

    Args:
        table: The population at the M template points.
        d: (N, M, n) displacements; NaN where missing.
    """
    parts = [_point_times(table, d[rows]) for rows in _blocks(table, len(d))]
    return PointTimes(*(np.concatenate([getattr(x, k) for x in parts]) for k in vars(parts[0])))


def _blocks(table: TimeTable, shapes: int) -> list[slice]:
    """Runs of shapes small enough for their points to stay near the processor."""
    size = max(1, BLOCK // table.points)
    return [slice(start, start + size) for start in range(0, max(shapes, 1), size)]


def _point_times(table: TimeTable, d: Shapes) -> PointTimes:
    seen = ~np.isnan(d[..., 0])
    shift = np.nan_to_num(d)
    tau, shift = table.nearest_knot(shift).ravel(), shift.reshape(-1, d.shape[-1])
    point = np.tile(np.arange(table.points), len(d))
    info, span = np.zeros_like(tau), table.last - table.first
    moving = np.flatnonzero(seen)
    for _ in range(ITERATIONS):
        if not len(moving):
            break
        before = tau[moving]
        drift, speed = _mean_score(table, point[moving], before, shift[moving])
        step = _step(drift, speed, span)
        tau[moving] = np.clip(before + step, table.first, table.last)
        info[moving] = speed
        readable = speed > 1 / span**2
        moving = moving[readable & (np.abs(tau[moving] - before) > TOLERANCE * span)]
    edge = (tau <= table.first) | (tau >= table.last)
    tau, info, edge = (x.reshape(seen.shape) for x in (tau, info, edge))
    return PointTimes(np.where(seen, tau, np.nan), np.where(seen, info, 0.0), edge & seen)


def _step(drift: Floats, info: Floats, span: float) -> Floats:
    """Scoring step drift / I, bounded; it fades where the whole span cannot be told apart."""
    return np.clip(drift / np.maximum(info, 1 / span**2), -REACH * span, REACH * span)


def _mean_score(
    table: TimeTable, point: np.ndarray, tau: Floats, d: Floats
) -> tuple[Floats, Floats]:
    """mu_t' Sigma^-1 (d - mu) and I_mu at points (...), times (...), displacements (..., n)."""
    mu, L, mu_t = table.read(point, tau)
    white, slope = forward_substitution(L, d - mu), forward_substitution(L, mu_t)
    drift = sum(a * b for a, b in zip(slope, white, strict=True))
    return drift, sum(a * a for a in slope)  # type: ignore[return-value]


def joint_mle_time(table: TimeTable, d: Shapes) -> JointTimes:
    """[Eq. joint-tau] One tau a shape, solving sum_p mu_t' Sigma^-1 (d - mu) = 0, with its error.

    The standard error is the sandwich sqrt(sum_p u_p^2) / sum_p I of the observed scores u_p, with
    the correction m / (m - 1) for m = (sum I)^2 / sum I^2 effective points: it asks how well the
    points agree on tau, not how far people differ. With two effective points or fewer they cannot
    be asked, and it is the model's (sum_p I)^-1/2. Points count as independent given tau.
    """
    parts = [_joint_times(table, d[rows]) for rows in _blocks(table, len(d))]
    return JointTimes(*(np.concatenate([getattr(x, k) for x in parts]) for k in vars(parts[0])))


def _joint_times(table: TimeTable, d: Shapes) -> JointTimes:
    seen, shift = ~np.isnan(d[..., 0]), np.nan_to_num(d)
    tau, span = _nearest_common_knot(table, shift, seen), table.last - table.first
    drift, info = _seen_score(table, tau, shift, seen)
    for _ in range(ITERATIONS):
        step = _step(drift.sum(-1), info.sum(-1), span)
        moved = np.clip(tau + step, table.first, table.last)
        change, tau = np.abs(moved - tau).max(initial=0.0), moved
        drift, info = _seen_score(table, tau, shift, seen)
        if change < TOLERANCE * span:
            break
    known = info.sum(-1) > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        se = np.where(known, _joint_error(drift, info), np.inf)
    return JointTimes(np.where(known, tau, np.nan), se)


def _joint_error(drift: Floats, info: Floats) -> Times:
    total = info.sum(-1)
    points = total**2 / np.square(info).sum(-1)
    sandwich = np.square(drift).sum(-1) / total**2 * points / np.maximum(points - 1, 1)
    return np.sqrt(np.where(points > 2, sandwich, 1 / total))


def _seen_score(table: TimeTable, tau: Times, d: Shapes, seen: np.ndarray) -> tuple[Floats, Floats]:
    """Mean score and information (N, M) at one tau a shape; zero where a point is missing."""
    every = np.arange(table.points)
    drift, info = _mean_score(table, every, np.repeat(tau[:, None], table.points, axis=1), d)
    return np.where(seen, drift, 0.0), np.where(seen, info, 0.0)


def _nearest_common_knot(table: TimeTable, d: Shapes, seen: np.ndarray) -> Times:
    """Time of the knot whose mean shape lies nearest to the observed points, (N,)."""
    half = seen.astype(np.float64) @ (0.5 * np.square(table.knots).sum(-1))
    cross = np.einsum("mkn,bmn->bk", table.knots, d, optimize=True)
    return table.first + table.spacing * (half - cross).argmin(-1)


def maximum_likelihood(table: TimeTable, d: Shapes, steps: int = 4000) -> Times:
    """Literal argmax over tau of log N(d; mu(tau), Sigma(tau)) by search on a fine grid, (N, M)."""
    grid = torch.linspace(table.first, table.last, steps, dtype=torch.float64)
    shift = torch.as_tensor(d, dtype=torch.float64)
    best = torch.full(shift.shape[:2], -torch.inf, dtype=torch.float64)
    tau = torch.full(shift.shape[:2], torch.nan, dtype=torch.float64)
    for t in grid:
        field, _ = table.at(t.expand(1, table.points))
        likely = field.log_prob(shift)
        better = likely > best
        best, tau = torch.where(better, likely, best), torch.where(better, t, tau)
    return tau.numpy()
