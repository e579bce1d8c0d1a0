"""The calendar age of an anatomy whose age is unknown, or known to within some error."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from prism.cohort import Correspondence
from prism.model import PRISM
from prism.model.age_rule import age_reading, age_spread
from prism.typing import Seen, Times

STEPS, LEVEL = 513, 0.9


@dataclass(frozen=True)
class AgePosterior:
    """What shape and record together say of the calendar age, in the time unit.

    Attributes:
        median, se: (N,) of the posterior, and its standard deviation; the age itself and zero where
            known. The posterior is skewed, as people differ more the older they are: its mean errs
            more, and the more so the wider it is.
        lower, upper: (N,) shortest 90% interval.
        uncertain: (N,) True where the age was unknown or given with an error.
    """

    median: Times
    se: Times
    lower: Times
    upper: Times
    uncertain: np.ndarray


def age_of(model: PRISM, cohort: Correspondence) -> AgePosterior:
    """What shapes say of ages that are unknown or uncertain; the others stay as they are.

    A shape is dated anew: what shows developmental time well, because people differ in it, may
    show the calendar badly.
    """
    t, error = cohort.visits.t, cohort.visits.t_error
    asked = _uncertain(t, error)
    median, se, lower, upper = t.copy(), np.zeros(len(t)), t.copy(), t.copy()
    for rows, seen in _seen_alike(cohort.observed, asked):
        reading = age_reading(model, cohort[rows], seen)
        found = age_posterior(model, reading, t[rows], error[rows], seen)
        median[rows], se[rows] = found.median, found.se
        lower[rows], upper[rows] = found.lower, found.upper
    return AgePosterior(median, se, lower, upper, asked)


def _seen_alike(observed: np.ndarray, asked: np.ndarray) -> Iterator[tuple[np.ndarray, Seen]]:
    """Rows asked for that show the same points, and those points (M,)."""
    which = np.flatnonzero(asked)
    masks, group = np.unique(observed[which], axis=0, return_inverse=True)
    for k, seen in enumerate(masks):
        yield which[group.ravel() == k], seen


def age_posterior(
    model: PRISM, reading: Times, t: Times, error: Times, seen: Seen | None = None
) -> AgePosterior:
    """[Eq. age-posterior] p(t | shape) ~ p(t) N(a; t, s(t)^2), on a grid of ages.

    An age given with an error is normal about its value beforehand; of an unknown one see
    `unknown_age`. s(t) is how far a and t differ among people of age t.

    Args:
        model: A trained model.
        reading: (N,) ages a as shapes show them, see `age_reading`; NaN where nothing is asked.
        t: (N,) their ages, NaN where unknown.
        error: (N,) standard errors of the ages.
        seen: (M,) points that the shapes show; all of them if not given.
    """
    uncertain = _uncertain(t, error)
    median, se, lower, upper = t.copy(), np.zeros(len(t)), t.copy(), t.copy()
    if uncertain.any():
        ages, chance = unknown_age(model)
        spread = age_spread(model, ages, seen)
        for row in np.flatnonzero(uncertain & ~np.isnan(reading)):
            grid, log_prior = ages, np.log(chance)
            if not np.isnan(t[row]):
                grid, log_prior = _about(t[row], error[row], _least(model))
            weight = _weights(grid, log_prior, np.interp(grid, ages, spread), reading[row])
            se[row] = np.sqrt(weight @ (grid - weight @ grid) ** 2)
            lower[row], median[row], upper[row] = _told(grid, weight)
    return AgePosterior(median, se, lower, upper, uncertain)


def unknown_age(model: PRISM) -> tuple[Times, Times]:
    """[Eq. unknown-age] Ages an anatomy may have, and how likely each is beforehand, (A,) each.

    Of n + 1 people whose ages come from one law the last is the oldest or the youngest with the
    chance 2 / (n + 1): so likely an age lies beyond those trained on, anywhere in the searched
    span; else anywhere among them. Where nobody's time is below zero, neither is this one's.
    """
    first, last = model.table.first, model.table.last
    ages = np.linspace(max(first, _least(model)), last, STEPS)
    beyond = model.outside_ages(ages)
    outside = 2 / (model.subjects + 1)
    chance = np.where(beyond, outside / beyond.sum(), (1 - outside) / (~beyond).sum())
    return ages, chance


def _least(model: PRISM) -> float:
    """Least age there can be: none is below zero where nobody's was."""
    return 0.0 if model.ages[0] >= 0 else -np.inf


def _about(t: float, error: float, least: float) -> tuple[Times, Times]:
    """Ages about one that is known with an error, and their log density beforehand."""
    grid = np.linspace(max(t - 4 * error, min(t, least)), t + 4 * error, STEPS)
    return grid, -0.5 * np.square((grid - t) / error)


def _told(grid: Times, weight: Times) -> tuple[float, float, float]:
    """Shortest 90% interval of weights on a grid, each spread evenly over its step, and median.

    The shortest holds the first and last of ages that may be, where they are the likeliest: the
    central one leaves out whoever was seen at the age at which a study began or ended.
    """
    below = np.cumsum(weight) - weight / 2
    start = np.linspace(0, 1 - LEVEL, STEPS)
    lower, upper = np.interp(start, below, grid), np.interp(start + LEVEL, below, grid)
    best = int(np.argmin(upper - lower))
    return float(lower[best]), float(np.interp(0.5, below, grid)), float(upper[best])


def _uncertain(t: Times, error: Times) -> np.ndarray:
    return np.isnan(t) | (error > 0)


def _weights(grid: Times, log_prior: Times, spread: Times, reading: float) -> Times:
    """Posterior weights of one visit on a grid of ages."""
    log = log_prior - 0.5 * np.square((reading - grid) / spread) - np.log(spread)
    weight = np.exp(log - log.max())
    return weight / weight.sum()


def with_ages(model: PRISM, cohort: Correspondence) -> tuple[Correspondence, np.ndarray]:
    """The cohort with the posterior median age where the age is unknown or uncertain, and where."""
    age = age_of(model, cohort)
    visits = replace(cohort.visits, t=np.where(age.uncertain, age.median, cohort.visits.t))
    return replace(cohort, visits=visits), age.uncertain
