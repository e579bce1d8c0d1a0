"""Calendar age by clock and regression."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from prism.baselines import AgeRidge
from prism.model import PRISM
from prism.model.age_rule import (
    FEW,
    AgeRule,
    _blended,
    _regressed,
    age_clock_spread,
    age_reading,
    age_spread,
)
from prism.model.calibrate import CrossFit
from prism.model.state import Residuals, date
from prism.simulate.study import Study


def rule(error: float) -> AgeRule:
    return AgeRule(AgeRidge.none(4), ridge_error=error)


def test_two_readings_that_err_apart_are_weighed_by_precision_where_people_are_few() -> None:
    """Of a single person the blend is the least noisy one: 1 / (1 / s^2 + 1 / e^2)."""
    s, e = np.array([0.5, 1.0, 3.0]), 2.0
    assert pytest.approx(1, abs=0.04) == FEW / (FEW + 1)
    np.testing.assert_allclose(rule(e).ridge_share(s, 0), s**2 / (s**2 + e**2))
    np.testing.assert_allclose(rule(e).claimed(s, 0) ** -2, s**-2 + e**-2)
    rng = np.random.default_rng(0)
    share = rule(e).ridge_share(s, FEW)
    drawn = (1 - share) * s * rng.normal(size=(200_000, 3))
    drawn += share * e * rng.normal(size=(200_000, 3))
    np.testing.assert_allclose(rule(e).claimed(s, FEW), drawn.std(axis=0), rtol=0.01)


def test_the_regression_fades_with_the_people_and_is_silent_where_nothing_was_learned() -> None:
    s = np.array([0.5, 3.0])
    few, many = (rule(2.0).ridge_share(s, n) for n in (10, 100_000))
    assert (few > 0.03).all()
    assert (many < 1e-3).all()
    np.testing.assert_allclose(rule(2.0).claimed(s, 10**9), s, rtol=1e-6)
    np.testing.assert_array_equal(rule(np.inf).ridge_share(s, 10), 0)
    np.testing.assert_array_equal(rule(np.inf).claimed(s, 10), s)


def test_the_reading_lies_between_clock_and_regression(
    tiny_model: PRISM, tiny_study: Study
) -> None:
    cohort, known = tiny_study.correspondence, tiny_model.calibration.age
    d, how = tiny_model.displacements(cohort), tiny_model.covariation
    tau = date(how, tiny_model.table, d, known.modes).tau
    regressed = known.ridge(d.reshape(len(d), -1))
    share = known.ridge_share(age_clock_spread(tiny_model, tau), tiny_model.subjects)
    assert ((share > 0) & (share < 1)).all()
    expected = (1 - share) * tau + share * regressed
    np.testing.assert_allclose(age_reading(tiny_model, cohort), expected)
    silent = _blended(tau, np.full(len(tau), np.nan), share)
    np.testing.assert_array_equal(silent, tau)


def test_the_spread_about_the_calendar_is_the_one_that_was_found(tiny_model: PRISM) -> None:
    t, known = np.linspace(*tiny_model.ages, 7), tiny_model.calibration.age
    doubled = replace(tiny_model.calibration, age=replace(known, scale=2 * known.scale))
    wide = age_spread(replace(tiny_model, calibration=doubled), t)
    np.testing.assert_allclose(wide, 2 * age_spread(tiny_model, t))
    beyond = age_spread(tiny_model, np.array([tiny_model.ages[1], tiny_model.ages[1] + 9]))
    assert beyond[0] == beyond[1] > 0


def test_the_less_is_seen_the_wider_age_is_told(tiny_model: PRISM) -> None:
    t, known = np.linspace(*tiny_model.ages, 5), tiny_model.calibration.age
    M = len(tiny_model.template)
    spread, gap = [age_spread(tiny_model, t)], [0.0]
    for count in (M, M // 2, M // 10, 0):
        seen = np.arange(M) < count
        spread.append(age_spread(tiny_model, t, seen))
        gap.append(known.gap(seen))
    np.testing.assert_array_equal(spread[0], spread[1])
    assert gap[0] == gap[1] == 0 < gap[2] < gap[3] < gap[4]
    for wide, less in zip(spread[2:], spread[1:], strict=False):
        assert (wide > less).all()


def test_regression_helps_few_people_to_their_age(tiny_model: PRISM, tiny_study: Study) -> None:
    """What was learned is a regression that dates the people it was learned from."""
    d, t = tiny_model.displacements(tiny_study.correspondence), tiny_study.correspondence.visits.t
    known = tiny_model.calibration.age
    off = known.ridge(d.reshape(len(d), -1)) - t
    assert np.abs(off).mean() < 0.5 * np.abs(t - t.mean()).mean()
    assert known.ridge_error > off.std()  # people not seen are harder


def test_nobodys_own_age_tells_how_well_it_is_regressed(
    tiny_model: PRISM, tiny_study: Study
) -> None:
    cohort = tiny_study.correspondence
    seen = Residuals.of(tiny_model.table, tiny_model.template, cohort)
    fold = np.unique(cohort.visits.subject, return_inverse=True)[1] % 3
    cross = CrossFit(cohort, seen, fold, [])
    found, _ = _regressed(cross)
    older = replace(seen, t=seen.t + np.where(fold == 1, 0.3, 0.0))
    moved, _ = _regressed(replace(cross, seen=older))
    np.testing.assert_array_equal(moved[fold == 1], found[fold == 1])
    assert (np.abs(moved - found)[fold != 1] > 1e-3).all()
