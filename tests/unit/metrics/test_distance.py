"""Distances on sets small enough to work out by hand."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from prism.errors import QueryError
from prism.metrics import chamfer, emd, emd_squared, hausdorff

ONE = np.array([[0.0, 0.0]])
TWO = np.array([[3.0, 4.0], [0.0, 1.0]])
DISTANCES = [chamfer, hausdorff, emd, emd_squared]


def test_chamfer_is_squared_and_the_sum_of_both_means() -> None:
    assert chamfer(ONE, TWO) == pytest.approx(1 + (25 + 1) / 2)


def test_hausdorff_is_not_squared_and_the_larger_side() -> None:
    assert hausdorff(ONE, TWO) == pytest.approx(5)
    assert hausdorff(TWO, ONE) == pytest.approx(5)


def test_emd_assigns_each_point_once() -> None:
    # Both points of a are nearest to the same point of b; the assignment may use it only once.
    a, b = np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([[0.0, 0.0], [-3.0, 0.0]])
    assert emd(a, b) == pytest.approx((1 + 3) / 2)
    assert emd_squared(a, b) == pytest.approx((1 + 9) / 2)


def test_emd_squared_seeks_its_own_assignment() -> None:
    # On a bent path one long and one null move cost less un-squared, two middling moves squared.
    a, b = np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([[1.0, 0.0], [1.8, 0.6]])
    assert emd(a, b) == pytest.approx(np.hypot(1.8, 0.6) / 2)
    assert emd_squared(a, b) == pytest.approx((1 + 0.64 + 0.36) / 2)


@pytest.mark.parametrize("distance", DISTANCES)
def test_input_is_untouched(distance) -> None:
    a, b = TWO.copy(), TWO[::-1] + 1
    before = a.copy(), b.copy()
    distance(a, b)
    np.testing.assert_array_equal((a, b), before)


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize(
    ("a", "b", "what"),
    [
        (TWO, np.array([[np.nan, 0.0], [0.0, 0.0]]), "1 of the 2 points of b"),
        (np.empty((0, 2)), TWO, "a must have shape"),
        (TWO[0], TWO, "a must have shape"),
        (TWO, np.zeros((2, 3)), "one space dimension"),
        (TWO, "contour", "b must be an array of numbers"),
    ],
)
def test_bad_input_is_named(distance, a, b, what: str) -> None:
    with pytest.raises(QueryError, match=what):
        distance(a, b)


@pytest.mark.parametrize("distance", [emd, emd_squared])
def test_emd_needs_equal_sizes(distance) -> None:
    with pytest.raises(QueryError, match="as many points") as caught:
        distance(ONE, TWO)
    assert "sample_shape" in caught.value.remedy


def test_emd_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "ot", None)
    with pytest.raises(QueryError, match="pip install POT"):
        emd(TWO, TWO)


def test_emd_that_ends_early_is_refused(monkeypatch) -> None:
    monkeypatch.setattr("prism.metrics.distance._EMD_STEPS", 1)
    a, b = np.random.default_rng(0).random((2, 50, 2))
    with (
        pytest.warns(UserWarning, match="numItermax"),
        pytest.raises(QueryError, match="not solved"),
    ):
        emd(a, b)
