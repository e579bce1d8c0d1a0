from __future__ import annotations

import numpy as np
import pytest

from prism.course import Course
from tests.unit.baselines.cohorts import ages


def test_a_cubic_is_recovered_with_gaps_and_any_knots() -> None:
    t = ages(80)
    values = np.stack([1 + t / 50 - (t / 100) ** 3, (t / 90) ** 2, 0 * t + 7], axis=-1)
    holes = values.copy()
    holes[::3, 0] = holes[1::4, 1] = np.nan
    at = np.linspace(t.min(), t.max(), 7)
    truth = np.stack([1 + at / 50 - (at / 100) ** 3, (at / 90) ** 2, 0 * at + 7], axis=-1)
    for inner in (0, 3):
        np.testing.assert_allclose(Course.fit(holes, t, inner)(at), truth, atol=1e-8)
    np.testing.assert_allclose(Course.fit(holes, t).fill(holes, t), values, atol=1e-8)


def test_beyond_its_ends_a_course_runs_along_its_tangent() -> None:
    t = np.linspace(10, 20, 40)
    course = Course.fit(((t - 10) ** 3)[:, None], t)
    np.testing.assert_allclose(course([5.0, 22.0])[:, 0], [0, 1000 + 2 * 300], atol=1e-5)


def test_cross_validation_spends_knots_only_where_the_data_bend() -> None:
    t, rng = ages(300), np.random.default_rng(0)
    noise = 0.1 * rng.standard_normal((300, 4))
    straight = Course.fit_smooth(t[:, None] / 100 + noise, t, (0, 2, 8))
    wavy = Course.fit_smooth(np.sin(t / 12)[:, None] + noise, t, (0, 2, 8))
    assert [len(course.coefficients) for course in (straight, wavy)] == [4, 12]


@pytest.mark.parametrize("seen", [1, 2])
def test_what_few_rows_leave_open_stays_near_a_constant(seen: int) -> None:
    t = np.linspace(0, 1, 9)
    values = np.full((9, 1), np.nan)
    values[:seen] = 3.0
    np.testing.assert_allclose(Course.fit(values, t)(t), 3.0, atol=1e-6)


def test_one_age_gives_a_constant() -> None:
    course = Course.fit(np.array([[1.0], [3.0]]), np.array([4.0, 4.0]))
    np.testing.assert_allclose(course([0.0, 4.0, 9.0])[1], 2.0)
    assert np.isfinite(course([0.0, 9.0])).all()


def test_what_one_person_has_at_all_visits_is_no_bend() -> None:
    rng = np.random.default_rng(1)
    subject = np.repeat(np.arange(10), 8)
    t = np.concatenate([rng.uniform(10 * k, 10 * k + 10, 8) for k in range(10)])
    values = t[:, None] / 50 + rng.standard_normal((10, 6))[subject]
    assert len(Course.fit_smooth(values, t).coefficients) > 4
    assert len(Course.fit_of_people(values, t, subject).coefficients) == 4


def test_people_who_differ_much_at_their_age_count_little() -> None:
    rng = np.random.default_rng(2)
    t = np.linspace(0, 1, 60)
    wild = np.where(t > 0.5, 1.0, 0.01)[:, None] * rng.standard_normal((60, 20))
    early = t < 0.2
    even, weighed = Course.fit(wild, t), Course.fit_of_people(wild, t, np.arange(60))
    assert np.square(weighed(t[early])).mean() < 0.2 * np.square(even(t[early])).mean()


@pytest.mark.parametrize("inner", [2, 3, 8])
def test_ages_seen_in_waves_leave_no_empty_interval(inner: int) -> None:
    t = np.repeat([0.0, 1.0, 2.0], 6)
    course = Course.fit(t[:, None] ** 2, t, inner=inner)
    np.testing.assert_allclose(course(np.array([0.0, 1.0, 2.0]))[:, 0], [0, 1, 4], atol=1e-3)
