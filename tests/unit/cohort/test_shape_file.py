"""Every format: what goes in comes out, with unit and axes; broken files are refused."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import numpy as np
import pytest

from prism.cohort import Shape, read_shape, write_shape
from prism.cohort.shape_file import ShapeFile
from prism.errors import CohortError
from tests.problems.broken_shapes import ply
from tests.problems.solids import circle, sphere

BALL, RING = sphere(12.0, detail=10), circle(5.0, detail=30)
SURFACE = Shape(BALL.points + np.array([100.0, -20, 3]), BALL.cells, "mm", "LPS")
CONTOUR = Shape(RING.points, RING.cells, "mm")
LANDMARKS = Shape([[1.0, 2, 3], [np.nan] * 3, [0.1, -0.5, 1e3]], None, "mm", "LPS", ("a", "b", "c"))


def _assert_same(again: Shape, shape: Shape, tolerance: float = 0.0) -> None:
    """The same facets in the same order; points may be numbered otherwise."""
    assert again.cells is not None
    assert shape.cells is not None
    np.testing.assert_allclose(
        again.points[again.cells], shape.points[shape.cells], atol=tolerance, rtol=0
    )
    assert (again.length_unit, again.axes) == (shape.length_unit, shape.axes)
    assert not again.repairs


@pytest.mark.parametrize("suffix", ["ply", "stl", "obj", "vtk", "vtp"])
def test_a_surface_comes_back(tmp_path: Path, suffix: str) -> None:
    write_shape(SURFACE, tmp_path / f"a.{suffix}")
    again = read_shape(tmp_path / f"a.{suffix}")
    _assert_same(again, SURFACE, 1e-5 if suffix == "stl" else 0.0)
    if suffix != "stl":
        np.testing.assert_array_equal(again.points, SURFACE.points)


@pytest.mark.parametrize("suffix", ["obj", "vtk", "vtp"])
def test_a_contour_comes_back(tmp_path: Path, suffix: str) -> None:
    write_shape(CONTOUR, tmp_path / f"a.{suffix}")
    again = read_shape(tmp_path / f"a.{suffix}")
    assert (again.kind, again.dimension) == ("contour", 2)
    _assert_same(again, CONTOUR)


def test_contours_come_back_from_a_table(tmp_path: Path) -> None:
    points = np.concatenate([RING.points, 0.5 * RING.points])
    both = Shape(points, np.concatenate([RING.cells, RING.cells[:, ::-1] + 30]))
    write_shape(both, tmp_path / "a.csv")
    again = read_shape(tmp_path / "a.csv")
    assert again.cells is not None
    corners = {tuple(segment.ravel()) for segment in again.points[again.cells]}
    assert corners == {tuple(segment.ravel()) for segment in both.points[both.cells]}


@pytest.mark.parametrize(
    "text", ["x,y\n0,0\n2,0\n2,1\n", "0;0\n2;0\n2;1\n0;0\n", "y\tx\n0\t0\n0\t2\n1\t2"]
)
def test_tables_of_points_are_closed_contours(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    shape = read_shape(tmp_path / "a.csv")
    assert shape.cells is not None
    assert len(shape.cells) == 3
    assert shape.size == pytest.approx(5**0.5)


def test_landmarks_come_back(tmp_path: Path) -> None:
    write_shape(LANDMARKS, tmp_path / "a.mrk.json")
    again = read_shape(tmp_path / "a.mrk.json")
    np.testing.assert_array_equal(again.points, LANDMARKS.points)
    assert (again.names, again.kind, again.axes) == (("a", "b", "c"), "landmarks", "LPS")


def test_landmarks_in_ras_are_turned(tmp_path: Path) -> None:
    write_shape(LANDMARKS, tmp_path / "a.mrk.json")
    stored = json.loads((tmp_path / "a.mrk.json").read_text())
    stored["markups"][0]["coordinateSystem"] = "RAS"
    (tmp_path / "a.mrk.json").write_text(json.dumps(stored))
    again = read_shape(tmp_path / "a.mrk.json")
    np.testing.assert_array_equal(again.points, LANDMARKS.points * [-1, -1, 1])
    assert again.axes == "LPS"


@pytest.mark.parametrize("suffix", ["ply", "stl", "obj"])
def test_meshes_in_ras_are_turned_and_face_outwards(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.{suffix}"
    write_shape(SURFACE, path)
    path.write_bytes(path.read_bytes().replace(b"SPACE=LPS", b"SPACE=RAS"))
    again = read_shape(path)
    low, high = SURFACE.box
    np.testing.assert_allclose(again.box[0], [-high[0], -high[1], low[2]], atol=1e-5)
    assert again.axes == "LPS"
    assert not again.repairs  # a half turn about z keeps the orientation


def test_vtp_states_its_axes_as_slicer_does(tmp_path: Path) -> None:
    write_shape(SURFACE, tmp_path / "a.vtp")
    text = (tmp_path / "a.vtp").read_bytes()
    assert b'Name="SPACE"' in text


def test_polygons_are_cut_into_triangles(tmp_path: Path) -> None:
    cube = "".join(f"v {x} {y} {z}\n" for z in (0, 1) for y in (0, 1) for x in (0, 1))
    quads = "f 1 3 4 2\nf 5/1 6/1 8/1 7/1\nf 1 2 6 5\nf -6 -5 -1 -2\nf 1//1 5 7 3\nf 2 4 8 6\n"
    (tmp_path / "a.obj").write_text(cube + quads)
    shape = read_shape(tmp_path / "a.obj")
    assert shape.cells is not None
    assert len(shape.cells) == 12
    assert shape.size == pytest.approx(3**0.5)


def test_text_and_binary_stl_agree(tmp_path: Path) -> None:
    facets = [
        "facet normal 0 0 0\nouter loop\n"
        + "".join(f"vertex {x!r} {y!r} {z!r}\n" for x, y, z in corner)
        + "endloop\nendfacet\n"
        for corner in SURFACE.points[SURFACE.cells].tolist()
    ]
    text = "".join(["solid a SPACE=LPS UNIT=mm\n", *facets, "endsolid a\n"])
    (tmp_path / "a.stl").write_text(text)
    _assert_same(read_shape(tmp_path / "a.stl"), SURFACE)


@pytest.mark.parametrize("order", ["little", "big"])
def test_ply_of_many_dialects(tmp_path: Path, order: str) -> None:
    mark = "<" if order == "little" else ">"
    head = (
        f"ply\nformat binary_{order}_endian 1.0\ncomment SPACE=LPS UNIT=mm\nelement vertex "
        f"{len(SURFACE.points)}\nproperty float x\nproperty uchar red\nproperty double y\n"
        f"property float z\nelement face {len(BALL.cells)}\nproperty uchar flag\n"
        "property list uchar uint vertex_index\nproperty float quality\nend_header\n"
    )
    points = np.zeros(len(SURFACE.points), f"{mark}f4, u1, {mark}f8, {mark}f4")
    for name, axis in (("f0", 0), ("f2", 1), ("f3", 2)):
        points[name] = SURFACE.points[:, axis]
    faces = np.zeros(len(BALL.cells), f"u1, u1, {mark}3u4, {mark}f4")
    faces["f1"], faces["f2"] = 3, BALL.cells
    (tmp_path / "a.ply").write_bytes(head.encode() + points.tobytes() + faces.tobytes())
    _assert_same(read_shape(tmp_path / "a.ply"), SURFACE, 1e-5)


def test_ply_of_mixed_polygons(tmp_path: Path) -> None:
    head = (
        "ply\nformat binary_little_endian 1.0\nelement vertex 5\nproperty float x\n"
        "property float y\nproperty float z\nelement face 5\n"
        "property list uchar int vertex_indices\nend_header\n"
    )
    points = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0.5, 0.5, 1]], "<f4")
    faces = [[0, 3, 2, 1], [0, 1, 4], [1, 2, 4], [2, 3, 4], [3, 0, 4]]
    body = b"".join(bytes([len(f)]) + np.array(f, "<i4").tobytes() for f in faces)
    (tmp_path / "a.ply").write_bytes(head.encode() + points.tobytes() + body)
    shape = read_shape(tmp_path / "a.ply")
    assert shape.cells is not None
    assert len(shape.cells) == 6
    assert not shape.repairs


def test_repairs_are_recorded_and_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.ply").write_bytes(ply(BALL.points, BALL.cells[:, ::-1]))
    with caplog.at_level(logging.WARNING):
        shape = read_shape(tmp_path / "a.ply")
    assert shape.repairs == ("inside out: turned to face outwards.",)
    assert "inside out" in caplog.text


@pytest.mark.parametrize("suffix", ["ply", "stl", "obj", "vtk", "vtp", "csv", "mrk.json", "nrrd"])
@pytest.mark.parametrize("content", [b"", b"hello world\n" * 40, b"\x00\xff" * 300])
def test_rubbish_is_refused_by_name(
    tmp_path: Path, suffix: str, content: bytes, capfd: pytest.CaptureFixture
) -> None:
    (tmp_path / f"a.{suffix}").write_bytes(content)
    with pytest.raises(CohortError) as caught:
        read_shape(tmp_path / f"a.{suffix}")
    assert str(tmp_path / f"a.{suffix}") in caught.value.what
    assert len(caught.value.what.splitlines()) == 1
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("suffix", ["ply", "stl", "vtk", "vtp"])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.98])
def test_files_cut_short_are_refused(tmp_path: Path, suffix: str, share: float) -> None:
    path = tmp_path / f"a.{suffix}"
    write_shape(SURFACE, path)
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(CohortError):
        read_shape(path)


@pytest.mark.parametrize(
    ("shape", "name"),
    [(CONTOUR, "a.ply"), (LANDMARKS, "a.stl"), (SURFACE, "a.csv"), (SURFACE, "a.mrk.json")],
)
def test_formats_that_cannot_hold_a_shape_say_so(tmp_path: Path, shape: Shape, name: str) -> None:
    with pytest.raises(CohortError, match="cannot hold"):
        write_shape(shape, tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["a.step", "a", "a.nii.gz"])
def test_formats_nobody_writes_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(CohortError, match="no format known"):
        write_shape(SURFACE, tmp_path / name)


def test_units_are_converted(tmp_path: Path) -> None:
    write_shape(SURFACE, tmp_path / "a.ply")
    shape = ShapeFile(tmp_path / "a.ply", length_unit="cm").read()
    assert shape.size == pytest.approx(SURFACE.size / 10)
    assert shape.length_unit == "cm"
    with pytest.raises(CohortError, match="parsec"):
        ShapeFile(tmp_path / "a.ply", length_unit="parsec").read()


def test_the_fingerprint_of_a_file_is_that_of_its_content(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_shape(SURFACE, tmp_path / f"{name}.ply")
    a, b = (ShapeFile(tmp_path / f"{name}.ply") for name in ("a", "b"))
    assert a.fingerprint == b.fingerprint
    assert a.fingerprint != ShapeFile(a.path, label=2).fingerprint
    (tmp_path / "b.ply").write_bytes(ply(BALL.points, BALL.cells))
    assert a.fingerprint != b.fingerprint
