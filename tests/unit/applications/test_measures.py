"""What can be measured, on shapes whose measures are known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from prism.applications.measures import measure_at
from prism.errors import QueryError
from tests.problems.growing import Growing, growing_ball, growing_square

SQUARE: Any = growing_square()
BALL: Any = growing_ball()
LONG = SQUARE.template * [3.0, 1.0] + [0.0, 5.0]  # corners (+-3, 4) and (+-3, 6)


@pytest.mark.parametrize(
    ("at", "value", "unit"),
    [
        ("1:x", 3.0, "mm"),
        (" 1 : y ", 4.0, "mm"),
        ("0-2", np.sqrt(40), "mm"),
        ("2 - 0", np.sqrt(40), "mm"),
        ("0-2:distance", np.sqrt(40), "mm"),
        ("right:x", 3.0, "mm"),
        ("right:y", 5.0, "mm"),
        ("right:distance", np.sqrt(29), "mm"),  # its centre went from (1, 0) to (3, 5)
        ("2:distance", np.sqrt(29), "mm"),
        ("right:size", 1.0, "mm"),
        ("whole:size", np.sqrt(10), "mm"),
        ("size", np.sqrt(10), "mm"),
        ("length", 16.0, "mm"),
        ("top:length", 6.0, "mm"),
        ("area", 12.0, "mm²"),
        ("whole:area", 12.0, "mm²"),
        ("2", 7 / np.sqrt(2), "mm"),  # moved by (2, 5), grows along (1, 1)
        ("2:growth", 7 / np.sqrt(2), "mm"),
    ],
)
def test_every_measure_is_what_it_says(at: str, value: float, unit: str) -> None:
    measure = measure_at(SQUARE, at)
    assert measure.of(LONG) == pytest.approx(value)
    assert measure.of(np.stack([LONG, LONG])).shape == (2,)
    assert measure.unit == unit


def test_growth_of_a_region_is_the_mean_square_of_its_points() -> None:
    way = np.array([[0.0, 1.0], [1.0, 0.0], [-1.0, 0.0], [0.0, 0.0]])  # limbs that part
    model: Any = Growing(SQUARE.template, way, regions={"legs": np.array([1, 2])})
    legs = measure_at(model, "legs")
    np.testing.assert_allclose(legs.of(model.shapes([0.0, 1.0, 2.5])), [0.0, 1.0, 2.5])
    with pytest.raises(QueryError, match="does not move"):
        measure_at(model, "3")


def test_measures_in_space() -> None:
    volume, area = measure_at(BALL, "volume"), measure_at(BALL, "area")
    assert (volume.unit, area.unit) == ("mm³", "mm²")
    assert volume.of(2 * BALL.template) == pytest.approx(8 * volume.of(BALL.template))
    assert volume.of(BALL.template) == pytest.approx(4 / 3 * np.pi, rel=0.05)
    assert measure_at(BALL, "upper:area").of(BALL.template) == pytest.approx(2 * np.pi, rel=0.05)
    assert "enclosed" in volume.label


def test_labels_name_the_place() -> None:
    assert measure_at(SQUARE, "2:x").label == "point 2 (right): position along x"
    assert measure_at(SQUARE, "right").label.startswith("right: ")
    assert measure_at(SQUARE, "0-2").label == "distance between points 0 and 2"
    assert measure_at(replace(SQUARE, length_unit="units"), "area").unit == ""


def test_a_regions_own_name_comes_first() -> None:
    named: Any = replace(SQUARE, regions={"area": np.array([1]), "a:x": np.array([2])})
    assert measure_at(named, "area").points.tolist() == [1]
    assert measure_at(named, "a:x").points.tolist() == [2]
    assert measure_at(named, "a:x:y").of(LONG) == pytest.approx(6.0)


@pytest.mark.parametrize("at", ["1:x", "0-1", "right:size", "right", "area", "top:length", "whole"])
def test_a_missing_point_makes_the_measure_unknown(at: str) -> None:
    measure = measure_at(SQUARE, at)
    for m in measure.points:
        gap = np.where(np.arange(4)[:, None] == m, np.nan, LONG)
        assert np.isnan(measure.of(gap))


@pytest.mark.parametrize(
    ("model", "at", "message"),
    [
        (SQUARE, "", "'' is no place"),
        (SQUARE, "wing", "regions right, top"),
        (SQUARE, "4", "points 0 to 3"),
        (SQUARE, "0-9", "points 0 to 3"),
        (SQUARE, "-1", "no place"),
        (SQUARE, "1.5", "no place"),
        (SQUARE, "1:z", "'z' cannot be measured of point 1"),
        (SQUARE, "1:area", "'area' cannot be measured of point 1"),
        (SQUARE, "0-1:x", "'x' cannot be measured of points 0 and 1"),
        (SQUARE, "right:wings", "'wings' cannot"),
        (SQUARE, "volume", "in 2D"),
        (SQUARE, "right:area", "1 segments are not closed"),
        (BALL, "length", "it is a surface"),
        (BALL, "upper:volume", "triangles are not closed"),
        (replace(SQUARE, cells=None, regions={}), "area", "no cells"),
        (replace(SQUARE, cells=None, regions={}), "arm", "no regions"),
    ],
)
def test_what_cannot_be_measured_is_refused(model: Any, at: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        measure_at(model, at)
