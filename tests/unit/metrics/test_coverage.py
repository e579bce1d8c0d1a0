"""Coverage, PIT and relative error where the answer is known."""

from __future__ import annotations

import numpy as np
import pytest

from prism.errors import QueryError
from prism.metrics import coverage, coverage_table, pit, pit_histogram, relative_error


def test_coverage_counts_both_ends_as_inside() -> None:
    value = np.array([0.0, 1.0, 2.0, 3.0])
    assert coverage(1.0, 2.0, value) == 0.5


def test_coverage_of_missing_values_and_bounds() -> None:
    value = np.array([1.0, np.nan, 1.0, 5.0, np.inf])
    lower = np.array([0.0, 0.0, np.nan, -np.inf, 0.0])
    upper = np.array([2.0, 2.0, 2.0, np.inf, 2.0])
    assert coverage(lower, upper, value) == 1.0
    assert coverage(upper[:1], lower[:1], value[:1]) == 0.0


def test_coverage_table_of_a_normal_sample_is_nominal() -> None:
    z = np.random.default_rng(0).standard_normal(40_000)
    for level, share in coverage_table(z).items():
        assert share == pytest.approx(level, abs=4 * np.sqrt(level * (1 - level) / z.size))


def test_coverage_table_knows_the_quantiles() -> None:
    z = np.array([0.67, 0.68, -1.28, -1.29, 1.95, 1.97, np.nan])
    assert coverage_table(z, (0.5, 0.8, 0.95)) == {0.5: 1 / 6, 0.8: 3 / 6, 0.95: 5 / 6}


def test_an_infinite_residual_is_a_miss() -> None:
    assert coverage_table([0.0, np.inf], (0.9,)) == {0.9: 0.5}
    density, _ = pit_histogram([0.0, np.inf, -np.inf], bins=3)
    np.testing.assert_allclose(density, 1)


def test_pit_values() -> None:
    values = pit([[0.0, 1.959963984540054], [-np.inf, np.nan]])
    np.testing.assert_allclose(values, [[0.5, 0.975], [0.0, np.nan]])


def test_pit_histogram_is_flat_for_the_right_law_and_a_bowl_for_overconfidence() -> None:
    z = np.random.default_rng(1).standard_normal(20_000)
    density, edges = pit_histogram(z, bins=5)
    np.testing.assert_allclose(edges, np.linspace(0, 1, 6))
    np.testing.assert_allclose(density, 1, atol=0.08)
    bowl, _ = pit_histogram(2 * z, bins=5)
    assert bowl[0] > 1.5
    assert bowl[2] < 0.6


def test_relative_error_leaves_missing_entries_out() -> None:
    estimate, truth = [1.1, 3.0, np.nan, 1.0], [1.0, 4.0, 1.0, np.inf]
    assert relative_error(estimate, truth) == pytest.approx((0.1 + 0.25) / 2)


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda: coverage(0, 1, [np.nan]), "no finite value"),
        (lambda: coverage([0, 0, 0], 1, [1.0, 2.0]), "do not fit"),
        (lambda: coverage_table([np.nan]), "no finite z"),
        (lambda: coverage_table([0.0], (90,)), "level must be between 0 and 1"),
        (lambda: pit_histogram([]), "no finite z"),
        (lambda: pit_histogram([0.0], bins=0), "bins must be at least 1"),
        (lambda: relative_error([1.0], [0.0]), "truth must be positive"),
        (lambda: relative_error([1.0], [1.0, 2.0]), "same shape"),
        (lambda: relative_error([np.nan], [1.0]), "no finite pair"),
    ],
)
def test_bad_input_is_named(call, what: str) -> None:
    with pytest.raises(QueryError, match=what):
        call()
