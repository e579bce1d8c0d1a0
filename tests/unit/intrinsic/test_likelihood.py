from __future__ import annotations

import numpy as np
import torch

from prism.intrinsic import TimeTable, joint_mle_time, mle_time
from tests.problems.linear_gaussian import IsotropicSpread, LinearGaussian, points

LAW, P = LinearGaussian.example(2), points(6, 2)
TABLE = TimeTable.of(LAW, P.numpy(), (-1.0, 2.0))


def shapes(t: float, count: int = 3) -> np.ndarray:
    return LAW(P, torch.full((count, 6), t, dtype=torch.float64)).mu.numpy()


def test_the_mean_shape_has_its_own_age() -> None:
    found = mle_time(TABLE, shapes(0.3))
    np.testing.assert_allclose(found.tau, 0.3, atol=1e-6)
    np.testing.assert_allclose(found.info, np.tile(LAW.information(P), (3, 1)), rtol=1e-6)
    assert not found.at_edge.any()
    joint = joint_mle_time(TABLE, shapes(0.3))
    np.testing.assert_allclose(joint.tau, 0.3, atol=1e-6)
    assert (joint.se < 1e-5).all()  # all points agree


def test_a_missing_point_is_not_dated_and_has_no_say() -> None:
    d = shapes(0.3)
    whole = joint_mle_time(TABLE, d)
    d[0, 2] = np.nan
    found = mle_time(TABLE, d)
    assert np.isnan(found.tau[0, 2])
    assert found.info[0, 2] == 0
    np.testing.assert_allclose(np.delete(found.tau, 2, axis=1), 0.3, atol=1e-6)
    np.testing.assert_allclose(joint_mle_time(TABLE, d).tau, whole.tau, atol=1e-6)


def test_a_shape_beyond_the_span_stops_at_its_edge_and_says_so() -> None:
    found = mle_time(TABLE, shapes(9.0))
    np.testing.assert_allclose(found.tau, 2.0)
    assert found.at_edge.all()


def test_a_population_that_does_not_move_dates_nobody() -> None:
    table = TimeTable.of(IsotropicSpread(2), P.numpy(), (0.0, 1.0))
    joint = joint_mle_time(table, shapes(0.3))
    assert np.isnan(joint.tau).all()
    assert np.isinf(joint.se).all()
    assert (mle_time(table, shapes(0.3)).info == 0).all()


def test_two_points_cannot_disagree_so_the_model_gives_the_error() -> None:
    table = TimeTable.of(LAW, P[:2].numpy(), (-1.0, 2.0))
    se = joint_mle_time(table, shapes(0.3)[:, :2]).se
    np.testing.assert_allclose(se, LAW.information(P[:2]).sum() ** -0.5, rtol=1e-6)


def test_no_shapes_no_times() -> None:
    assert mle_time(TABLE, np.empty((0, 6, 2))).tau.shape == (0, 6)
    assert joint_mle_time(TABLE, np.empty((0, 6, 2))).tau.shape == (0,)
