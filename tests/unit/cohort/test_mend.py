"""Meshes are repaired where their meaning is clear, and nothing is done in silence."""

from __future__ import annotations

import numpy as np
import pytest

from prism.cohort.facets import Facets, places
from prism.cohort.mend import mend
from prism.errors import CohortError
from tests.problems.solids import SOLIDS, circle, sphere

BALL = sphere(detail=10)


def _kinds(points: np.ndarray, cells: np.ndarray) -> list[str]:
    return [fault.kind for fault in mend(points, cells)[2]]


@pytest.mark.parametrize("name", SOLIDS)
def test_a_good_shape_is_left_alone(name: str) -> None:
    solid = SOLIDS[name]
    points, cells, faults = mend(solid.points, solid.cells)
    assert not faults
    np.testing.assert_array_equal(points, solid.points)
    np.testing.assert_array_equal(cells, solid.cells)


@pytest.mark.parametrize("name", SOLIDS)
def test_volume_is_the_sum_of_signed_simplices(name: str) -> None:
    solid = SOLIDS[name]
    corners = solid.points[solid.cells] - 7.0  # from anywhere: the shape is closed
    simplices = np.linalg.det(corners) / (2 if solid.points.shape[1] == 2 else 6)
    assert Facets.of(solid.points, solid.cells).volumes == pytest.approx([simplices.sum()])
    assert simplices.sum() > 0


@pytest.mark.parametrize("seed", range(5))
def test_any_flips_are_undone(seed: int) -> None:
    flips = np.random.default_rng(seed).random(len(BALL.cells)) < 0.4
    mixed = np.where(flips[:, None], BALL.cells[:, ::-1], BALL.cells)
    points, cells, faults = mend(BALL.points, mixed)
    assert Facets.of(points, cells).volumes[0] == pytest.approx(
        Facets.of(BALL.points, BALL.cells).volumes[0]
    )
    assert faults[0].what.startswith(f"{flips.sum()} triangles of {len(flips)} flipped")


def test_half_of_the_faces_flipped_is_decided_one_way() -> None:
    points = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    cells = np.array([[0, 2, 1], [0, 1, 3], [2, 3, 0], [3, 2, 1]])  # the last two face inwards
    _, mended, faults = mend(points, cells)
    assert faults[0].what == "2 triangles of 4 flipped against their neighbours"
    assert Facets.of(points, mended).volumes[0] == pytest.approx(1 / 6)


def test_most_faces_flipped_means_inside_out() -> None:
    flips = np.arange(len(BALL.cells)) > 9
    mixed = np.where(flips[:, None], BALL.cells[:, ::-1], BALL.cells)
    assert _kinds(BALL.points, mixed) == ["flipped cells", "inside out"]


def test_a_cavity_stays_a_cavity_and_a_body_beside_is_turned() -> None:
    count = len(BALL.points)
    both = np.concatenate([BALL.cells, BALL.cells[:, ::-1] + count])
    hollow = np.concatenate([BALL.points, 0.5 * BALL.points])
    assert _kinds(hollow, both) == ["several bodies"]
    beside = np.concatenate([BALL.points, 0.5 * BALL.points + 3])
    assert _kinds(beside, both) == ["several bodies", "inside out"]


def test_points_at_one_place_are_one_point() -> None:
    soup = BALL.points[BALL.cells].reshape(-1, 3)
    assert not _kinds(soup, np.arange(len(soup)).reshape(-1, 3))
    assert len(np.unique(places(soup))) == len(BALL.points)


def test_holes_are_counted_by_their_rims() -> None:
    away = np.abs(BALL.points[BALL.cells].mean(axis=1)[:, 2]) < 0.9
    _, cells, (fault,) = mend(BALL.points, BALL.cells[away])
    assert fault.what.startswith("2 holes (")
    assert not fault.changed
    assert len(cells) == away.sum()


def test_an_open_contour_is_named() -> None:
    ring = circle(detail=20)
    (fault,) = mend(ring.points, ring.cells[:-1])[2]
    assert fault.what == "1 opening (2 open ends)"


def test_a_contour_may_run_either_way_round() -> None:
    ring = circle(detail=20)
    _, cells, faults = mend(ring.points, ring.cells[::-1, ::-1])
    assert not faults
    assert Facets.of(ring.points, cells).volumes[0] > 0


def test_lost_points_take_their_cells_with_them() -> None:
    points = BALL.points.copy()
    points[7, 1] = np.inf
    kept, cells, faults = mend(points, BALL.cells)
    assert len(kept) == len(points) - 1
    touching = (BALL.cells == 7).any(axis=1).sum()
    assert faults[0].done == f"left out with {touching} triangles"
    old = BALL.points[BALL.cells[~(BALL.cells == 7).any(axis=1)]]
    np.testing.assert_array_equal(kept[cells], old)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_too_few_cells_are_refused(count: int) -> None:
    with pytest.raises(CohortError, match="nothing is enclosed"):
        mend(BALL.points, BALL.cells[:count])


def test_inputs_are_not_touched() -> None:
    points, cells = BALL.points.copy(), BALL.cells[:, ::-1].copy()
    points.setflags(write=False)
    cells.setflags(write=False)
    mend(points, cells)
