from __future__ import annotations

import numpy as np
import pytest

from prism.baselines import PointwiseSpline
from prism.errors import QueryError
from tests.unit.baselines.cohorts import ages, cohort, cubic, with_gaps


def _noisy(count: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Shapes whose noise grows with age, their ages and their noise's standard deviation."""
    t = ages(count, seed)
    std = 0.1 + t / 200
    noise = np.random.default_rng(seed + 100).standard_normal((count, 12, 3))
    return cubic(t) + std[:, None, None] * noise, t, std


def test_an_exact_cubic_course_is_recovered_through_gaps() -> None:
    t = ages(80)
    model = PointwiseSpline.fit(cohort(with_gaps(cubic(t)), t))
    np.testing.assert_allclose(model.mean_shapes(t), cubic(t), atol=1e-7)


def test_the_variance_follows_age() -> None:
    points, t, _ = _noisy(1500, 0)
    model = PointwiseSpline.fit(cohort(with_gaps(points), t))
    young, old = (model.std[np.abs(model.t_grid - age).argmin()].mean() for age in (60, 140))
    assert young == pytest.approx(0.4, rel=0.1)
    assert old == pytest.approx(0.8, rel=0.1)


def test_the_score_is_the_mean_of_the_top_twentieth() -> None:
    points, t, _ = _noisy(200, 0)
    model = PointwiseSpline.fit(cohort(points, t))
    middle = model.t_grid[[16, 20]]
    shapes, std = model.mean_shapes(middle), model.std[[16, 20]].reshape(2, 12, 3)
    shapes[0, 3] += std[0, 3] * [3, 0, 4]  # |z| = 5, the top one of twelve
    shapes[1, 7] += std[1, 7] * [0, 6, 0]
    shapes[1, 7 + 1] = np.nan
    np.testing.assert_allclose(model.score(cohort(shapes, middle)), [5, 6], rtol=1e-9)


def test_between_tabulated_ages_the_spread_is_linear() -> None:
    points, t, _ = _noisy(200, 0)
    model = PointwiseSpline.fit(cohort(points, t))
    at = model.t_grid[30:32].mean(keepdims=True)
    std = model.std[30:32].mean(axis=0).reshape(12, 3)
    shape = model.mean_shapes(at)
    shape[0, 5] += std[5] * [2, 0, 0]
    assert model.score(cohort(shape, at))[0] == pytest.approx(2, rel=1e-9)


def test_a_planted_outlier_is_ranked_first_whatever_is_missing() -> None:
    model = PointwiseSpline.fit(cohort(*_noisy(150, 0)[:2]))
    points, t, std = _noisy(40, 1)
    gaps = with_gaps(points)
    gaps[11] = points[11]
    gaps[11, 4] += 8 * std[11]
    assert np.argmax(model.score(cohort(gaps, t))) == 11


def test_the_order_of_rows_does_not_matter() -> None:
    points, t, _ = _noisy(60, 0)
    data, order = cohort(with_gaps(points), t), np.random.default_rng(1).permutation(60)
    a, b = PointwiseSpline.fit(data), PointwiseSpline.fit(data[order])
    np.testing.assert_allclose(a.score(data), b.score(data), rtol=1e-8)
    np.testing.assert_allclose(a.score(data)[order], a.score(data[order]))
    np.testing.assert_allclose(a.mean_shapes(t), b.mean_shapes(t), atol=1e-9)


def test_noise_free_shapes_and_one_age_give_finite_scores() -> None:
    t = ages(30)
    exact = PointwiseSpline.fit(cohort(cubic(t), t))
    assert np.isfinite(exact.score(cohort(cubic(t) + 0.1, t))).all()
    same = cohort(_noisy(20, 0)[0], np.full(20, 50.0))
    assert np.isfinite(PointwiseSpline.fit(same).score(same)).all()


def test_a_score_for_age_needs_an_age() -> None:
    points, t, _ = _noisy(20, 0)
    model = PointwiseSpline.fit(cohort(points, t))
    with pytest.raises(QueryError, match="20 of 20 visits have no age"):
        model.score(cohort(points, np.full(20, np.nan)))
