from __future__ import annotations

import math

import numpy as np
import pytest

from prism.calibration import (
    LEVELS,
    between_factors,
    combined_p_value,
    conformal_p_value,
    false_discovery_rate,
    interval_factors,
    people_alike,
    robust_scale,
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


def opinions(count: int, judges: int, common: float, seed: int) -> np.ndarray:
    """(K, N) scores, any two judges' correlated by `common`, on scales of their own."""
    rng = np.random.default_rng(seed)
    own = rng.standard_normal((judges, count))
    z = np.sqrt(common) * rng.standard_normal(count) + np.sqrt(1 - common) * own
    return np.exp(z) * np.arange(1, judges + 1)[:, None]


@pytest.mark.parametrize("judges", [2, 4])
@pytest.mark.parametrize("common", [0.0, 0.3, 0.6, 0.9, 1.0])
def test_combined_p_values_are_uniform_among_normals(judges: int, common: float) -> None:
    """Exactly so for judges who are one or strangers, and nearly so in between."""
    references = [opinions(40_000, judges, common, k + 1)[k] for k in range(judges)]
    new = opinions(40_000, judges, common, 0)
    found = combined_p_value(new, references)
    off = 0.1 if common in (0.0, 1.0) else 0.2
    for level in (0.02, 0.1, 0.5):
        assert np.mean(found < level) == pytest.approx(level, rel=off)
    if 0 < common < 0.9:
        alone = [conformal_p_value(*pair) for pair in zip(new, references, strict=True)]
        assert np.mean(np.mean(alone, axis=0) < 0.1) < 0.085  # drawn to the middle


def test_counts_of_a_panel_are_added_up() -> None:
    """Judges of two people each can call nobody strange; six of them who agree can."""
    reference, new = np.arange(12.0), np.array([[-1.0, 5.5, 20.0]])
    alone = combined_p_value(new, [reference])
    parts = [reference[k::6] for k in range(6)]
    together = combined_p_value(np.repeat(new, 6, axis=0), parts, np.zeros(6, dtype=int))
    np.testing.assert_allclose(together, alone)
    np.testing.assert_allclose(alone, [12.5 / 13, 0.5, 1 / 13])
    assert combined_p_value(np.repeat(new, 6, axis=0), parts)[2] > 0.16
    silent = np.concatenate([np.repeat(new, 6, axis=0), np.full((6, 3), np.nan)])
    two = combined_p_value(silent, parts * 2, np.repeat([0, 1], 6))
    np.testing.assert_allclose(two, alone)


def test_judges_who_agree_are_one_judge() -> None:
    """To half a reference, by which a p-value of one stays out of reach."""
    scores, reference = np.append(np.arange(-1.0, 8.0), NAN), np.append(np.arange(7.0), NAN)
    one = conformal_p_value(scores, reference)
    found = combined_p_value(np.stack([scores] * 3), [reference] * 3)
    np.testing.assert_allclose(found, one - 0.5 / 8)
    units = np.array([1.0, 1000.0, 0.1])
    scaled = combined_p_value(units[:, None] * scores, [unit * reference for unit in units])
    np.testing.assert_allclose(scaled, found)


def test_a_p_value_is_never_below_one_in_all_that_were_compared() -> None:
    few, many = np.arange(3.0), np.arange(999.0)
    found = combined_p_value(np.array([[-1.0], [1e9]]), [few, many])
    assert found == pytest.approx(1 / 1003, rel=0.5)
    assert (combined_p_value(np.full((2, 1), 1e9), [many] * 2) >= 1 / 1999).all()


def test_who_has_no_reference_or_no_opinion_is_not_asked() -> None:
    reference = np.arange(9.0)
    alone = combined_p_value(np.array([[2.0, 99.0]]), [reference])
    scores = np.array([[2.0, 99.0], [7.0, 7.0]])
    np.testing.assert_allclose(combined_p_value(scores, [reference, reference[:0]]), alone)
    scores[1] = NAN
    np.testing.assert_allclose(combined_p_value(scores, [reference] * 2)[0], alone[0])
    assert np.isnan(combined_p_value(np.full((2, 1), NAN), [reference] * 2)).all()


def brute_force_adjusted(p: np.ndarray) -> np.ndarray:
    """Benjamini and Hochberg from their rule: the least q at which each value is called."""
    known = p[~np.isnan(p)]
    adjusted = np.full(len(p), NAN)
    for k in np.flatnonzero(~np.isnan(p)):
        # the set {p <= c} is called at level q if c count <= q size; the least q over c >= p
        sets = [c * len(known) / (known <= c).sum() for c in known[known >= p[k]]]
        adjusted[k] = min(1.0, *sets)
    return adjusted


@pytest.mark.parametrize("seed", range(6))
def test_the_false_discovery_rate_is_that_of_benjamini_and_hochberg(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = rng.uniform(size=(4, 30)) ** 3
    p[:2] = p[:2].round(1)  # with ties
    p[rng.uniform(size=p.shape) < 0.2] = NAN
    p[3] = NAN
    q = false_discovery_rate(p)
    np.testing.assert_allclose(q, [brute_force_adjusted(row) for row in p], rtol=1e-12)
    seen = ~np.isnan(p)
    assert (q[seen] >= p[seen] - 1e-12).all()


def test_one_test_needs_no_correction() -> None:
    np.testing.assert_array_equal(false_discovery_rate(np.array([[0.3], [NAN]])), [[0.3], [NAN]])


def test_without_any_data_intervals_are_the_normal_ones() -> None:
    factors = interval_factors(np.empty((0, 3, 2)))
    expected = np.array([0.6745, 1.2816, 1.6449, 1.9600])[:, None, None]
    np.testing.assert_allclose(factors, np.broadcast_to(expected, (4, 3, 2)), atol=1e-4)


def test_interval_factors_of_normal_data_are_the_normal_ones() -> None:
    u = np.random.default_rng(0).standard_normal((20_000, 2, 2))
    factors = interval_factors(u)
    assert factors.shape == (len(LEVELS), 2, 2)
    expected = np.array([0.6745, 1.2816, 1.6449, 1.9600])[:, None, None]
    np.testing.assert_allclose(factors, np.broadcast_to(expected, factors.shape), atol=0.04)


def test_interval_factors_hold_their_share_of_what_they_saw() -> None:
    u = np.random.default_rng(1).standard_t(2, (199, 3, 2))
    for level, factor in zip(LEVELS, interval_factors(u), strict=True):
        inside = (np.abs(u) <= factor).mean(axis=0)
        np.testing.assert_allclose(inside, level, atol=0.01)


def test_a_point_hardly_seen_gets_the_normal_factor() -> None:
    u = np.full((30, 2, 2), 100.0)
    u[4:, 1] = NAN
    factors = interval_factors(u)
    assert (factors[:, 0] == 100.0).all()
    assert factors[2, 1] == pytest.approx([1.6449, 1.6449], abs=1e-4)


def test_new_people_stand_half_way_by_factors() -> None:
    together = np.random.default_rng(2).standard_normal((50, 3, 2))
    factors = interval_factors(together)
    np.testing.assert_allclose(between_factors(together, together), factors)
    np.testing.assert_allclose(between_factors(4 * together, together), 2 * factors)


def people(u: np.ndarray) -> np.ndarray:
    return np.arange(len(u)).astype(str)


def test_scale_is_the_standard_deviation_and_one_stray_visit_hardly_moves_it() -> None:
    u = 2.5 * np.random.default_rng(0).standard_normal(20_000)
    assert robust_scale(u, people(u)) == pytest.approx(2.5, rel=0.02)
    few, more = u[:38], np.append(u[:38], 80.0)
    assert robust_scale(more, people(more)) < 1.3 * robust_scale(few, people(few))
    assert robust_scale(np.full(3, np.nan), people(few[:3])) == 1.0


@pytest.mark.parametrize(("subjects", "visits"), [(9, 1), (18, 1), (18, 4), (60, 1)])
def test_nine_in_ten_of_new_people_lie_within_however_few_are_known(
    subjects: int, visits: int
) -> None:
    """Without the correction 86% of new people lie within the interval of 18."""
    rng, factor = np.random.default_rng(0), 1.6448536
    owner = np.repeat(np.arange(subjects), visits)
    held = np.empty(4000)
    for k in range(len(held)):
        scale = robust_scale(rng.normal(size=subjects)[owner], owner.astype(str))
        held[k] = math.erf(factor * scale / math.sqrt(2))
    assert held.mean() == pytest.approx(0.9, abs=0.02)


def test_intervals_count_people_alike_however_often_they_came() -> None:
    """Seventeen people seen once and one, far off, seen sixty times: he is one of eighteen."""
    u = np.concatenate([np.linspace(0.1, 1.7, 17), np.full(60, 9.0)])[:, None, None]
    subject = np.concatenate([np.arange(17), np.full(60, 17)]).astype(str)
    once = interval_factors(u[:18])
    np.testing.assert_allclose(interval_factors(u, subject)[:2], once[:2], atol=0.11)
    assert interval_factors(u, subject)[1, 0, 0] < 2 < interval_factors(u)[1, 0, 0]
    rng = np.random.default_rng(0)
    even, same = rng.standard_normal((60, 3, 2)), np.repeat(np.arange(20), 3).astype(str)
    even[rng.random(even.shape[:2]) < 0.2] = np.nan
    for k, level in enumerate(LEVELS):
        held = np.abs(even) <= interval_factors(even, same)[k]
        assert (held.sum(0) >= np.floor(level * (~np.isnan(even)).sum(0))).all()
    np.testing.assert_allclose(people_alike(subject)[[0, -1]], [1, 1 / 60])
