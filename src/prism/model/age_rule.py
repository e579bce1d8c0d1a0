"""Calendar age read off a shape: by the clock, and by regression where people are few."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from prism.baselines import AgeRidge
from prism.calibration import robust_scale
from prism.cohort import Correspondence
from prism.covariation import Covariation
from prism.model.clock import clock_ages, clock_spread
from prism.model.state import date
from prism.typing import Floats, Seen, Times

if TYPE_CHECKING:
    from prism.model.calibrate import CrossFit
    from prism.model.core import PRISM

FEW = 30  # subjects from whom a clock is learned so well that a regression counts half
FEWEST_ROWS = 3  # to regress on
PART_STEP = 4  # of the clock's ages, each is looked at where a shape shows only some points


@dataclass(frozen=True)
class AgeRule:
    """How calendar age is told from a shape: by the clock, and by regression where people are few.

    Attributes:
        ridge: Regression of age on displacements, (M n) in a row.
        modes: Share of the modes that counts in the clock's reading.
        clock_scale: Found over claimed spread of that reading about the calendar.
        ridge_error: Standard deviation of the regression's; infinite where none was learned.
        scale: Found over claimed spread of both together.
    """

    ridge: AgeRidge
    modes: float = 0.0
    clock_scale: float = 1.0
    ridge_error: float = np.inf
    scale: float = 1.0

    def ridge_share(self, spread: Floats, subjects: int, gap: float | Floats = 0.0) -> Floats:
        """[Eq. age-share] b = n0 / (n0 + n) s^2 / (s^2 + e^2), where the clock spreads by s (N,).

        Weights by precision, as of two readings that err apart. What they err together is what
        people differ in; what the clock errs by itself is its mean's, and fades with the subjects.
        A regression errs by `gap` more where points are missing, which it fills.
        """
        error = np.square(self.ridge_error) + np.square(gap)
        return FEW / (FEW + subjects) * np.square(spread) / (np.square(spread) + error)

    def claimed(self, spread: Floats, subjects: int, gap: float | Floats = 0.0) -> Floats:
        """Spread about the calendar of both together, as of readings that err apart, (N,)."""
        share = self.ridge_share(spread, subjects, gap)
        error = np.minimum(np.hypot(self.ridge_error, gap), np.finfo(float).max)
        return np.hypot((1 - share) * spread, np.where(share > 0, share * error, 0.0))

    def gap(self, seen: Seen | None) -> float:
        """What the regression errs by more of shapes that show only the points `seen` (M,)."""
        if seen is None or seen.all():
            return 0.0
        n = len(self.ridge.subspace.mean) // len(seen)
        return self.ridge.gap_error(np.repeat(seen, n))


def learn_age_rule(
    model: PRISM, how: Covariation, cross: CrossFit, clocks: Sequence[Times], modes: float
) -> AgeRule:
    """Measure clock and regression against the calendar, apart and together.

    Args:
        model: Not yet calibrated.
        how: The covariation that will date new people.
        cross: Visits of people not seen.
        clocks: Readings (N,) of their ages by several judges; scales are geometric means.
        modes: Share of the modes in these readings.
    """
    t, seen, (regressed, ridge) = cross.seen.t, cross.cohort.observed, _regressed(cross)

    def scale(readings: Sequence[Times], claimed: Floats) -> float:
        found = [robust_scale((each - t) / claimed, cross.seen.subject) for each in readings]
        return float(np.exp(np.mean(np.log(found))))

    error = scale([regressed], np.ones(len(t))) if np.isfinite(regressed).any() else np.inf
    rule, gap = AgeRule(ridge, modes, ridge_error=error), np.zeros(len(t))
    spread = np.maximum(clock_spread(model, how, t, modes, seen), _least(model))
    for row in np.flatnonzero(~seen.all(axis=1)):
        gap[row] = rule.gap(seen[row])
    rule = replace(rule, clock_scale=scale(clocks, spread))
    spread, n = rule.clock_scale * spread, model.subjects
    readings = [_blended(tau, regressed, rule.ridge_share(spread, n, gap)) for tau in clocks]
    return replace(rule, scale=scale(readings, rule.claimed(spread, n, gap)))


def age_reading(model: PRISM, cohort: Correspondence, seen: Seen | None = None) -> Times:
    """[Eq. age-reading] (1 - b) tau + b r, (N,): the clock's reading and the regression's.

    The clock asks which age explains the shape, and is undone by every error of a mean learned
    from few; a regression asks the shape for its age, and shrinks it. Their errors differ, and
    grow where all shapes show only the points `seen` (M,).
    """
    rule, d = model.calibration.age, model.displacements(cohort)
    tau = date(model.covariation, model.table, d, rule.modes).tau
    share = rule.ridge_share(age_clock_spread(model, tau, seen), model.subjects, rule.gap(seen))
    return _blended(tau, rule.ridge(d.reshape(len(d), -1)), share)


def _blended(tau: Times, regressed: Times, share: Floats) -> Times:
    """Age by clock and regression, (N,); the clock's alone where nothing was regressed."""
    return np.where(np.isnan(regressed), tau, tau + share * (regressed - tau))


def age_spread(model: PRISM, t: Times, seen: Seen | None = None) -> Times:
    """How far the reading of age and age itself differ among people of ages t: (N,).

    Of people who show the points `seen` (M,), or all.
    """
    rule, spread = model.calibration.age, age_clock_spread(model, t, seen)
    return rule.scale * rule.claimed(spread, model.subjects, rule.gap(seen))


def age_clock_spread(model: PRISM, t: Times, seen: Seen | None = None) -> Times:
    """The same of the clock alone, (N,); beyond the training ages that of the nearer end."""
    rule, ages = model.calibration.age, clock_ages(model)
    if seen is not None and not seen.all():
        ages = ages[::PART_STEP]
    spread = clock_spread(model, model.covariation, ages, rule.modes, seen)
    return np.interp(t, ages, rule.clock_scale * np.maximum(spread, _least(model)))


def _least(model: PRISM) -> float:
    """Least spread, so that divisions by it stay finite."""
    return 1e-9 * (model.ages[1] - model.ages[0])


def _regressed(cross: CrossFit) -> tuple[Times, AgeRidge]:
    """Ages (N,) of subjects that the regression has not seen, NaN where too few are left to it.

    And the regression on all.
    """
    seen = cross.seen
    rows = (seen.mu + seen.r).reshape(len(seen.t), -1)
    start = (seen.mu + np.nan_to_num(seen.r)).reshape(len(seen.t), -1)
    found = np.full(len(seen.t), np.nan)
    for k in np.unique(cross.fold):
        rest, new = cross.fold != k, cross.fold == k
        if rest.sum() >= FEWEST_ROWS:
            ridge = AgeRidge.fit(rows[rest], start[rest], seen.t[rest], seen.subject[rest])
            found[new] = ridge(rows[new])
    return found, AgeRidge.fit(rows, start, seen.t, seen.subject)
