from __future__ import annotations

import numpy as np
import pytest

from prism.baselines import PPCAScore
from prism.baselines.subspace import Subspace
from tests.unit.baselines.cohorts import ages, cohort, linear, with_gaps


def _shapes(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    t = ages(count, seed)
    return linear(t) + 0.5 * np.random.default_rng(seed).standard_normal((count, 12, 3)), t


def _dense(space: Subspace) -> np.ndarray:
    V = space.axes
    off = np.eye(len(V)) - V @ V.T
    return V @ np.diag(space.variances) @ V.T + space.rest * off


def test_a_planted_outlier_is_ranked_first_whatever_is_missing() -> None:
    model = PPCAScore.fit(cohort(*_shapes(80, 0)), components=5)
    points, t = _shapes(40, 1)
    points[17, 3:5] += 4.0  # small beside the growth of 200 months
    assert np.argmax(model.score(cohort(points, t))) == 17
    gaps = with_gaps(points)
    gaps[17] = points[17]
    assert np.argmax(model.score(cohort(gaps, t))) == 17


def test_the_score_is_blind_to_age() -> None:
    model = PPCAScore.fit(cohort(*_shapes(60, 0)))
    points, t = _shapes(10, 1)
    np.testing.assert_array_equal(
        model.score(cohort(points, t)), model.score(cohort(points, np.full(10, np.nan)))
    )


def test_normal_shapes_score_about_one() -> None:
    model = PPCAScore.fit(cohort(*_shapes(2000, 0)), components=5)
    assert model.score(cohort(*_shapes(500, 1))).mean() == pytest.approx(1, abs=0.05)
    points, t = _shapes(500, 2)
    assert model.score(cohort(with_gaps(points), t)).mean() == pytest.approx(1, abs=0.05)


def test_gaps_and_distances_agree_with_dense_algebra() -> None:
    rows = np.random.default_rng(0).standard_normal((30, 8)) * np.arange(1, 9)
    space = Subspace.fit(rows, 3)
    row = rows[:1].copy()
    row[0, [1, 6]] = np.nan
    known, C = ~np.isnan(row[0]), _dense(space)
    inside = np.linalg.solve(C[np.ix_(known, known)], (row[0] - space.mean)[known])
    expected = space.mean[~known] + C[np.ix_(~known, known)] @ inside
    np.testing.assert_allclose(space.fill(row)[0, ~known], expected)
    np.testing.assert_array_equal(space.fill(row)[0, known], row[0, known])
    distance = (row[0] - space.mean)[known] @ inside / known.sum()
    assert space.mahalanobis(row)[0] == pytest.approx(distance)


def test_a_subspace_is_found_through_gaps() -> None:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((60, 2)) @ rng.standard_normal((2, 30)) * 5 + 1
    holes = np.where(rng.uniform(size=rows.shape) < 0.2, np.nan, rows)
    start = np.where(np.isnan(holes), np.nanmean(holes, axis=0), holes)
    space = Subspace.fit_through_gaps(holes, start, 2)
    missed = np.abs(space.fill(holes) - rows).max()
    assert missed < 0.02 * np.abs(start - rows).max()


def test_all_the_variance_is_accounted_for() -> None:
    rows = np.random.default_rng(0).standard_normal((50, 8))
    space = Subspace.fit(rows, 3)
    assert np.trace(_dense(space)) == pytest.approx(rows.var(axis=0, ddof=1).sum())


def test_the_order_of_rows_does_not_matter() -> None:
    points, t = _shapes(50, 0)
    data, order = cohort(with_gaps(points), t), np.random.default_rng(1).permutation(50)
    a, b = PPCAScore.fit(data, 6), PPCAScore.fit(data[order], 6)
    np.testing.assert_allclose(a.score(data), b.score(data), rtol=1e-6)
    np.testing.assert_allclose(a.score(data)[order], a.score(data[order]))


def test_shapes_all_alike_are_not_divided_by_zero() -> None:
    points = np.repeat(linear(np.array([5.0])), 6, axis=0)
    model = PPCAScore.fit(cohort(points, ages(6)))
    np.testing.assert_allclose(model.score(cohort(points, ages(6))), 0.0, atol=1e-3)


def test_gaps_err_as_far_as_conditioning_says() -> None:
    """Scores of rows drawn from the law itself, from some coordinates and from all."""
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.standard_normal((20, 3)))[0]
    space = Subspace(np.zeros(20), axes, np.array([9.0, 4.0, 1.5]), 0.5)
    rows = rng.multivariate_normal(np.zeros(20), _dense(space), size=20_000)
    known = np.arange(20) < 8
    error = space.scores(np.where(known, rows, np.nan)) - space.scores(rows)
    expected = space.gap_covariance(known)
    np.testing.assert_allclose(np.cov(error.T), expected, atol=0.03 * expected.max())
    np.testing.assert_allclose(space.gap_covariance(np.ones(20, dtype=bool)), 0, atol=1e-12)
