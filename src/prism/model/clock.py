"""How well the cohort's own clock is known: whoever is dated by it shares its error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from prism.cohort import Correspondence
from prism.covariation import Covariation
from prism.model.state import date
from prism.typing import Floats, Times

if TYPE_CHECKING:
    from prism.model.core import PRISM

CLOCK_AGES = 65
CLOCK_BENDS = 8  # spans of time in each of which a clock may bend on its own
CLOCK_SIZE = 2 + CLOCK_BENDS
STRAIGHTEST = 1e-9  # bend of a clock, so that a prior on it stays finite
UNKNOWN = 1e-12  # information on a clock that nobody has shown, against that of one who has
MOST_POINTS = 4096  # whose clocks are judged at a time


def clock_visits(model: PRISM, cohort: Correspondence) -> tuple[Floats, Floats]:
    """(A,) visits about each of the clock's ages, (A, A) pairs of visits of one subject.

    Every visit pairs with itself as well.
    """
    ages, t = clock_ages(model), cohort.visits.t
    names, owner = np.unique(cohort.visits.subject, return_inverse=True)
    place = np.interp(t, ages, np.arange(len(ages)))
    below = np.minimum(place.astype(int), len(ages) - 2)
    seen = np.zeros((len(names), len(ages)))
    np.add.at(seen, (owner, below), 1 - place + below)
    np.add.at(seen, (owner, below + 1), place - below)
    return seen.sum(axis=0), seen.T @ seen


def clock_ages(model: PRISM) -> Floats:
    """Ages at which the clock is judged."""
    return np.linspace(*model.ages, CLOCK_AGES)


def clock_weight(model: PRISM) -> Floats:
    """(A, M) how strongly a visit pulls a point's clock in training: |mu_t|^2 / std.

    The mean's loss has the slope e / std, and a clock that is off by c moves mu by mu_t c.
    """
    ages = np.repeat(clock_ages(model)[:, None], len(model.template), axis=1)
    field, mu_t = model.table.at(torch.as_tensor(ages))
    return (mu_t**2 / field.std).sum(-1).numpy()


def clock_covariance(
    model: PRISM, visits: Floats, pairs: Floats, weight: Floats, spread: Floats
) -> Floats:
    """[Eq. clock] (..., C, C) error of a clock's shift, stretch and bends; NaN if none was shown.

    The mean trajectory was learned from finitely many subjects, who run ahead or behind; whoever
    is dated by it shares its error. It is a least-squares fit whose weights are not those of the
    spread, and the visits of one subject err together: H^-1 (S + P) H^-1 with H = sum w b b' + P
    and S the sum over subjects of (sum w spread b)(sum w spread b)'. P is the prior on curvature:
    where growth is straight, the clock cannot bend far; where growth bends, every span of time
    has a clock of its own. With one visit a subject and w = spread^-2 it is H^-1.

    Args:
        model: Gives the ages and the mean trajectory.
        visits: (A,) see `clock_visits`.
        pairs: (A, A) likewise.
        weight: (A, ...) of a visit at every age, at any scale.
        spread: (A, ...) standard deviation of tau - t at every age.
    """
    ages = clock_ages(model)
    basis, prior = clock_basis(model, ages), np.zeros((CLOCK_SIZE, CLOCK_SIZE))
    np.fill_diagonal(prior[2:, 2:], max(clock_bend(model, ages), STRAIGHTEST) ** -2.0)
    weight, spread = weight.T, np.maximum(spread.T, 1e-9 * np.ptp(ages))  # (..., A)
    if weight.ndim == 1:
        return _sandwich(basis, prior, visits, pairs, weight, spread)
    parts = range(0, len(weight), MOST_POINTS)
    some = ((weight[k : k + MOST_POINTS], spread[k : k + MOST_POINTS]) for k in parts)
    return np.concatenate([_sandwich(basis, prior, visits, pairs, *each) for each in some])


def _sandwich(
    basis: Floats, prior: Floats, visits: Floats, pairs: Floats, weight: Floats, spread: Floats
) -> Floats:
    people = visits * visits.sum() / max(pairs.sum(), 1e-300)  # who came often is fewer people
    told, heard = spread**-2 @ people, weight @ visits
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = weight * (told / heard)[..., None]
        pull = np.where(np.isfinite(spread), weight * spread, 0.0)[..., None] * basis
    inverse = _inverse(basis.T @ ((weight * visits)[..., None] * basis) + prior)
    scatter = np.swapaxes(pull, -1, -2) @ pairs @ pull
    known = (told > 0) & (heard > 0)
    return np.where(known[..., None, None], inverse @ (scatter + prior) @ inverse, np.nan)


def _inverse(information: Floats) -> Floats:
    """Inverse (..., C, C) that stays finite where nothing is known."""
    scale = np.sqrt(np.diagonal(information, axis1=-2, axis2=-1))
    scale = np.where(scale > 0, scale, 1.0)
    scale = scale[..., :, None] * scale[..., None, :]
    regular = np.nan_to_num(information / scale) + UNKNOWN * np.eye(information.shape[-1])
    return np.linalg.inv(regular) / scale


def clock_basis(model: PRISM, t: Floats) -> Floats:
    """1, s and curves that bend at unit curvature within one span of normalised time, (N, C)."""
    first, last = model.ages
    s = ((t - first) / (last - first))[:, None]
    within = np.clip(s - np.arange(CLOCK_BENDS) / CLOCK_BENDS, 0, 1 / CLOCK_BENDS)
    after = np.maximum(s - np.arange(1, CLOCK_SIZE - 1) / CLOCK_BENDS, 0)
    return np.hstack([np.ones_like(s), s, within**2 / 2 + after / CLOCK_BENDS])


def clock_bend(model: PRISM, ages: Floats) -> float:
    """How far growth is from straight, as curvature of the clock: rms mu_ss over rms mu_t.

    tau + c(s) moves mu by mu_t c(s), which curves by mu_t c''.
    """
    table_ages = np.repeat(ages[:, None], len(model.template), axis=1)
    mu = model.mean_shapes(table_ages)
    step = 1 / (len(ages) - 1)
    bend = np.diff(mu, 2, axis=0) / step**2
    pace = np.diff(mu, axis=0) / np.diff(ages)[:, None, None]
    return float(np.sqrt(np.mean(bend**2) / np.mean(pace**2)))


def clock_spread(
    model: PRISM, how: Covariation, t: Floats, modes: float | Floats, seen: np.ndarray | None = None
) -> Floats:
    """Standard deviation of tau - t among people at ages t, by the learned covariance, (N,).

    Of people who show the points `seen`, the same (M,) or each their own (N, M), or all.
    """
    shapes = model.mean_shapes(np.repeat(t[:, None], len(model.template), axis=1))
    if seen is not None:
        shapes[~np.broadcast_to(seen, shapes.shape[:2])] = np.nan
    return date(how, model.table, shapes - model.template, modes, t).spread


def clock_error(model: PRISM, tau: Times) -> Times:
    """Standard error of the mean trajectory itself, in time, (N,).

    It is sqrt(b' V b) at a time with basis b; beyond the training ages that of the nearer end.
    """
    return _error_of_clock(model, tau, model.calibration.clock)


def point_clock_error(model: PRISM, tau: Times) -> Floats:
    """The same of every point's own clock, (N, M): where people differ more it is known less."""
    known, spread = model.calibration, model.spread(clock_ages(model))
    seen = known.clock_visits, known.clock_pairs
    return _error_of_clock(
        model, tau, clock_covariance(model, *seen, clock_weight(model), spread)
    ).T


def _error_of_clock(model: PRISM, tau: Times, covariance: Floats) -> Floats:
    basis = clock_basis(model, np.clip(np.nan_to_num(tau, nan=model.ages[0]), *model.ages))
    products = (basis[:, :, None] * basis[:, None, :]).reshape(len(basis), -1)
    variance = covariance.reshape(*covariance.shape[:-2], -1) @ products.T
    return np.where(np.isnan(variance), np.inf, np.sqrt(np.maximum(variance, 0.0)))
