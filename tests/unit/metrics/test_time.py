"""Time metrics on lines, constants and gaps."""

from __future__ import annotations

import numpy as np
import pytest

from prism.errors import QueryError
from prism.metrics import mae, pearson_r, r_squared, time_metrics

TAU = np.array([1.0, 2.0, 3.0, 6.0])


def test_perfect_estimates() -> None:
    expected = {"r": 1, "r2": 1, "mae": 0, "count": 4, "missing": 0}
    assert time_metrics(TAU, TAU) == pytest.approx(expected)


def test_biased_estimates_keep_r_and_lose_r_squared() -> None:
    # Squares about the mean 3: 4 + 1 + 0 + 9 = 14; a shift by 2 costs 4 · 4 = 16.
    assert pearson_r(TAU + 2, TAU) == pytest.approx(1)
    assert r_squared(TAU + 2, TAU) == pytest.approx(1 - 16 / 14)
    assert mae(TAU + 2, TAU) == pytest.approx(2)


def test_error_is_the_mean_of_the_sizes() -> None:
    error = np.array([1.0, -1.0, 0.0, 4.0])
    assert mae(TAU + error, TAU) == pytest.approx(6 / 4)


def test_reversed_estimates() -> None:
    assert pearson_r(-TAU, TAU) == pytest.approx(-1)


def test_the_mean_as_estimate_explains_nothing() -> None:
    mean = np.full(4, TAU.mean())
    assert r_squared(mean, TAU) == pytest.approx(0)
    assert np.isnan(pearson_r(mean, TAU))


def test_constants_are_recognised_in_spite_of_rounding() -> None:
    constant = np.full(3, 0.1)  # its computed mean differs from 0.1
    assert np.isnan(pearson_r(TAU[:3], constant))
    assert np.isnan(r_squared(TAU[:3], constant))


def test_missing_pairs_are_left_out_and_counted() -> None:
    tau_hat = np.array([1.5, np.nan, 3.5, 6.5, np.inf])
    tau_true = np.array([1.0, 2.0, 3.0, 6.0, np.nan])
    found = time_metrics(tau_hat, tau_true)
    assert (found["count"], found["missing"]) == (3, 2)
    assert found["mae"] == pytest.approx(0.5)
    assert found["r"] == pytest.approx(1)


def test_nothing_but_failures_is_still_a_count() -> None:
    found = time_metrics([np.nan, np.nan], [1.0, 2.0])
    assert (found["count"], found["missing"]) == (0, 2)
    assert np.isnan([found["r"], found["r2"], found["mae"]]).all()


def test_maps_of_any_shape_are_flattened() -> None:
    assert mae(TAU.reshape(2, 2) + 1, TAU.reshape(2, 2)) == pytest.approx(1)
    assert pearson_r(TAU.reshape(2, 2) + 1, TAU.reshape(2, 2)) == pytest.approx(1)


@pytest.mark.parametrize("metric", [pearson_r, r_squared, mae])
@pytest.mark.parametrize(
    ("tau_hat", "what"),
    [(TAU[:3], "same shape"), (TAU * np.nan, "4 and 0 missing"), (["old"] * 4, "numbers")],
)
def test_bad_input_is_named(metric, tau_hat, what: str) -> None:
    with pytest.raises(QueryError, match=what):
        metric(tau_hat, TAU)


@pytest.mark.parametrize("metric", [pearson_r, r_squared, mae])
def test_no_pair_is_refused(metric) -> None:
    with pytest.raises(QueryError, match="at least one pair"):
        metric([], [])
