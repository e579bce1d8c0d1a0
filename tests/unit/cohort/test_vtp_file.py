"""VTP files are read back by VTK itself."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from prism.cohort.vtp_file import write_series, write_vtp

pyvista = pytest.importorskip("pyvista")

SQUARE = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])


def test_plane_shape_lies_at_zero_with_its_segments(tmp_path: Path) -> None:
    cells = np.array([[0, 1], [1, 2], [2, 3], [3, 0]])
    write_vtp(tmp_path / "a.vtp", SQUARE, cells, {})
    mesh = pyvista.read(tmp_path / "a.vtp")
    np.testing.assert_array_equal(mesh.points, np.pad(SQUARE, ((0, 0), (0, 1))))
    np.testing.assert_array_equal(mesh.lines.reshape(-1, 3)[:, 1:], cells)


def test_surface_keeps_its_triangles(tmp_path: Path) -> None:
    points = np.random.default_rng(0).standard_normal((4, 3))
    cells = np.array([[0, 1, 2], [1, 2, 3]])
    write_vtp(tmp_path / "a.vtp", points, cells, {})
    mesh = pyvista.read(tmp_path / "a.vtp")
    np.testing.assert_allclose(mesh.points, points)
    np.testing.assert_array_equal(mesh.regular_faces, cells)


def test_without_cells_every_point_is_a_vertex(tmp_path: Path) -> None:
    write_vtp(tmp_path / "a.vtp", SQUARE, None, {})
    assert pyvista.read(tmp_path / "a.vtp").n_verts == 4


def test_values_keep_their_place_and_fill_space(tmp_path: Path) -> None:
    matrix = np.arange(16.0).reshape(4, 2, 2)
    data = {"s": np.array([1.0, np.inf, np.nan, -np.inf]), "v": SQUARE, "m": matrix}
    write_vtp(tmp_path / "a.vtp", SQUARE, None, data)
    mesh = pyvista.read(tmp_path / "a.vtp")
    np.testing.assert_array_equal(mesh.point_data["s"], [1.0, np.nan, np.nan, np.nan])
    np.testing.assert_array_equal(mesh.point_data["v"], np.pad(SQUARE, ((0, 0), (0, 1))))
    stored = mesh.point_data["m"].reshape(4, 3, 3)
    np.testing.assert_array_equal(stored[:, :2, :2], matrix)
    assert not stored[:, 2].any()


def test_missing_points_go_with_their_cells(tmp_path: Path) -> None:
    points = SQUARE.copy()
    points[1] = np.nan
    cells = np.array([[0, 1], [1, 2], [2, 3], [3, 0]])
    write_vtp(tmp_path / "a.vtp", points, cells, {"m": np.arange(4)})
    mesh = pyvista.read(tmp_path / "a.vtp")
    assert mesh.point_data["m"].tolist() == [0, 2, 3]
    assert mesh.lines.reshape(-1, 3)[:, 1:].tolist() == [[1, 2], [2, 0]]


def test_series_lists_files_by_time(tmp_path: Path) -> None:
    write_series(tmp_path / "a.vtp.series", ["a.vtp", "b.vtp"], [0.5, 2])
    content = json.loads((tmp_path / "a.vtp.series").read_text())
    files = [{"name": "a.vtp", "time": 0.5}, {"name": "b.vtp", "time": 2.0}]
    assert content == {"file-series-version": "1.0", "files": files}
