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
from torch import Tensor

from prism.gaussian import solve_lower
from prism.intrinsic.table import TimeTable
from prism.typing import Floats, Shapes, Times

ITERATIONS = 25
TOLERANCE = 1e-7
REACH = 0.08


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
    seen = ~np.isnan(d[..., 0])
    shift = torch.as_tensor(np.nan_to_num(d), dtype=torch.float64)
    tau = table.nearest_knot(shift)
    reach = REACH * (table.last - table.first)
    for _ in range(ITERATIONS):
        drift, info = _mean_score(table, tau, shift)
        step = torch.where(info > 0, drift / info, 0.0).clamp(-reach, reach)
        moved = (tau + step).clamp(table.first, table.last)
        change = float((moved - tau).abs().max()) if tau.numel() else 0.0
        tau = moved
        if change < TOLERANCE * (table.last - table.first):
            break
    _, info = _mean_score(table, tau, shift)
    edge = (tau <= table.first) | (tau >= table.last)
    result = np.where(seen, tau.numpy(), np.nan)
    return PointTimes(result, np.where(seen, info.numpy(), 0.0), edge.numpy() & seen)


def _mean_score(table: TimeTable, tau: Tensor, d: Tensor) -> tuple[Tensor, Tensor]:
    """mu_t' Sigma^-1 (d - mu) and I_mu, each (N, M)."""
    field, mu_t = table.at(tau)
    white, slope = field.whiten(d), solve_lower(field.L, mu_t)
    return (slope * white).sum(-1), (slope**2).sum(-1)


def joint_mle_time(table: TimeTable, d: Shapes) -> JointTimes:
    """[Eq. joint-tau] One tau a shape, solving sum_p mu_t' Sigma^-1 (d - mu) = 0, with its error.

    The standard error is the sandwich sqrt(sum_p u_p^2) / sum_p I of the observed scores u_p, with
    the correction m / (m - 1) for m = (sum I)^2 / sum I^2 effective points: it asks how well the
    points agree on tau, not how far people differ. With two effective points or fewer they cannot
    be asked, and it is the model's (sum_p I)^-1/2. Points count as independent given tau.
    """
    seen = torch.as_tensor(~np.isnan(d[..., 0]))
    shift = torch.as_tensor(np.nan_to_num(d), dtype=torch.float64)
    tau = _nearest_common_knot(table, shift, seen)
    reach = REACH * (table.last - table.first)
    for _ in range(ITERATIONS):
        drift, info = _seen_score(table, tau, shift, seen)
        total = info.sum(-1)
        step = torch.where(total > 0, drift.sum(-1) / total, 0.0).clamp(-reach, reach)
        moved = (tau + step).clamp(table.first, table.last)
        change = float((moved - tau).abs().max()) if tau.numel() else 0.0
        tau = moved
        if change < TOLERANCE * (table.last - table.first):
            break
    drift, info = _seen_score(table, tau, shift, seen)
    known = (info.sum(-1) > 0).numpy()
    se = np.where(known, _joint_error(drift, info), np.inf)
    return JointTimes(np.where(known, tau.numpy(), np.nan), se)


def _joint_error(drift: Tensor, info: Tensor) -> Times:
    total = info.sum(-1)
    points = total**2 / info.square().sum(-1)
    sandwich = drift.square().sum(-1) / total**2 * points / (points - 1).clamp_min(1)
    return torch.where(points > 2, sandwich, 1 / total).sqrt().numpy()


def _seen_score(table: TimeTable, tau: Tensor, d: Tensor, seen: Tensor) -> tuple[Tensor, Tensor]:
    drift, info = _mean_score(table, tau[:, None].expand(d.shape[:2]), d)
    return torch.where(seen, drift, 0.0), torch.where(seen, info, 0.0)


def _nearest_common_knot(table: TimeTable, d: Tensor, seen: Tensor) -> Tensor:
    """Time of the knot whose mean shape lies nearest to the observed points, (N,)."""
    mu = table.value[..., : table.n]
    square = torch.einsum("mk,bm->bk", mu.square().sum(-1), seen.to(d.dtype))
    cross = torch.einsum("mkn,bmn->bk", mu, torch.where(seen[..., None], d, 0.0))
    best = (square - 2 * cross).argmin(-1)
    return table.first + table.spacing * best.to(d.dtype)


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
