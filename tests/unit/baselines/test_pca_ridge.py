from __future__ import annotations

import numpy as np
import pytest

from prism.baselines import PCARidge
from prism.baselines.age_ridge import STRENGTHS, _best_strength, _kept, _left_out_error, _ridge
from prism.errors import FitError, QueryError
from tests.unit.baselines.cohorts import ages, cohort, cubic, linear, with_gaps


def test_an_exact_cubic_course_of_low_rank_is_recovered() -> None:
    t, at = ages(60), np.linspace(5, 190, 11)
    model = PCARidge.fit(cohort(cubic(t), t))
    assert model.ridge.subspace.axes.shape[1] == 3  # not 20: the data have no more
    low, high = t.min(), t.max()
    at = at[(low < at) & (at < high)]
    np.testing.assert_allclose(model.mean_shapes(at), cubic(at), atol=1e-7)


def test_the_course_is_recovered_through_gaps() -> None:
    t = ages(80)
    model = PCARidge.fit(cohort(with_gaps(cubic(t)), t))
    np.testing.assert_allclose(model.mean_shapes(t), cubic(t), atol=1e-6)


def test_age_is_exact_on_linear_growth_with_and_without_gaps() -> None:
    t, later = ages(40), ages(15, seed=1)
    model = PCARidge.fit(cohort(linear(t), t))
    np.testing.assert_allclose(model.age(cohort(linear(later), later)), later, atol=1e-5)
    gaps = cohort(with_gaps(linear(later), 0.5), np.full(15, np.nan))
    np.testing.assert_allclose(model.age(gaps), later, atol=1e-3)


def test_the_ridge_is_the_textbooks() -> None:
    rng = np.random.default_rng(0)
    X, t = rng.standard_normal((30, 4)) * [5, 3, 1, 0.2], rng.standard_normal(30)
    weights, intercept = _ridge(X, t, 0.1)
    centred = X - X.mean(axis=0)
    penalty = 0.1 * np.linalg.eigvalsh(centred.T @ centred)[-1]
    expected = np.linalg.solve(centred.T @ centred + penalty * np.eye(4), centred.T @ t)
    np.testing.assert_allclose(weights, expected)
    assert intercept == pytest.approx(t.mean() - X.mean(axis=0) @ expected)


def test_the_strength_is_the_one_that_dates_left_out_subjects_best() -> None:
    rng = np.random.default_rng(2)
    visits = np.tile([1, 3, 5], 5)
    subject = np.repeat([f"s{i}" for i in range(15)], visits)
    own = np.repeat(rng.standard_normal((15, 6)), visits, axis=0)  # traits that betray a subject
    t = rng.uniform(0, 10, 45)
    X = own + t[:, None] * rng.standard_normal(6) / 5 + rng.standard_normal((45, 6)) / 2
    X = X - X.mean(axis=0)

    def error(strength: float) -> float:
        penalty = strength * np.linalg.norm(X, 2) ** 2
        design = np.concatenate([np.ones((45, 1)), X], axis=1)
        ridge = np.diag([0.0] + [penalty] * 6)
        total = 0.0
        for name in set(subject):
            rest = design[subject != name]
            w = np.linalg.solve(rest.T @ rest + ridge, rest.T @ t[subject != name])
            total += float(((design[subject == name] @ w - t[subject == name]) ** 2).sum())
        return total / 45

    U, singular, _ = np.linalg.svd(X, full_matrices=False)
    groups = [np.flatnonzero(subject == name) for name in set(subject)]
    for strength in (1e-6, 0.1, 10.0):
        short = _left_out_error(U, _kept(singular, strength), t, groups)
        assert short == pytest.approx(error(strength))
    best = min(STRENGTHS, key=error)
    assert _best_strength(X, t, subject) == pytest.approx(best)
    assert best not in (STRENGTHS[0], STRENGTHS[-1])


def test_the_order_of_rows_does_not_matter() -> None:
    t = ages(50)
    points = with_gaps(cubic(t) + 0.3 * np.random.default_rng(0).standard_normal((50, 12, 3)))
    data, order = cohort(points, t, visits=2), np.random.default_rng(1).permutation(50)
    a, b = PCARidge.fit(data, 8), PCARidge.fit(data[order], 8)
    np.testing.assert_allclose(a.age(data), b.age(data), rtol=1e-6)
    np.testing.assert_allclose(a.age(data)[order], a.age(data[order]))
    np.testing.assert_allclose(a.mean_shapes(t), b.mean_shapes(t), atol=1e-8)


def test_components_are_capped_by_the_data() -> None:
    t = ages(5)
    points = np.random.default_rng(0).standard_normal((5, 12, 3))
    assert PCARidge.fit(cohort(points, t)).ridge.subspace.axes.shape[1] == 4
    assert PCARidge.fit(cohort(points, t), components=2).ridge.subspace.axes.shape[1] == 2


def test_what_cannot_be_learnt_or_asked_is_refused() -> None:
    t = ages(6)
    with pytest.raises(FitError, match="1 of 6 training visits have no age"):
        PCARidge.fit(cohort(linear(t), np.where(np.arange(6) == 2, np.nan, t)))
    with pytest.raises(FitError, match="at least 3 shapes"):
        PCARidge.fit(cohort(linear(t), t)[:2])
    unseen = linear(t)
    unseen[:, 4] = np.nan
    with pytest.raises(FitError, match="point 4 is missing in every"):
        PCARidge.fit(cohort(unseen, t))
    with pytest.raises(QueryError, match=r"shape \(12, 3\)"):
        PCARidge.fit(cohort(linear(t), t)).age(cohort(linear(t)[:, :5], t))
