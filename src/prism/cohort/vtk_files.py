"""VTK and VTP files in: surfaces, polylines and points, with what VTK complains about."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from prism.cohort.raw import (
    Raw,
    broken,
    check_range,
    flattened,
    read_bytes,
    require_file,
    segments,
    tags,
    triangles,
)
from prism.errors import CohortError
from prism.typing import Cells


def read_vtk(path: Path) -> Raw:
    """Read a legacy VTK file that holds poly data."""
    _require_vtk()
    from vtkmodules.vtkIOLegacy import vtkDataSetReader

    stated = tags(read_bytes(path))
    return _read(vtkDataSetReader(), path, stated)


def read_vtp(path: Path) -> Raw:
    """Read a VTP file."""
    _require_vtk()
    from vtkmodules.vtkIOXML import vtkXMLPolyDataReader

    require_file(path)
    return _read(vtkXMLPolyDataReader(), path, ("", ""))


def _require_vtk() -> None:
    from importlib.util import find_spec

    if find_spec("vtkmodules") is None:
        raise CohortError(
            "VTK and VTP files cannot be read: the package pyvista is not installed.",
            "Run: pip install pyvista",
        )


def _read(reader: Any, path: Path, stated: tuple[str, str]) -> Raw:
    from vtkmodules.util.numpy_support import vtk_to_numpy

    with _listening() as said:
        reader.SetFileName(str(path))
        reader.Update()
        data = reader.GetOutput()
    complaints = said()
    if complaints or data is None:
        raise broken(f"VTK cannot read it: {complaints or 'no data set in it'}")
    if not data.IsA("vtkPolyData"):
        raise CohortError(
            f"the file holds a {data.GetClassName().removeprefix('vtk')}, not a surface.",
            "Extract its surface first (ParaView: Filters, Extract Surface) and save it as .vtp.",
        )
    points = data.GetPoints()
    points = np.empty((0, 3)) if points is None else vtk_to_numpy(points.GetData())
    cells = _cells(data, len(points))
    unit, axes = (_field(data, name) for name in ("UNIT", "SPACE"))
    return flattened(Raw(points.astype(np.float64), cells, unit or stated[0], axes or stated[1]))


def _cells(data: Any, points: int) -> Cells | None:
    """Triangles where there are polygons or strips, else segments, else nothing."""
    if data.GetNumberOfStrips():
        raise CohortError(
            "the file stores triangle strips.", "Triangulate it first (ParaView: Triangulate)."
        )
    for count, get, cut in (
        (data.GetNumberOfPolys(), data.GetPolys, triangles),
        (data.GetNumberOfLines(), data.GetLines, segments),
    ):
        if count:
            cells = cut(*_lists(get()))
            check_range(cells, points)
            return cells
    return None


def _lists(cells: Any) -> tuple[np.ndarray, np.ndarray]:
    """Length of each cell and all corners, as stored."""
    from vtkmodules.util.numpy_support import vtk_to_numpy

    offsets = vtk_to_numpy(cells.GetOffsetsArray())
    corners = vtk_to_numpy(cells.GetConnectivityArray())
    counts = np.diff(offsets)
    if (counts < 0).any() or counts.sum() != len(corners):
        raise broken("the lists of faces do not fit together")
    return counts, corners


def _field(data: Any, name: str) -> str:
    """A text among the field data, or nothing."""
    array = data.GetFieldData().GetAbstractArray(name)
    if array is None or not array.IsA("vtkStringArray") or not array.GetNumberOfValues():
        return ""
    return str(array.GetValue(0))


@contextmanager
def _listening() -> Iterator[Any]:
    """Keep VTK from writing to stderr; yield a function that says what it complained about."""
    from vtkmodules.vtkCommonCore import vtkLogger, vtkOutputWindow, vtkStringOutputWindow

    before, level = vtkOutputWindow.GetInstance(), vtkLogger.GetCurrentVerbosityCutoff()
    window = vtkStringOutputWindow()
    vtkOutputWindow.SetInstance(window)
    vtkLogger.SetStderrVerbosity(vtkLogger.VERBOSITY_OFF)
    try:
        yield lambda: _first_complaint(window.GetOutput())
    finally:
        vtkLogger.SetStderrVerbosity(level)
        vtkOutputWindow.SetInstance(before)


def _first_complaint(text: str) -> str:
    """The first sentence of VTK's output, without the addresses of its objects."""
    for line in text.splitlines():
        sentence = line.partition("): ")[2] or line
        if sentence.strip() and not sentence.startswith(("ERROR: In", "Warning: In")):
            return sentence.strip().rstrip(".")
    return ""
