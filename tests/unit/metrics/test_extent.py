"""Length, area and volume of shapes whose size is known."""

from __future__ import annotations

import numpy as np
import pytest

from prism.metrics.extent import (
    contour_length,
    enclosed_area,
    enclosed_volume,
    is_closed,
    surface_area,
)
from tests.problems.solids import box_frame, circle, sphere, torus

CUBE = np.array([[x, y, z] for x in (0.0, 1) for y in (0.0, 1) for z in (0.0, 1)])
# Twelve triangles, all turned outwards.
FACES = np.array([
    [0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1],
    [2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3],
])  # fmt: skip


def test_a_cube_is_a_cube() -> None:
    shapes = np.stack([CUBE, 2 * CUBE + 1000, CUBE @ np.linalg.qr(CUBE[1:4] + np.eye(3))[0]])
    assert is_closed(FACES)
    np.testing.assert_allclose(enclosed_volume(shapes, FACES), [1, 8, 1])
    np.testing.assert_allclose(surface_area(shapes, FACES), [6, 24, 6])


def test_round_things_have_their_size() -> None:
    ball, ring, disc = sphere(2.0, detail=60), torus(2.0, 0.5, detail=80), circle(3.0)
    assert enclosed_volume(ball.points, ball.cells) == pytest.approx(32 / 3 * np.pi, rel=5e-3)
    assert surface_area(ball.points, ball.cells) == pytest.approx(16 * np.pi, rel=5e-3)
    assert enclosed_volume(ring.points, ring.cells) == pytest.approx(np.pi**2, rel=5e-3)
    assert enclosed_area(disc.points, disc.cells) == pytest.approx(9 * np.pi, rel=1e-3)
    assert contour_length(disc.points, disc.cells) == pytest.approx(6 * np.pi, rel=1e-3)


def test_order_and_direction_of_segments_do_not_matter() -> None:
    frame = box_frame()
    cells = frame.cells[[2, 0, 3, 1]].copy()
    cells[1] = cells[1, ::-1]
    assert enclosed_area(frame.points + 50, cells) == pytest.approx(4)
    assert contour_length(frame.points, cells) == pytest.approx(8)


def test_a_loop_stored_the_other_way_is_a_hole() -> None:
    frame = box_frame()
    points = np.concatenate([frame.points, 0.5 * frame.points])
    hole = np.concatenate([frame.cells, frame.cells[::-1, ::-1] + 4])
    assert enclosed_area(points, hole) == pytest.approx(3)


def test_triangles_of_the_plane_have_an_area() -> None:
    assert surface_area(CUBE[:4, 1:], np.array([[0, 1, 3], [0, 3, 2]])) == pytest.approx(1)


def test_what_is_open_is_not_closed() -> None:
    flipped = FACES.copy()
    flipped[0] = flipped[0, ::-1]
    twice = np.concatenate([FACES, FACES[:1]])
    for cells in (FACES[1:], flipped, twice, box_frame().cells[1:], np.empty((0, 2), dtype=int)):
        assert not is_closed(cells)
    assert is_closed(box_frame().cells)


def test_a_missing_point_makes_the_whole_unknown() -> None:
    cube, frame = CUBE.copy(), box_frame()
    cube[5] = np.nan
    square = np.where(np.arange(4)[:, None] == 2, np.nan, frame.points)
    for value in (
        surface_area(cube, FACES),
        enclosed_volume(cube, FACES),
        enclosed_area(square, frame.cells),
        contour_length(square, frame.cells),
    ):
        assert np.isnan(value)
