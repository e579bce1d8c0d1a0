"""VTP files: shapes with arrays on their points, for ParaView and 3D Slicer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from prism.errors import QueryError
from prism.typing import Cells, Points

SERIES_VERSION = "1.0"


def require_vtp() -> None:
    """Refuse before the work, and not after it, when VTP files cannot be written here."""
    if find_spec("pyvista") is None:
        raise QueryError(
            "meshes (.vtp) cannot be written: the package pyvista is not installed.",
            "Run: pip install pyvista",
        )


def write_vtp(
    path: Path, points: Points, cells: Cells | None, point_data: Mapping[str, np.ndarray]
) -> None:
    """Write one shape with arrays on its points.

    Plane shapes lie at z = 0, and their vectors and matrices are filled up with zeros. Missing
    points (NaN) are left out, with the cells that touch them. Infinite values become NaN.

    Args:
        path: File to write, ending in .vtp.
        points: (M, n) positions, NaN where missing.
        cells: (K, 2) segments or (K, 3) triangles; None writes every point as a vertex.
        point_data: Name -> (M,), (M, n) or (M, n, n) values.
    """
    require_vtp()
    seen = np.asarray(np.isfinite(points).all(axis=-1))
    mesh = _poly_data(points, cells, seen)
    for name, values in point_data.items():
        mesh.point_data[name] = _flat(np.asarray(values)[seen])
    mesh.save(str(path), binary=True)


def write_poly(
    path: Path, points: Points, cells: Cells | None, length_unit: str, axes: str
) -> None:
    """Write a bare shape as .vtp or .vtk, with unit and axes among its field data."""
    require_vtp()
    mesh = _poly_data(points, cells, np.asarray(np.isfinite(points).all(axis=-1)))
    for name, value in (("SPACE", axes), ("UNIT", length_unit)):
        if value:
            mesh.field_data[name] = [value]
    mesh.save(str(path), binary=True)


def _poly_data(points: Points, cells: Cells | None, seen: np.ndarray) -> Any:
    """The points that are there, with the cells between them, as VTK holds them."""
    from pyvista import PolyData

    mesh = PolyData()
    mesh.points = _in_space(points[seen])
    if cells is None:
        mesh.verts = _with_counts(np.arange(seen.sum())[:, None])
    elif cells.shape[1] == 2:
        mesh.lines = _with_counts(_among(seen, cells))
    else:
        mesh.faces = _with_counts(_among(seen, cells))
    return mesh


def write_series(path: Path, names: Sequence[str], times: Sequence[float]) -> None:
    """Write the list of files by time that ParaView opens as one animation (.vtp.series)."""
    files = [{"name": n, "time": float(t)} for n, t in zip(names, times, strict=True)]
    content: dict[str, Any] = {"file-series-version": SERIES_VERSION, "files": files}
    path.write_text(json.dumps(content, indent=2, allow_nan=False), encoding="utf-8")


def _in_space(points: Points) -> Points:
    """(M, 2) or (M, 3) points as (M, 3), the plane at z = 0."""
    return np.pad(points, ((0, 0), (0, 3 - points.shape[-1])))


def _among(seen: np.ndarray, cells: Cells) -> Cells:
    """Cells whose points are all there, in the numbering of those points."""
    number = np.cumsum(seen) - 1
    return number[cells[seen[cells].all(axis=1)]]


def _with_counts(cells: np.ndarray) -> np.ndarray:
    """VTK's list of cells: how many points, which points, how many points, ..."""
    return np.insert(cells, 0, cells.shape[1], axis=1).ravel()


def _flat(values: np.ndarray) -> np.ndarray:
    """(M,), (M, 3) or (M, 9) finite or NaN values; two dimensions filled up with zeros."""
    if values.dtype.kind == "f":
        values = np.where(np.isfinite(values), values, np.nan)
    if values.ndim > 1:
        values = np.pad(values, ((0, 0), *((0, 3 - size) for size in values.shape[1:])))
    return values.reshape(len(values), -1) if values.ndim > 1 else values
