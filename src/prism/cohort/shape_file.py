"""Shape files of every format: read, mended and written; unit and axes go with them."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from prism.cohort.contour_file import read_contour, write_contour
from prism.cohort.files import naming, replacing
from prism.cohort.label_file import read_labels
from prism.cohort.landmark_file import read_landmarks, write_landmarks
from prism.cohort.mend import Fault, mend, without_lost_points
from prism.cohort.mesh_files import read_obj, read_stl, write_obj, write_stl
from prism.cohort.ply_file import read_ply, write_ply
from prism.cohort.raw import Raw, broken, require_file
from prism.cohort.shape import Shape
from prism.cohort.vtk_files import read_vtk, read_vtp
from prism.cohort.vtp_file import write_poly
from prism.errors import CohortError

READERS: dict[str, Callable[[Path], Raw]] = {
    ".ply": read_ply,
    ".stl": read_stl,
    ".obj": read_obj,
    ".vtk": read_vtk,
    ".vtp": read_vtp,
    ".csv": read_contour,
    ".mrk.json": read_landmarks,
}
LABEL_MAPS = (".nii.gz", ".nii", ".nrrd", ".nhdr", ".mha", ".mhd")
_DETACHED = {
    ".mhd": re.compile(rb"^\s*ElementDataFile\s*=\s*(.+?)\s*$", re.MULTILINE),
    ".nhdr": re.compile(rb"^\s*data ?file:\s*(.+?)\s*$", re.MULTILINE | re.IGNORECASE),
}
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ShapeFile:
    """A shape that is read when it is needed.

    Attributes:
        path: The file.
        label: The label wanted of a label map; None for the only one.
        length_unit: The unit to convert to; empty keeps the file's own.
        where: Who it belongs to, e.g. the row of the visits table; named in errors.
    """

    path: Path
    label: int | None = None
    length_unit: str = ""
    where: str = ""

    def read(self) -> Shape:
        """Read the shape; see `read_shape`."""
        return self.examine()[0]

    def examine(self) -> tuple[Shape, list[Fault]]:
        """Read the shape, and say what is wrong with it."""
        with naming(self.name):
            shape, faults = examine_shape(self.path, self.label)
            return shape.in_unit(self.length_unit), faults

    @property
    def name(self) -> str:
        """What errors call it: the row that names it, and the file."""
        return f"{self.where}: {self.path}" if self.where else str(self.path)

    @property
    def fingerprint(self) -> str:
        """Digits of the file's bytes and of how it is read, without reading the shape."""
        with naming(self.name):
            digest = hashlib.sha256(f"{self.label} {self.length_unit} {_kind(self.path)}".encode())
            for part in _parts(self.path):
                require_file(part)
                with part.open("rb") as file:
                    digest.update(hashlib.file_digest(file, "sha256").digest())
        return digest.hexdigest()[:16]


def read_shape(path: str | Path, label: int | None = None) -> Shape:
    """Read a shape of any known format, mend it where its meaning is clear, and say so.

    Points in RAS axes are turned to LPS; what was repaired stands in `Shape.repairs` and in the
    log.

    Args:
        path: Mesh (PLY, STL, OBJ, VTK, VTP), label map (NIfTI, NRRD, MHA, MHD), contour (CSV, VTP
            polylines) or landmarks (.mrk.json).
        label: The label wanted of a label map. Default: the only one there is.

    Raises:
        CohortError: What is wrong with the file, and what to do about it.
    """
    shape, faults = ShapeFile(Path(path), label).examine()
    for fault in faults:
        _log.warning("%s: %s", path, fault)
    return shape


def examine_shape(path: Path, label: int | None = None) -> tuple[Shape, list[Fault]]:
    """Read a shape and everything that was wrong with it."""
    kind = _kind(path)
    raw = read_labels(path, label) if kind in LABEL_MAPS else READERS[kind](path)
    points = _to_lps(raw)
    axes = "LPS" if raw.axes else ""
    facts = {"length_unit": raw.length_unit, "axes": axes, "names": raw.names}
    if raw.cells is None:
        return Shape(points, None, **facts), []
    closed = raw.cells.shape[1] == points.shape[1]
    points, cells, faults = (mend if closed else without_lost_points)(points, raw.cells)
    repairs = tuple(str(fault) for fault in faults if fault.changed)
    return Shape(points, cells, **facts, repairs=repairs), faults


def write_shape(shape: Shape, path: str | Path) -> None:
    """Write a shape in the format its name asks for, with its unit and axes where there is room.

    Surfaces go to PLY, STL, OBJ, VTK or VTP; contours to CSV, OBJ, VTK or VTP; landmarks to
    .mrk.json, VTK or VTP.

    Raises:
        CohortError: The format cannot hold this shape, or the place cannot be written to.
    """
    path = Path(path)
    with naming(path):
        kind = _kind(path, tuple(READERS))
        with replacing(path.resolve()) as part:
            _write(shape, part, kind)


def _write(shape: Shape, path: Path, kind: str) -> None:
    stated = shape.length_unit, shape.axes
    cells = shape.cells
    in_space = np.pad(shape.points, ((0, 0), (0, 3 - shape.dimension)))
    if kind in (".vtp", ".vtk"):
        write_poly(path, shape.points, cells, *stated)
    elif kind == ".mrk.json" and cells is None:
        write_landmarks(path, shape.points, shape.names, *stated)
    elif kind == ".csv" and cells is not None and shape.kind == "contour":
        write_contour(path, shape.points, cells)
    elif kind == ".obj" and cells is not None:
        write_obj(path, in_space, cells, *stated)
    elif kind in (".ply", ".stl") and cells is not None and shape.kind == "surface":
        (write_ply if kind == ".ply" else write_stl)(path, in_space, cells, *stated)
    else:
        raise CohortError(
            f"{kind} cannot hold {shape.kind if shape.kind == 'landmarks' else 'a ' + shape.kind}.",
            "Write it as .vtp, which holds every kind of shape.",
        )


def _kind(path: Path, known: Sequence[str] = (*READERS, *LABEL_MAPS)) -> str:
    """The format a file's name asks for."""
    name = path.name.lower()
    for suffix in known:
        if name.endswith(suffix):
            return suffix
    raise CohortError(
        f"{path.suffix or 'a name without suffix'} is no format known here.",
        f"Use one of {', '.join(known)}.",
    )


def _parts(path: Path) -> list[Path]:
    """The file, and the one its header points to."""
    pattern = _DETACHED.get(_kind(path))
    if pattern is None:
        return [path]
    require_file(path)
    found = pattern.search(path.read_bytes())
    data = found[1].decode("utf-8", "replace") if found else ""
    if data.upper() == "LOCAL":
        return [path]
    if not data or data.upper().startswith("LIST") or "%" in data:
        raise broken("the header does not name one file with the voxels")
    return [path, path.parent / data]


def _to_lps(raw: Raw) -> np.ndarray:
    """Points in LPS axes where the axes are known."""
    if raw.axes not in ("", "LPS", "RAS"):
        raise CohortError(f"axes {raw.axes} are not known.", "Store the shape in LPS or RAS axes.")
    turn = raw.axes == "RAS" and raw.points.shape[1] == 3
    return raw.points * np.array([-1.0, -1.0, 1.0]) if turn else raw.points
