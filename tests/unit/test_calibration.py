from __future__ import annotations

import numpy as np
import pytest

from prism.calibration import (
    LEVELS,
    conformal_p_value,
    inflation_of,
    interval_factors,
    pointwise_p_value,
)

NAN = np.nan


def test_conformal_p_value_counts_the_reference_at_or_above() -> None:
    reference = np.array([3.0, 1.0, 2.0, NAN])
    score = np.array([0.0, 2.0, 2.5, 9.0, NAN])
    np.testing.assert_array_equal(conformal_p_value(score, reference), [1.0, 0.75, 0.5, 0.25, NAN])


@pytest.mark.parametrize("size", [2, 5, 19])
def test_conformal_p_value_is_exactly_uniform_among_exchangeable_scores(size: int) -> None:
    scores = np.random.default_rng(size).permutation(size).astype(float)
    p = [conformal_p_value(scores[[i]], np.delete(scores, i))[0] for i in range(size)]
    np.testing.assert_allclose(np.sort(p), np.arange(1, size + 1) / size)


def test_pointwise_p_values_compare_like_with_like() -> None:
    reference = np.array([[0.0, 10.0], [1.0, 11.0], [2.0, 12.0]])
    found = pointwise_p_value(np.array([[5.0, 5.0]]), reference)
    np.testing.assert_array_equal(found, [[0.25, 1.0]])


def test_interval_factors_of_normal_data_are_the_normal_ones() -> None:
    u = np.random.default_rng(0).standard_normal((20_000, 2, 2))
    factors = interval_factors(u, 1.0)
    assert factors.shape == (len(LEVELS), 2, 2)
    expected = np.array([0.6745, 1.2816, 1.6449, 1.9600])[:, None, None]
    np.testing.assert_allclose(factors, np.broadcast_to(expected, factors.shape), atol=0.04)
    np.testing.assert_allclose(interval_factors(u, 1.5), 1.5 * factors)


def test_interval_factors_hold_their_share_of_what_they_saw() -> None:
    u = np.random.default_rng(1).standard_t(2, (199, 3, 2))
    for level, factor in zip(LEVELS, interval_factors(u, 1.0), strict=True):
        inside = (np.abs(u) <= factor).mean(axis=0)
        np.testing.assert_allclose(inside, level, atol=0.01)


def test_a_point_hardly_seen_gets_the_normal_factor() -> None:
    u = np.full((30, 2, 2), 100.0)
    u[4:, 1] = NAN
    factors = interval_factors(u, 1.0)
    assert (factors[:, 0] == 100.0).all()
    assert factors[2, 1] == pytest.approx([1.6449, 1.6449], abs=1e-4)


def residuals(wider: float, subjects: int = 40) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Normal residuals of subjects with two visits; the last half is unseen and wider."""
    u = np.random.default_rng(0).standard_normal((2 * subjects, 50, 2))
    unseen = np.arange(2 * subjects) >= subjects
    u[unseen] *= wider
    return u, np.repeat([f"s{i:02d}" for i in range(subjects)], 2), unseen


def test_inflation_follows_unseen_subjects_but_not_chance() -> None:
    assert inflation_of(*residuals(1.0)) == pytest.approx(1.0, abs=0.02)
    assert inflation_of(*residuals(2.0)) == pytest.approx(2.0, abs=0.1)
    u, subject, _ = residuals(2.0)
    assert inflation_of(u, subject, subject == "s39") == 1.0  # one subject proves nothing
