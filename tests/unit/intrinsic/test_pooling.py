from __future__ import annotations

import numpy as np

from prism.intrinsic import TimeTable, fisher_mean, plain_mean, weighted_mean
from tests.problems.linear_gaussian import Curved, LinearGaussian, points

NAN = np.nan


def test_means_pass_over_missing_points() -> None:
    tau = np.array([[1.0, 3.0, NAN], [NAN, NAN, NAN]])
    np.testing.assert_array_equal(plain_mean(tau), [2.0, NAN])
    info = np.array([[1.0, 3.0, 1e9], [1.0, 1.0, 1.0]])
    np.testing.assert_array_equal(weighted_mean(tau, info), [2.5, NAN])


def test_equal_information_makes_the_plain_mean() -> None:
    tau = np.random.default_rng(0).normal(size=(5, 9))
    np.testing.assert_allclose(weighted_mean(tau, np.full((5, 9), 7.0)), plain_mean(tau))


def test_a_point_that_cannot_be_read_has_no_say() -> None:
    assert weighted_mean(np.array([[1.0, 99.0]]), np.array([[2.0, 0.0]])) == 1.0
    assert np.isnan(weighted_mean(np.array([[1.0]]), np.array([[0.0]])))


def test_known_ages_set_the_weights() -> None:
    law, p = Curved(2), points(6, 2).numpy()
    table = TimeTable.of(law, p, (-1.0, 2.0))
    tau, t = np.random.default_rng(1).normal(0.5, 0.1, (2, 6)), np.array([0.2, 0.9])
    info = table.information(np.repeat(t[:, None], 6, axis=1))
    np.testing.assert_allclose(fisher_mean(tau, table, t), weighted_mean(tau, info))


def test_without_an_age_the_weights_are_taken_at_the_estimate() -> None:
    law, p = Curved(2), points(6, 2).numpy()
    table = TimeTable.of(law, p, (-1.0, 2.0))
    tau = np.random.default_rng(1).normal(0.5, 0.5, (3, 6))

    def weighed_at(t: np.ndarray) -> np.ndarray:
        return weighted_mean(tau, table.information(np.repeat(t[:, None], 6, axis=1)))

    once = weighed_at(plain_mean(tau))
    found = fisher_mean(tau, table, np.full(3, NAN))
    np.testing.assert_allclose(found, weighed_at(weighed_at(once)))
    assert np.abs(weighed_at(found) - found).max() < 0.3 * np.abs(once - plain_mean(tau)).max()
    assert not np.allclose(found, once)


def test_with_constant_information_the_age_does_not_matter() -> None:
    law, p = LinearGaussian.example(2), points(6, 2).numpy()
    table = TimeTable.of(law, p, (-1.0, 2.0))
    tau = np.random.default_rng(1).normal(0.5, 0.1, (3, 6))
    known, unknown = (fisher_mean(tau, table, np.full(3, t)) for t in (0.1, NAN))
    np.testing.assert_allclose(known, unknown, rtol=1e-12)
