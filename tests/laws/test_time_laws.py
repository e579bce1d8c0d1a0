"""Laws of intrinsic time, forecasts and anomaly scores, true for every input."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from prism.calibration import conformal_p_value
from prism.intrinsic import TimeTable, fisher_mean, joint_mle_time, mle_time, plain_mean
from prism.rules import forecast_time, mahalanobis_score, paper_score, temporal_z
from tests.problems.linear_gaussian import Curved, points

few = settings(max_examples=25, deadline=None)
POINTS = 7
P = points(POINTS, 2).numpy()
LAW = Curved(2)
TABLE = TimeTable.of(LAW, P, (-1.0, 2.0))

maps = arrays(float, (3, POINTS), elements=st.floats(-50, 50))
spreads = arrays(float, (3, POINTS), elements=st.floats(0.1, 9) | st.just(np.inf))
displacements = arrays(float, (3, POINTS, 2), elements=st.floats(-2, 2))
orders = st.permutations(range(POINTS))


def gaps(values: np.ndarray, seed: int) -> np.ndarray:
    """The same values with some points missing, never the first."""
    missing = np.random.default_rng(seed).random(values.shape[:2]) < 0.2
    missing[:, 0] = False
    values = values.copy()
    values[missing] = np.nan
    return values


@few
@given(d=displacements, order=orders, seed=st.integers(0, 99))
def test_the_order_of_points_does_not_matter_to_time(d, order, seed) -> None:
    d, order = gaps(d, seed), np.array(order)
    turned = TimeTable.of(LAW, P[order], (-1.0, 2.0))
    tau, tau_turned = mle_time(TABLE, d).tau, mle_time(turned, d[:, order]).tau
    np.testing.assert_allclose(tau_turned, tau[:, order], atol=1e-9)
    joint, joint_turned = joint_mle_time(TABLE, d), joint_mle_time(turned, d[:, order])
    np.testing.assert_allclose(joint_turned.tau, joint.tau, atol=1e-6)
    np.testing.assert_allclose(joint_turned.se, joint.se, rtol=1e-4, atol=1e-6)
    for t in (np.full(3, np.nan), np.full(3, 0.4)):
        pooled = fisher_mean(tau, TABLE, t), fisher_mean(tau_turned, turned, t)
        np.testing.assert_allclose(*pooled, atol=1e-9)
    np.testing.assert_allclose(plain_mean(tau_turned), plain_mean(tau), atol=1e-9)


@few
@given(tau=maps, sigma=spreads, order=orders, seed=st.integers(0, 99))
def test_the_order_of_points_does_not_matter_to_scores(tau, sigma, order, seed) -> None:
    tau, order = gaps(tau, seed), np.array(order)
    tau[:, 0] += 100  # one point ahead of all: p* is unique
    found = paper_score(tau[:, order], sigma[:, order])
    np.testing.assert_allclose(found, paper_score(tau, sigma), rtol=1e-9, atol=1e-9)
    distance = np.abs(tau)
    np.testing.assert_allclose(mahalanobis_score(distance[:, order]), mahalanobis_score(distance))


@few
@given(tau=maps, sigma=spreads, shift=st.floats(-1000, 1000), scale=st.floats(0.01, 365))
def test_paper_score_is_never_positive_and_knows_neither_origin_nor_unit(
    tau, sigma, shift, scale
) -> None:
    tau = np.round(tau, 3)  # so that a shift creates no ties
    score = paper_score(tau, sigma)
    assert np.all(np.isnan(score) | (score <= 0))
    assert np.array_equal(np.isnan(score), np.isinf(sigma).all(axis=1))
    np.testing.assert_allclose(paper_score(tau + round(shift), sigma), score, atol=1e-9, rtol=1e-9)
    np.testing.assert_allclose(paper_score(scale * tau, scale * sigma), score, atol=1e-9, rtol=1e-9)


@few
@given(sigma=spreads, tau=st.floats(-9, 9))
def test_an_anatomy_of_one_age_everywhere_is_perfectly_normal(sigma, tau) -> None:
    score = paper_score(np.full((3, POINTS), tau), sigma)
    assert np.all(np.isnan(score) | (score == 0))


@few
@given(tau=maps, sigma=spreads, t=arrays(float, 3, elements=st.floats(-20, 20)))
def test_a_forecast_for_today_returns_the_observed_time(tau, sigma, t) -> None:
    today = forecast_time(temporal_z(tau, t, sigma), t, sigma)
    readable = np.isfinite(sigma)
    np.testing.assert_allclose(today[readable], tau[readable], rtol=1e-14, atol=1e-13)
    assert np.array_equal(today[~readable], np.broadcast_to(t[:, None], tau.shape)[~readable])


@few
@given(distance=arrays(float, (3, 40), elements=st.floats(0, 50)), more=st.floats(0.0, 9))
def test_a_worse_point_never_lowers_the_score(distance, more) -> None:
    worse = distance.copy()
    worse[:, 5] += more
    assert (mahalanobis_score(worse) >= mahalanobis_score(distance)).all()
    assert (mahalanobis_score(distance) <= distance.max(axis=1) + 1e-12).all()


@few
@given(
    score=arrays(float, 6, elements=st.floats(-9, 9)),
    reference=arrays(float, st.integers(0, 20), elements=st.floats(-9, 9)),
)
def test_p_values_fall_with_the_score_and_are_never_zero(score, reference) -> None:
    p = conformal_p_value(np.sort(score), reference)
    assert (np.diff(p) <= 0).all()
    assert (p >= 1 / (1 + len(reference))).all()
    assert (p <= 1).all()
