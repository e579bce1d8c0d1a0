from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from prism.applications import anomaly, intrinsic_time
from prism.applications.ages import age_of, age_posterior, unknown_age, with_ages
from prism.cohort import Correspondence
from prism.model import PRISM
from prism.model.age_rule import age_spread
from prism.simulate.study import Study


def dated(cohort: Correspondence, t: np.ndarray, error: object = None) -> Correspondence:
    """The cohort with other ages, and their errors where given."""
    columns = {} if error is None else {"t_error": np.broadcast_to(error, t.shape).astype(np.str_)}
    visits = replace(cohort.visits, t=t, columns={**cohort.visits.columns, **columns})
    return replace(cohort, visits=visits)


@pytest.mark.parametrize("error", [None, "", "0"])
def test_a_known_age_stays_what_it_is(
    tiny_model: PRISM, tiny_study: Study, error: str | None
) -> None:
    cohort = tiny_study.correspondence
    found = intrinsic_time(tiny_model, dated(cohort, cohort.visits.t, error)).age
    np.testing.assert_array_equal(found.median, cohort.visits.t)
    np.testing.assert_array_equal(found.lower, cohort.visits.t)
    np.testing.assert_array_equal(found.upper, cohort.visits.t)
    assert not found.se.any()
    assert not found.uncertain.any()


def test_an_error_that_goes_to_zero_brings_the_age_back(
    tiny_model: PRISM, tiny_study: Study
) -> None:
    cohort = tiny_study.correspondence
    gaps = []
    for error in (1e-1, 1e-2, 1e-3, 1e-4):
        found = intrinsic_time(tiny_model, dated(cohort, cohort.visits.t, error)).age
        assert found.uncertain.all()
        assert (found.se <= 1.01 * error).all()
        gaps.append(np.abs(found.median - cohort.visits.t).max())
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < 1e-5


def test_an_unknown_age_is_found(tiny_model: PRISM, tiny_study: Study) -> None:
    cohort = tiny_study.correspondence
    found = intrinsic_time(tiny_model, dated(cohort, np.full(len(cohort), np.nan))).age
    assert (found.lower < found.median).all()
    assert (found.median < found.upper).all()
    inside = (found.lower <= cohort.visits.t) & (cohort.visits.t <= found.upper)
    assert inside.mean() > 0.75  # of a nominal 0.9, 12 subjects
    assert np.abs(found.median - cohort.visits.t).mean() < 0.2


def of_subjects(model: PRISM, count: int) -> PRISM:
    """The same model, as if learned from so many subjects."""
    return replace(model, provenance=model.provenance | {"subjects": count})


@pytest.mark.parametrize("count", [3, 18, 1000])
def test_one_more_person_is_the_oldest_or_the_youngest_by_chance(
    tiny_model: PRISM, count: int
) -> None:
    ages, chance = unknown_age(of_subjects(tiny_model, count))
    beyond = tiny_model.outside_ages(ages)
    assert chance.sum() == pytest.approx(1)
    assert chance[beyond].sum() == pytest.approx(2 / (count + 1))
    assert np.ptp(chance[beyond]) == 0
    assert ages[-1] == tiny_model.table.last
    assert ages[0] == 0 <= tiny_model.ages[0]


def test_few_people_do_not_hold_an_age_within_their_own(tiny_model: PRISM) -> None:
    """Who is older than the few learned from was dated to the oldest of them."""
    last = tiny_model.ages[1]
    tau = last + 2 * age_spread(tiny_model, np.array([last]))
    few, many = (
        age_posterior(of_subjects(tiny_model, count), tau, np.array([np.nan]), np.zeros(1))
        for count in (3, 10**6)
    )
    step = np.diff(unknown_age(tiny_model)[0])[0]
    assert many.upper < last + step
    assert last < few.median
    assert few.lower < tau < few.upper


def test_the_interval_is_the_shortest_and_holds_the_age_at_which_a_study_began(
    tiny_model: PRISM,
) -> None:
    many, first = of_subjects(tiny_model, 10**6), tiny_model.ages[0]
    found = age_posterior(many, np.array([first, 0.5]), np.full(2, np.nan), np.zeros(2))
    ages, chance = unknown_age(many)
    assert found.lower[0] < first + np.diff(ages)[0]
    spread = age_spread(many, ages)
    for row, reading in enumerate([first, 0.5]):
        weight = chance * np.exp(-0.5 * ((reading - ages) / spread) ** 2) / spread
        inside = (ages >= found.lower[row]) & (ages <= found.upper[row])
        assert weight[inside].sum() / weight.sum() == pytest.approx(0.9, abs=0.02)
        known = inside & ~many.outside_ages(ages)
        assert weight[known].min() > 0.9 * weight[~inside].max()


def test_the_posterior_is_that_of_quadrature(tiny_model: PRISM) -> None:
    first, last = tiny_model.ages
    t = np.linspace(max(tiny_model.table.first, 0.0), tiny_model.table.last, 40_001)
    spread = age_spread(tiny_model, t)
    tau = np.array([0.3, 0.6])
    found = age_posterior(tiny_model, tau, np.array([np.nan, 0.5]), np.array([0.0, 0.05]))
    outside = 2 / (tiny_model.subjects + 1)
    within = (t >= first) & (t <= last)
    even = np.where(within, (1 - outside) / within.mean(), outside / (1 - within.mean()))
    for row, prior in enumerate([even, np.exp(-0.5 * ((t - 0.5) / 0.05) ** 2)]):
        weight = prior * np.exp(-0.5 * ((tau[row] - t) / spread) ** 2) / spread
        weight = weight / weight.sum()
        spread_out = np.sqrt(weight @ (t - weight @ t) ** 2)
        assert found.se[row] == pytest.approx(spread_out, rel=0.02)
        below, start = np.cumsum(weight), np.linspace(0, 0.1, 2001)
        assert found.median[row] == pytest.approx(np.interp(0.5, below, t), abs=2e-3)
        lengths = np.interp(start + 0.9, below, t) - np.interp(start, below, t)
        assert found.upper[row] - found.lower[row] == pytest.approx(lengths.min(), rel=0.01)
        held = np.interp([found.lower[row], found.upper[row]], t, below)
        assert held[1] - held[0] == pytest.approx(0.9, abs=0.005)


def test_an_uncertain_age_is_replaced_by_the_posterior_mean_and_flagged(
    tiny_model: PRISM, tiny_study: Study
) -> None:
    cohort = tiny_study.correspondence
    errors = np.where(np.arange(len(cohort)) % 2 == 0, "0.2", "")
    unsure = dated(cohort, cohort.visits.t, errors)
    aged, assumed = with_ages(tiny_model, unsure)
    np.testing.assert_array_equal(assumed, errors != "")
    np.testing.assert_array_equal(aged.visits.t[~assumed], cohort.visits.t[~assumed])
    age = intrinsic_time(tiny_model, unsure).age
    np.testing.assert_array_equal(aged.visits.t[assumed], age.median[assumed])
    found = anomaly(tiny_model, unsure)
    np.testing.assert_array_equal(found.age_assumed, assumed)
    known = anomaly(tiny_model, dated(cohort, aged.visits.t))
    np.testing.assert_array_equal(found.score, known.score)


def test_a_posterior_never_runs_away_from_both_shape_and_record(tiny_model: PRISM) -> None:
    tau, t, error = np.array([0.2, 0.8]), np.full(2, 0.5), np.full(2, 0.1)
    found = age_posterior(tiny_model, tau, t, error)
    assert 0.2 < found.median[0] < 0.5 < found.median[1] < 0.8
    assert (found.se < 0.1).all()


def test_an_age_read_off_a_few_points_is_told_as_wide_as_it_errs(
    tiny_model: PRISM, tiny_study: Study
) -> None:
    cohort = tiny_study.correspondence
    t, points = cohort.visits.t, cohort.points.copy()
    points[:, 6:] = np.nan
    unknown = replace(cohort.visits, t=np.full(len(t), np.nan))
    whole, part = (
        age_of(tiny_model, replace(cohort, points=each, visits=unknown))
        for each in (cohort.points, points)
    )
    assert np.median(part.upper - part.lower) > 1.5 * np.median(whole.upper - whole.lower)
    held = np.mean((part.lower <= t) & (t <= part.upper))
    assert held > 0.8
    one = points.copy()
    one[::2] = cohort.points[::2]  # shapes of both kinds beside each other
    mixed = age_of(tiny_model, replace(cohort, points=one, visits=unknown))
    np.testing.assert_allclose(mixed.median[::2], whole.median[::2], atol=1e-6)
    np.testing.assert_allclose(mixed.median[1::2], part.median[1::2], atol=1e-6)


def test_no_age_is_below_zero_where_nobodys_was(tiny_model: PRISM) -> None:
    found = age_posterior(tiny_model, np.array([0.01]), np.array([0.02]), np.array([0.2]))
    assert 0 <= found.lower[0] < found.median[0] < found.upper[0]
