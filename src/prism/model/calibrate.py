"""Calibration inside `fit`: what subjects not seen teach about the model's own statements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from prism.calibration import LEVELS, between_factors, interval_factors
from prism.cohort import Correspondence
from prism.covariation import Covariation, Texture, fit_covariation, learn_texture
from prism.intrinsic import TimeTable
from prism.model.calibrated import Calibration
from prism.model.clock import (
    clock_ages,
    clock_covariance,
    clock_spread,
    clock_visits,
    clock_weight,
)
from prism.model.dating import choose_dating
from prism.model.forecasts import FEWEST_PAIRS, forecast_errors
from prism.model.normals import normal_scores
from prism.model.state import Residuals
from prism.typing import Floats, Strings

if TYPE_CHECKING:
    from prism.model.core import PRISM

MOST_VALUES, MOST_VISITS = 6_000_000, 2000  # residual coordinates and visits to calibrate on
MOST_DATED = 500  # visits to choose how to date by
FOLDS, FEW = 3, 100  # parts of what one member has not seen; people who are parted so
TOLERANCE_SHARE = 1 / 3  # of the noise floor


@dataclass(frozen=True)
class CrossFit:
    """Residuals of subjects the field has not seen, and judges that have not seen them.

    Attributes:
        cohort: The visits.
        seen: Their residuals.
        fold: (N,) which judge has not seen the visit's subject, see `_folds`.
        judges: Population and covariation of every fold.
    """

    cohort: Correspondence
    seen: Residuals
    fold: np.ndarray
    judges: list[tuple[TimeTable, Covariation]]

    def parts(self) -> Iterator[tuple[np.ndarray, TimeTable, Covariation]]:
        """Rows of every part that the sample has visits of, and who has not seen them."""
        for k, (table, how) in enumerate(self.judges):
            rows = np.flatnonzero(self.fold == k)
            if len(rows):
                yield rows, table, how

    def together(self, model: PRISM, how: Covariation) -> CrossFit:
        """The same judged by all members and one covariation, most of which have seen each."""
        seen = Residuals.of(model.table, model.template, self.cohort)
        return replace(self, seen=seen, judges=[(model.table, how)] * len(self.judges))

    def some(self, most: int) -> CrossFit:
        """At most so many visits, of as many subjects as can be."""
        return self.at(_spread_over_subjects(self.cohort, most))

    def at(self, rows: np.ndarray) -> CrossFit:
        """Select visits."""
        return replace(self, cohort=self.cohort[rows], seen=self.seen[rows], fold=self.fold[rows])


def calibrate(
    model: PRISM, cohort: Correspondence, held_out: list[list[str]]
) -> tuple[Covariation, Calibration]:
    """Learn the covariation, then measure every statement on subjects it was not learned from.

    Args:
        model: Population and encoder, not yet calibrated.
        cohort: The training cohort.
        held_out: Subjects each member of the population has not seen.
    """
    sample = _thin(cohort)
    seen = unseen_residuals(model, sample, held_out)
    tolerance = TOLERANCE_SHARE * model.population.floor
    how, recipe = fit_covariation(seen.r, seen.Sigma, seen.mu_t, seen.subject, seen.t, tolerance)
    fold, parts = _folds(seen.subject, held_out)
    hows = []
    for k in range(parts):
        rest = seen[fold != k]  # of a large cohort not every part need be in the sample
        data = rest.r, rest.Sigma, rest.mu_t, rest.subject, rest.t
        learned = fit_covariation(*data, tolerance, recipe)[0] if (fold == k).any() else how
        hows.append(learned)
    cross = CrossFit(sample, seen, fold, model.judges_of(hows))
    u, owner = _standardised_residuals(model, cohort, seen)
    population, none = interval_factors(u, owner), interval_factors(u[:0])
    ahead = forecast_errors(model, cross)
    enough = len(ahead.pooled) >= FEWEST_PAIRS
    known = forecast_errors(model, cross.together(model, how), ahead.pointwise) if enough else ahead
    whose = ahead.subject
    tempo, age = choose_dating(model, how, cross.some(MOST_DATED))
    spread = clock_spread(model, how, clock_ages(model), tempo.share * how.traits)
    unseen = sorted(set.intersection(*map(set, held_out)))  # subjects that no member has seen
    visits, pairs = clock_visits(model, cohort[~np.isin(cohort.visits.subject, unseen)])
    return how, Calibration(
        population=population,
        forecast=between_factors(ahead.pooled, known.pooled, whose) if enough else none,
        forecast_paper=between_factors(ahead.paper, known.paper, whose) if enough else population,
        forecast_pairs=len(ahead.pooled),
        pointwise=ahead.pointwise,
        **normal_scores(model, cross),
        modes=tempo.share,
        spread_scale=tempo.scale,
        age=age,
        clock=clock_covariance(model, visits, pairs, clock_weight(model).sum(axis=1), spread),
        clock_visits=visits,
        clock_pairs=pairs,
        coverage=_cross_coverage(u, u, owner),
        coverage_time=tempo.coverage,
        coverage_forecast=_cross_coverage(ahead.pooled, known.pooled, whose) if enough else {},
        texture=_texture(model, sample, how),
        panel=np.arange(parts) * len(held_out) // parts if len(held_out) > 1 else np.arange(parts),
        judges=tuple(hows),
    )


def _texture(model: PRISM, sample: Correspondence, how: Covariation) -> Texture:
    """How people stand about the population's own mean, which is what they are drawn about."""
    known = Residuals.of(model.table, model.template, sample)
    return learn_texture(how, known.r, known.Sigma, model.template)


def _folds(subject: Strings, held_out: list[list[str]]) -> tuple[np.ndarray, int]:
    """(N,) which part of the cohort a visit belongs to, and how many parts there are.

    All of a part have one member of the population that has not seen them. Where people are few
    the covariation misses whom it is learned without: parts are then small.
    """
    names = np.unique(subject).tolist()
    unseen, parts = held_out, FOLDS if len(names) <= FEW else 1
    if len(held_out) == 1:  # of a large cohort, where seeing a subject hardly matters
        unseen, parts = [names], FOLDS
    part = {
        name: parts * k + i % parts for k, own in enumerate(unseen) for i, name in enumerate(own)
    }
    return np.array([part[name] for name in subject]), parts * len(unseen)


def unseen_residuals(model: PRISM, sample: Correspondence, held_out: list[list[str]]) -> Residuals:
    """Residuals of every visit, as of a subject the population has not seen.

    With several members each subject has one that has not seen it: alone it is less steady than
    the average, so that what is learned from it errs on the safe side. One member is used for
    large cohorts only, where seeing a subject hardly matters.
    """
    if len(model.population.members) == 1:
        return Residuals.of(model.table, model.template, sample)
    parts, rows = [], []
    for table, names in zip(model.member_tables, held_out, strict=True):
        which = np.flatnonzero(np.isin(sample.visits.subject, names))
        if len(which):
            parts.append(Residuals.of(table, model.template, sample[which]))
            rows.append(which)
    return Residuals.join(parts)[np.argsort(np.concatenate(rows), kind="stable")]


def _thin(cohort: Correspondence) -> Correspondence:
    """A few visits of every subject, or of some subjects where shapes are very large."""
    most = max(8 * FOLDS, int(min(MOST_VALUES / cohort.template.size, MOST_VISITS)))
    if most >= 2 * len(cohort.visits.subjects) or len(cohort) <= most:
        return cohort[_spread_over_subjects(cohort, most)]
    subjects = cohort.visits.subjects  # pairs of visits matter more than people
    visits = len(cohort) / len(subjects)
    count = max(FOLDS, int(most / min(visits, 2)))
    chosen = np.linspace(0, len(subjects) - 1, min(count, len(subjects))).round().astype(int)
    some = cohort.of_subjects([subjects[i] for i in chosen])
    return some[_spread_over_subjects(some, most)]


def _spread_over_subjects(cohort: Correspondence, most: int) -> np.ndarray:
    """Rows of at most so many visits: one of every subject, then a second, and so on; rising."""
    order = np.random.default_rng(0).permutation(len(cohort))
    _, owner = np.unique(cohort.visits.subject, return_inverse=True)
    turn = np.empty(len(cohort), dtype=int)
    turn[order] = _running_count(owner[order])
    place = np.empty(len(cohort), dtype=int)
    place[order] = np.arange(len(cohort))
    return np.sort(np.lexsort((place, turn))[:most])


def _running_count(owner: np.ndarray) -> np.ndarray:
    """How often each entry has occurred before, (N,)."""
    order = np.argsort(owner, kind="stable")
    start = np.searchsorted(owner[order], owner[order])
    count = np.empty(len(owner), dtype=int)
    count[order] = np.arange(len(owner)) - start
    return count


def _standardised_residuals(
    model: PRISM, cohort: Correspondence, seen: Residuals
) -> tuple[Floats, Strings]:
    """(d - mu) / std of every coordinate, and whose: of all visits if one member learned them."""
    if len(model.population.members) > 1 or len(cohort) * cohort.template.size > 5 * MOST_VALUES:
        return seen.r / np.sqrt(np.diagonal(seen.Sigma, axis1=-2, axis2=-1)), seen.subject
    return standardised(model, cohort), cohort.visits.subject


def standardised(model: PRISM, cohort: Correspondence) -> Floats:
    """(d - mu) / std of every coordinate, (N, M, n); NaN where missing."""
    field = model.field_at(cohort.visits.t)
    d = torch.as_tensor(model.displacements(cohort))
    return ((d - field.mu) / field.std).numpy()


def _cross_coverage(alone: Floats, together: Floats, subject: Strings) -> dict[str, float]:
    """Nominal level -> share of a third of the people inside the interval learned on the others."""
    fold, inside = np.unique(subject, return_inverse=True)[1] % FOLDS, np.zeros((len(LEVELS), 2))
    if len(alone) < 2 * FOLDS or len(np.unique(fold)) != FOLDS:
        return {}
    for k in range(FOLDS):
        rest = fold != k
        factors = between_factors(alone[rest], together[rest], subject[rest])
        new = np.abs([alone[fold == k], together[fold == k]])
        for i in range(len(LEVELS)):
            inside[i] += (new <= factors[i]).sum(), (~np.isnan(new)).sum()
    return {
        f"{level:g}": float(a / max(b, 1)) for level, (a, b) in zip(LEVELS, inside, strict=True)
    }
