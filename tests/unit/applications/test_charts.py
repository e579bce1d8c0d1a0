"""Growth charts against populations whose centiles are known exactly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

from prism.applications.charts import CENTILES, growth_chart, smooth_quantiles
from prism.errors import QueryError
from tests.problems.growing import Growing, growing_ball, growing_square

SQUARE: Any = growing_square()
SIGMA = 0.1  # of a standard deviation: three standard errors of the 97th of 4000 draws, and more


@pytest.mark.parametrize(
    ("at", "value"),
    [
        ("1:x", lambda tau: 1 + 0.1 * tau),
        ("right", lambda tau: 0.1 * np.sqrt(2) * tau),
        ("0-2", lambda tau: np.sqrt(8) * (1 + 0.1 * tau)),
        ("area", lambda tau: 4 * (1 + 0.1 * tau) ** 2),
    ],
)
def test_centiles_are_those_of_the_population(at: str, value: Any) -> None:
    found = growth_chart(SQUARE, at)
    exact = value(SQUARE.tau(found.levels, found.ages))
    spread = (exact[-1] - exact[0]) / (2 * 1.881)
    assert found.levels.tolist() == list(CENTILES)
    assert found.centiles.shape == (7, len(found.ages))
    assert np.abs((found.centiles - exact) / spread).max() < SIGMA


def test_volume_of_a_ball() -> None:
    model: Any = growing_ball()
    found = growth_chart(model, "volume", draws=500)
    exact = (1 + 0.1 * found.ages) ** 3 * 4 / 3 * np.pi
    np.testing.assert_allclose(found.centiles[3], exact, rtol=0.05)
    assert found.unit == "mm³"


def test_curves_never_cross_and_are_smooth() -> None:
    noisy: Any = replace(SQUARE, s0=1e-4, s1=1.0)  # from no spread to a wide one
    found = growth_chart(noisy, "1:x", centiles=(0.4, 1, 2, 2.5, 3, 50, 97, 99, 99.6), draws=300)
    assert (np.diff(found.centiles, axis=0) > 0).all()
    bend = np.abs(np.diff(found.centiles, 3, axis=1)).max()
    assert bend < 1e-3 * np.ptp(found.centiles)


def test_a_subject_stands_at_its_centile() -> None:
    # One standard deviation late at every visit: the 15.87th centile.
    t = [0.2, 0.9, 1.7]
    cohort = SQUARE.cohort([x - (0.05 + 0.1 * x) for x in t], t)
    found = growth_chart(SQUARE, "area", cohort, "a")
    assert found.visits.subject.tolist() == ["a", "a", "a"]
    np.testing.assert_allclose(found.centile, 100 * ndtr(-1.0), atol=2.0)
    np.testing.assert_allclose(
        found.value, 4 * (0.995 - 0.01 * np.array(t) + 0.1 * np.array(t)) ** 2
    )


def test_without_a_subject_everyone_is_there_and_without_a_cohort_nobody() -> None:
    cohort = SQUARE.cohort([0.5, 1.0], [0.5, 1.0])
    assert growth_chart(SQUARE, "area", cohort).visits.subject.tolist() == ["a", "a", "b"]
    alone = growth_chart(SQUARE, "area")
    assert len(alone.visits) == len(alone.value) == len(alone.centile) == 0


def test_extremes_are_told_no_further_than_the_draws_go() -> None:
    cohort = SQUARE.cohort([-9.0, 9.0], [1.0, 1.0])
    found = growth_chart(SQUARE, "1:x", cohort, "a")
    np.testing.assert_allclose(found.centile, [0.4, 99.6])


def test_missing_points_and_unknown_ages_are_said_not_guessed() -> None:
    cohort = SQUARE.cohort([0.5, 1.0, 1.5], [0.5, 1.0, np.nan])
    points = cohort.points.copy()
    points[0, 2] = np.nan
    gap = replace(cohort, points=points)
    found = growth_chart(SQUARE, "area", gap, "a")
    assert np.isnan(found.value).tolist() == [True, False, False]
    assert np.isnan(found.centile).tolist() == [True, False, True]
    assert not np.isnan(growth_chart(SQUARE, "0:x", gap, "a").value).any()


def test_ages_outside_the_range_are_flagged() -> None:
    found = growth_chart(SQUARE, "1:x", SQUARE.cohort([2.5], [2.5]), "a")
    assert found.ages[-1] == 2.5
    np.testing.assert_array_equal(found.extrapolated, found.ages > 2)
    assert found.visit_extrapolated.tolist() == [True]
    asked = growth_chart(SQUARE, "1:x", ages=np.array([1.0, -1.0]))
    assert asked.ages.tolist() == [-1.0, 1.0]
    assert asked.extrapolated.tolist() == [True, False]


def test_one_age_is_enough() -> None:
    found = growth_chart(SQUARE, "1:x", ages=np.array([1.0]))
    np.testing.assert_allclose(found.centiles[3], 1.1, atol=0.002)
    assert found.centiles.shape == (7, 1)


def test_what_does_not_vary_has_one_centile() -> None:
    still: Any = Growing(SQUARE.template, np.zeros((4, 2)), SQUARE.cells)
    found = growth_chart(still, "area", still.cohort([0.0], [1.0]), "a")
    np.testing.assert_allclose(found.centiles, 4.0, atol=1e-6)
    assert 0.4 <= found.centile[0] <= 99.6


def test_same_seed_same_chart() -> None:
    a, b, c = (growth_chart(SQUARE, "area", seed=seed, draws=300) for seed in (1, 1, 2))
    np.testing.assert_array_equal(a.centiles, b.centiles)
    assert (a.centiles != c.centiles).any()


def test_draws_come_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prism.applications.charts._BATCH", 800)
    found = growth_chart(SQUARE, "1:x", draws=450)
    np.testing.assert_allclose(found.centiles[3], 1 + 0.1 * found.ages, atol=0.01)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"centiles": (0, 50)}, "centiles must lie within 0.4 and 99.6"),
        ({"centiles": ()}, "centiles"),
        ({"centiles": (np.nan,)}, "centiles"),
        ({"ages": np.array([np.inf])}, "finite"),
        ({"subject": "a"}, "no cohort"),
        ({"subject": "c", "cohort": SQUARE.cohort([1.0], [1.0])}, "no subject 'c'"),
        ({"draws": 10}, "at least 250"),
    ],
)
def test_wrong_questions_are_refused(options: Any, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        growth_chart(SQUARE, "1:x", **options)


def test_smoothing_keeps_what_is_smooth() -> None:
    knots, levels = np.linspace(0, 1, 33), np.array([10.0, 50.0, 90.0])
    exact = np.stack([knots**2 - 0.5, knots**2, knots**2 + 1.0])
    np.testing.assert_allclose(smooth_quantiles(knots, levels, exact)(knots), exact, atol=1e-6)
