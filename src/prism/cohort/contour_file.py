"""Contours of the plane as CSV: one point a row, closed; several contours by a column."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np

from prism.cohort.files import read_text
from prism.cohort.raw import Raw, broken, require_file
from prism.errors import CohortError
from prism.typing import Cells, Points

_GROUP = "contour"


def read_contour(path: Path) -> Raw:
    """Read closed contours from a table with columns x, y and perhaps `contour`.

    The header may be missing where there are two columns. Points follow each other along the
    contour and the last is joined to the first, whether or not it repeats it.
    """
    require_file(path)
    rows = _rows(read_text(path))
    columns = _columns(rows[0])
    body = rows if columns is None else rows[1:]
    x, y, group = columns or (0, 1, None)
    points = np.array([[_number(row, x, i), _number(row, y, i)] for i, row in enumerate(body, 1)])
    label = np.zeros(len(body)) if group is None else _groups([row[group] for row in body])
    loops = [np.flatnonzero(label == value) for value in dict.fromkeys(label.tolist())]
    if not loops:
        raise broken("the table holds a header and no point")
    return Raw(points, np.concatenate([_closed(points, loop) for loop in loops]))


def write_contour(path: Path, points: Points, cells: Cells) -> None:
    """Write closed contours; a table cannot hold an open one."""
    rows = ["contour,x,y\n"]
    for i, loop in enumerate(_loops(cells)):
        rows += [f"{i},{x!r},{y!r}\n" for x, y in points[loop].tolist()]
    path.write_text("".join(rows), encoding="utf-8")


def _rows(text: str) -> list[list[str]]:
    head = text.splitlines()[0]
    mark = max(",;\t ", key=head.count)
    lines = io.StringIO(text, newline="")
    records = csv.reader(lines, delimiter=mark, skipinitialspace=True)
    rows = [[cell.strip() for cell in record] for record in records]
    rows = [row for row in rows if any(row)]
    if len({len(row) for row in rows}) > 1:
        raise broken("the rows have different numbers of cells")
    return rows


def _columns(header: list[str]) -> tuple[int, int, int | None] | None:
    """Where x, y and contour stand; None where the first row is a point already."""
    names = [name.lower() for name in header]
    if "x" in names and "y" in names:
        if "z" in names:
            raise CohortError(
                "the table has a column z, but a contour lies in the plane.",
                "Leave z out, or store a surface as .ply and landmarks as .mrk.json.",
            )
        group = names.index(_GROUP) if _GROUP in names else None
        return names.index("x"), names.index("y"), group
    if len(header) == 2 and all(map(_is_number, header)):
        return None
    raise CohortError(
        f"columns x and y are missing. Found: {', '.join(header)}.",
        "Name the columns x, y and, for several contours, contour.",
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _number(row: list[str], column: int, number: int) -> float:
    if not _is_number(row[column]):
        raise CohortError(
            f"point {number}: {row[column]!r} is not a number.", "Write numbers such as 2.5."
        )
    return float(row[column])


def _groups(names: list[str]) -> np.ndarray:
    return np.unique(np.array(names), return_inverse=True)[1].astype(float)


def _closed(points: Points, loop: np.ndarray) -> Cells:
    """Segments along the points and back to the first, which the last may repeat."""
    if len(loop) > 1 and np.array_equal(points[loop[0]], points[loop[-1]]):
        loop = loop[:-1]
    return np.stack([loop, np.roll(loop, -1)], axis=-1)


def _loops(cells: Cells) -> list[np.ndarray]:
    """Follow the segments around each closed contour."""
    follower = dict(cells.tolist())
    if len(follower) != len(cells) or set(follower) != set(follower.values()):
        raise CohortError(
            "an open or branching contour cannot be written as a table of points.",
            "Write it as .vtp.",
        )
    loops = []
    while follower:
        start = point = next(iter(follower))
        loop = []
        while point in follower:
            loop.append(point)
            point = follower.pop(point)
        if point != start:
            raise CohortError("a contour branches.", "Write it as .vtp.")
        loops.append(np.array(loop))
    return loops
