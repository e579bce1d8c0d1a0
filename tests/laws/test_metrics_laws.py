"""Laws of the metrics, true for every input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from prism.metrics import (
    at_threshold,
    auc,
    chamfer,
    coverage_table,
    emd,
    emd_squared,
    hausdorff,
    mae,
    pearson_r,
    r_squared,
    resample_contour,
    sample_surface,
    youden,
)

DEGREE = {chamfer: 2, hausdorff: 1, emd: 1, emd_squared: 2}
everyone = pytest.mark.parametrize("distance", DEGREE)
modest = settings(max_examples=40, deadline=None)

# Multiples of 1/64: sums and shifts are exact, and ties are common.
numbers = st.integers(-640, 640).map(lambda k: k / 64)


@st.composite
def pairs(draw) -> tuple[np.ndarray, np.ndarray]:
    clouds = arrays(float, (draw(st.integers(1, 12)), draw(st.integers(2, 3))), elements=numbers)
    return draw(clouds), draw(clouds)


@st.composite
def scored(draw) -> tuple[np.ndarray, np.ndarray]:
    size = draw(st.integers(2, 25))
    abnormal = draw(arrays(bool, size))
    assume(0 < abnormal.sum() < size)
    return draw(arrays(float, size, elements=numbers)), abnormal


@st.composite
def times(draw) -> tuple[np.ndarray, np.ndarray]:
    size = draw(st.integers(3, 20))
    tau_hat, tau = (draw(arrays(float, size, elements=numbers)) for _ in range(2))
    assume(np.ptp(tau_hat) > 0 and np.ptp(tau) > 0)
    return tau_hat, tau


@everyone
@modest
@given(pair=pairs())
def test_symmetric_and_not_negative(distance, pair) -> None:
    a, b = pair
    assert distance(a, b) >= 0
    assert distance(a, b) == pytest.approx(distance(b, a), rel=1e-9, abs=1e-12)


@everyone
@modest
@given(pair=pairs(), seed=st.integers(0, 99))
def test_zero_on_itself_in_any_order(distance, pair, seed: int) -> None:
    a, _ = pair
    assert distance(a, np.random.default_rng(seed).permutation(a)) == 0


@everyone
@modest
@given(pair=pairs())
def test_zero_only_on_equal_sets(distance, pair) -> None:
    a, b = pair
    same = {tuple(row) for row in a} == {tuple(row) for row in b}
    assert same or distance(a, b) > 0


@everyone
@modest
@given(pair=pairs(), c=st.floats(0.01, 100))
def test_scales_with_its_degree(distance, pair, c: float) -> None:
    a, b = pair
    expected = c ** DEGREE[distance] * distance(a, b)
    assert distance(c * a, c * b) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@everyone
@modest
@given(pair=pairs(), shift=arrays(float, 3, elements=numbers), angle=st.floats(0, 6.3))
def test_unchanged_by_rigid_motion(distance, pair, shift, angle: float) -> None:
    a, b = pair
    n = a.shape[1]
    turn = np.eye(n)
    turn[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    moved = [points @ turn.T + shift[:n] for points in pair]
    assert distance(*moved) == pytest.approx(distance(a, b), rel=1e-9, abs=1e-9)


@modest
@given(pair=pairs())
def test_order_among_distances(pair) -> None:
    a, b = pair
    assert chamfer(a, b) <= 2 * hausdorff(a, b) ** 2 * (1 + 1e-12)
    assert chamfer(a, b) <= 2 * emd_squared(a, b) * (1 + 1e-12)
    assert emd(a, b) ** 2 <= emd_squared(a, b) * (1 + 1e-12)  # Jensen


@modest
@given(case=scored())
def test_auc_sees_only_the_order(case) -> None:
    score, abnormal = case
    assert auc(np.arctan(score), abnormal) == auc(score, abnormal)
    assert auc(3 * score - 7, abnormal) == auc(score, abnormal)


@modest
@given(case=scored())
def test_auc_turns_with_the_score_and_with_the_labels(case) -> None:
    score, abnormal = case
    assert auc(-score, abnormal) == pytest.approx(1 - auc(score, abnormal), abs=1e-12)
    assert auc(score, ~abnormal) == pytest.approx(1 - auc(score, abnormal), abs=1e-12)


@modest
@given(case=scored(), threshold=numbers)
def test_no_threshold_beats_youden(case, threshold: float) -> None:
    score, abnormal = case
    best, other = youden(score, abnormal), at_threshold(score, abnormal, threshold)
    gain = best.sensitivity + best.specificity
    assert gain >= other.sensitivity + other.specificity - 1e-12
    assert gain >= 1
    assert best == at_threshold(score, abnormal, best.threshold)


@modest
@given(pair=times())
def test_determination_is_at_most_squared_correlation(pair) -> None:
    assert -1 <= pearson_r(*pair) <= 1
    assert r_squared(*pair) <= pearson_r(*pair) ** 2 + 1e-9


@modest
@given(pair=times())
def test_best_line_reaches_the_squared_correlation(pair) -> None:
    tau_hat, tau = pair
    line = np.polyval(np.polyfit(tau_hat, tau, 1), tau_hat)
    assert r_squared(line, tau) == pytest.approx(pearson_r(tau_hat, tau) ** 2, abs=1e-7)


@modest
@given(pair=times(), c=st.floats(0.1, 50), shift=numbers)
def test_time_metrics_follow_the_time_unit(pair, c: float, shift: float) -> None:
    tau_hat, tau = pair
    scaled = c * tau_hat + shift, c * tau + shift
    assert mae(*scaled) == pytest.approx(c * mae(*pair), rel=1e-9, abs=1e-9)
    assert pearson_r(*scaled) == pytest.approx(pearson_r(*pair), abs=1e-7)
    assert r_squared(*scaled) == pytest.approx(r_squared(*pair), rel=1e-7, abs=1e-7)


@modest
@given(z=arrays(float, st.integers(1, 30), elements=numbers))
def test_coverage_grows_with_the_level(z) -> None:
    shares = list(coverage_table(z, (0.1, 0.5, 0.9, 0.999)).values())
    assert shares == sorted(shares)
    assert list(coverage_table(-z, (0.1, 0.5, 0.9, 0.999)).values()) == shares


@modest
@given(points=arrays(float, (6, 3), elements=numbers, unique=True), c=st.sampled_from([0.5, 4.0]))
def test_samples_move_with_their_shape(points, c: float) -> None:
    loop = np.stack([np.arange(6), (np.arange(6) + 1) % 6], axis=-1)
    faces = np.array([[0, 1, 2], [3, 4, 5]])
    assume(np.linalg.norm(np.cross(points[1] - points[0], points[2] - points[0])) > 1e-3)
    for sampler, cells in ((resample_contour, loop), (sample_surface, faces)):
        moved = sampler(c * points, cells, 40)
        np.testing.assert_allclose(moved, c * sampler(points, cells, 40), rtol=1e-9, atol=1e-9)
