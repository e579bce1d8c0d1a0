"""How well the cohort's own clock is known: whoever is dated by it shares its error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from prism.cohort import Correspondence
from prism.covariation import Covariation
from prism.model.state import date
from prism.typing import Floats, Times

if TYPE_CHECKING:
    from prism.model.core import PRISM

CLOCK_AGES = 65
CLOCK_BENDS = 8  # spans of time in each of which a clock may bend on its own
CLOCK_SIZE = 2 + CLOCK_BENDS
UNKNOWN = 1e-12  # information on a clock that nobody has shown, against that of one who has


def clock_people(model: PRISM, cohort: Correspondence) -> Floats:
    """(A,) how many subjects were seen about each of the clock's ages.

    The population was learned from visits, all alike, so that who came often counts for more:
    people with k visits each are worth (sum k)^2 / sum k^2 who came equally often.
    """
    ages, t = clock_ages(model), cohort.visits.t
    _, count = np.unique(cohort.visits.subject, return_counts=True)
    place = np.interp(t, ages, np.arange(len(ages)))
    below = np.minimum(place.astype(int), len(ages) - 2)
    share = place - below
    visits = np.bincount(below, 1 - share, len(ages)) + np.bincount(below + 1, share, len(ages))
    return visits * count.sum() / np.square(count).sum()


def clock_ages(model: PRISM) -> Floats:
    """Ages at which the clock is judged."""
    return np.linspace(*model.ages, CLOCK_AGES)


def clock_information(model: PRISM, people: Floats, spread: Floats) -> Floats:
    """(..., C, C) information of the cohort on a shift, a stretch and the bends of a clock.

    The mean trajectory was learned from finitely many subjects, who run ahead or behind; whoever
    is dated by it shares its error. Subjects count by their temporal spread. The prior on
    curvature counts as well: where growth is straight, the clock cannot bend far; where growth
    bends, every span of time has a clock of its own.

    Args:
        model: Gives the ages and the mean trajectory.
        people: (A,) subjects about every age.
        spread: (A, ...) standard deviation of tau - t at every age.
    """
    ages = clock_ages(model)
    basis = clock_basis(model, ages)
    weight = people / np.maximum(spread.T, 1e-9 * np.ptp(ages)) ** 2  # (..., A)
    products = (basis[:, :, None] * basis[:, None, :]).reshape(len(ages), -1)
    information = (weight @ products).reshape(*weight.shape[:-1], CLOCK_SIZE, CLOCK_SIZE)
    bends = np.arange(2, CLOCK_SIZE)
    information[..., bends, bends] += 1 / clock_bend(model, ages) ** 2
    return information


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


def clock_spread(model: PRISM, how: Covariation, t: Floats, modes: float | Floats) -> Floats:
    """Standard deviation of tau - t among people at ages t, by the learned covariance, (N,)."""
    shapes = model.mean_shapes(np.repeat(t[:, None], len(model.template), axis=1))
    return date(how, model.table, shapes - model.template, modes).spread


def clock_error(model: PRISM, tau: Times) -> Times:
    """[Eq. clock] Standard error of the mean trajectory itself, in time, (N,).

    The cohort's information G on a shift, a stretch and the bends of its clock gives
    sqrt(b' G^-1 b) at a time with basis b; beyond the training ages it is that of the nearer end.
    """
    return _error_of_clock(model, tau, model.calibration.clock)


def point_clock_error(model: PRISM, tau: Times) -> Floats:
    """The same of every point's own clock, (N, M): where people differ more it is known less."""
    spread = model.spread(clock_ages(model))
    known = clock_information(model, model.calibration.clock_people, spread)
    return _error_of_clock(model, tau, known).T


def _error_of_clock(model: PRISM, tau: Times, information: Floats) -> Floats:
    basis = clock_basis(model, np.clip(np.nan_to_num(tau, nan=model.ages[0]), *model.ages))
    scale = np.sqrt(np.diagonal(information, axis1=-2, axis2=-1))
    scale = np.where(scale > 0, scale, 1.0)
    scale = scale[..., :, None] * scale[..., None, :]
    inverse = np.linalg.inv(information / scale + UNKNOWN * np.eye(basis.shape[1])) / scale
    products = (basis[:, :, None] * basis[:, None, :]).reshape(len(basis), -1)
    variance = inverse.reshape(*inverse.shape[:-2], -1) @ products.T
    return np.sqrt(np.maximum(variance, 0.0))
