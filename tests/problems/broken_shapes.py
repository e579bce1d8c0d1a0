"""Makers of cohorts whose raw shapes are broken, each in one way a user could meet.

Every maker takes an empty directory, writes the folder `cohort` into it and returns a text that
the finding must contain. `REFUSED` stops the work; `NAMED` is repaired or let be, and said.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.problems.good_cohort import FOLDER, TOML
from tests.problems.solids import sphere

Maker = Callable[[Path], str]
ROWS, BAD = 12, 5
NAME = f"{BAD}.ply"
HEADER = """ply
format ascii 1.0
element vertex {}
property double x
property double y
property double z
element face {}
property list uchar int vertex_indices
end_header
"""


def ball(size: float = 10.0) -> tuple[np.ndarray, np.ndarray]:
    """A small closed mesh."""
    solid = sphere(size, detail=8)
    return solid.points, solid.cells


def ply(points: np.ndarray, cells: np.ndarray) -> bytes:
    """A text PLY file of anything, also of what no writer would write."""
    lines = [" ".join(map(repr, row)) for row in np.asarray(points, dtype=float).tolist()]
    lines += [" ".join(map(str, [len(row), *row])) for row in np.asarray(cells).tolist()]
    return (HEADER.format(len(points), len(cells)) + "\n".join(lines) + "\n").encode()


def write_raw(tmp: Path, content: bytes | None = None, toml: str = TOML, name: str = NAME) -> Path:
    """A cohort of twelve balls that grow, one file of it replaced."""
    folder = tmp / FOLDER
    (folder / "shapes").mkdir(parents=True)
    (folder / "cohort.toml").write_text(toml)
    rows = ["subject,visit,t,path"]
    for i in range(ROWS):
        (folder / "shapes" / f"{i}.ply").write_bytes(ply(*ball(10.0 + 0.1 * i)))
        rows.append(f"{i:03d},v0,{i},shapes/{name if i == BAD else f'{i}.ply'}")
    (folder / "visits.csv").write_text("\n".join(rows) + "\n")
    if content is not None:
        (folder / "shapes" / NAME).unlink()
        (folder / "shapes" / name).write_bytes(content)
    return folder


def _file(content: bytes, message: str, name: str = NAME) -> Maker:
    def make(tmp: Path) -> str:
        write_raw(tmp, content, name=name)
        return message

    return make


def _mesh(change: Callable[[np.ndarray, np.ndarray], tuple], message: str) -> Maker:
    """A maker whose one file holds the good ball, changed."""
    return _file(ply(*change(*ball())), message)


def _table(change: Callable[[str], str], message: str) -> Maker:
    def make(tmp: Path) -> str:
        path = write_raw(tmp) / "visits.csv"
        path.write_text(change(path.read_text()))
        return message

    return make


def _set(array: np.ndarray, index: object, value: object) -> np.ndarray:
    changed = array.copy()
    changed[index] = value  # type: ignore[index]
    return changed


def _moebius() -> tuple[np.ndarray, np.ndarray]:
    u = 2 * np.pi * np.arange(40) / 40
    middle = 10 * np.stack([np.cos(u), np.sin(u), 0 * u], -1)
    across = np.cos(u / 2)[:, None] * middle / 10 + np.sin(u / 2)[:, None] * [0.0, 0, 1]
    points = np.concatenate([middle - across, middle + across])
    a, b = np.arange(40), np.arange(1, 41)
    near, far = np.where(b == 40, 40, b), np.where(b == 40, 0, b + 40)
    cells = np.concatenate([np.stack([a, near, a + 40], -1), np.stack([a + 40, near, far], -1)])
    return points, cells


REFUSED: dict[str, Maker] = {
    "empty file": _file(b"", "the file is empty"),
    "blank file": _file(b"\n \n", "the file is empty"),
    "not a PLY": _file(b"hello\n" * 9, "not a PLY file"),
    "cut short": _file(ply(*ball())[:900], "ends before"),
    "no faces": _file(ply(ball()[0], np.empty((0, 3), dtype=int)), "points and no face"),
    "one triangle": _mesh(lambda p, c: (p, c[:1]), "1 triangle that has an area"),
    "all NaN": _mesh(lambda p, c: (np.nan * p, c), "no triangle that has an area"),
    "all in one place": _mesh(lambda p, c: (0 * p, c), "no triangle that has an area"),
    "flat": _mesh(lambda p, c: (p * [1, 1, 0], c), "lie in one plane"),
    "one-sided": _file(ply(*_moebius()), "one side only"),
    "index too large": _mesh(lambda p, c: (p, _set(c, (3, 1), 9999)), "9999"),
    "wrong units, 1000 times too small": _mesh(lambda p, c: (p / 1000, c), "0.00095"),
    "wrong units, 1000 times too large": _mesh(lambda p, c: (p * 1000, c), "939 times"),
    "file missing": _table(lambda t: t.replace(NAME, "gone.ply"), "gone.ply"),
    "row without a file": _table(lambda t: t.replace(f"shapes/{NAME}", ""), "row 7"),
    "unknown format": _file(b"solid", ".step is no format known", name=f"{BAD}.step"),
    "contour among surfaces": _file(b"x,y\n0,0\n9,0\n9,9\n", "different kinds", name="5.csv"),
    "broken STL": _file(b"solid x\nfacet\n vertex 0 0 0\n", "STL file ends", name="5.stl"),
    "broken VTP": _file(b"<VTKFile>", "VTK cannot read", name="5.vtp"),
    "broken NIfTI": _file(b"n+1" * 200, "SimpleITK cannot read", name="5.nii"),
}

NAMED: dict[str, Maker] = {
    "NaN vertices": _mesh(lambda p, c: (_set(p, 3, np.nan), c), "1 vertex not finite"),
    "non-manifold": _mesh(
        lambda p, c: (np.append(p, [[30, 0, 0]], 0), np.append(c, [[*c[0, :2], len(p)]], 0)),
        "three or more",
    ),
    "inside out": _mesh(lambda p, c: (p, c[:, ::-1]), "inside out in 1 of 12"),
    "two bodies": _mesh(
        lambda p, c: (np.concatenate([p, p / 2 + 20]), np.concatenate([c, c + len(p)])),
        "2 bodies (80%, 20% of the surface)",
    ),
    "speck": _mesh(
        lambda p, c: (np.concatenate([p, p / 50 + 20]), np.concatenate([c, c + len(p)])),
        "1 small body",
    ),
    "flipped faces": _mesh(
        lambda p, c: (p, _set(c, slice(5), c[:5, ::-1])), "5 triangles of 224 flipped"
    ),
    "repeated faces": _mesh(lambda p, c: (p, np.concatenate([c, c[:7]])), "7 triangles stored"),
    "degenerate faces": _mesh(
        lambda p, c: (p, np.concatenate([c, [[0, 0, 1]]])), "1 triangle without area"
    ),
    "hole": _mesh(lambda p, c: (p, np.delete(c, [40], axis=0)), "1 hole (3 open edges)"),
    "size off by four": _mesh(lambda p, c: (4 * p, c), "3.76 times the size"),
}
