"""PLY files, text or binary, without VTK, whose reader does not survive a truncated file."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from prism.cohort.raw import (
    Raw,
    broken,
    check_range,
    read_bytes,
    require_faces,
    tag_text,
    tags,
    triangles,
)
from prism.typing import Cells, Points

_TYPES = {
    **dict.fromkeys(("char", "int8"), "i1"),
    **dict.fromkeys(("uchar", "uint8"), "u1"),
    **dict.fromkeys(("short", "int16"), "i2"),
    **dict.fromkeys(("ushort", "uint16"), "u2"),
    **dict.fromkeys(("int", "int32"), "i4"),
    **dict.fromkeys(("uint", "uint32"), "u4"),
    **dict.fromkeys(("float", "float32"), "f4"),
    **dict.fromkeys(("double", "float64"), "f8"),
}
_ORDERS = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}
_LISTS = ("vertex_indices", "vertex_index")


@dataclass
class _Element:
    """One section of the file: how many rows, and what each row holds."""

    name: str
    count: int
    scalars: list[tuple[str, str]] = field(default_factory=list)
    lists: list[tuple[str, str, str, int]] = field(default_factory=list)  # with place in the row


def read_ply(path: Path) -> Raw:
    """Read vertices and faces of a PLY file."""
    content = read_bytes(path)
    order, elements, body = _header(content)
    points: Points = np.empty((0, 3))
    cells: Cells = np.empty((0, 3), dtype=np.int64)
    reader = _Text(content[body:]) if order == "" else _Binary(content[body:], order)
    for element in elements:
        if element.name == "vertex":
            rows = reader.table(element)
            if not {"x", "y", "z"} <= set(rows):
                raise broken("vertices lack the properties x, y, z")
            points = np.stack([rows[axis].astype(np.float64) for axis in "xyz"], axis=-1)
        elif element.name == "face" and element.lists:
            cells = triangles(*reader.polygons(element))
        elif element.lists:
            reader.polygons(element)
        else:
            reader.table(element)
    require_faces(cells, len(points))
    check_range(cells, len(points))
    return Raw(points, cells, *tags(content))


def write_ply(path: Path, points: Points, cells: Cells, length_unit: str, axes: str) -> None:
    """Write a binary PLY file in double precision."""
    head = ["ply", "format binary_little_endian 1.0", f"comment {tag_text(length_unit, axes)}"]
    head += [f"element vertex {len(points)}", *(f"property double {axis}" for axis in "xyz")]
    head += [f"element face {len(cells)}", "property list uchar int vertex_indices", "end_header\n"]
    rows = np.empty(len(cells), dtype=[("n", "u1"), ("i", "<i4", (3,))])
    rows["n"], rows["i"] = 3, cells
    with path.open("wb") as file:
        file.write("\n".join(head).encode())
        file.write(points.astype("<f8").tobytes() + rows.tobytes())


def _header(content: bytes) -> tuple[str, list[_Element], int]:
    """Byte order, elements, and where the body starts."""
    end = content.find(b"end_header")
    stop = content.find(b"\n", end) if end >= 0 else -1
    if not content.startswith(b"ply") or stop < 0:
        raise broken("not a PLY file: its header does not start with ply or does not end")
    lines = [line.split() for line in content[:end].decode("latin-1").splitlines()]
    order, elements = None, []
    for words in lines:
        try:
            if words[:1] == ["format"]:
                order = _ORDERS[words[1]]
            elif words[:1] == ["element"]:
                elements.append(_Element(words[1], int(words[2])))
            elif words[:1] == ["property"]:
                _property(elements[-1], words)
        except (KeyError, IndexError, ValueError):
            raise broken(f"PLY header line not understood: {' '.join(words)}") from None
    if order is None:
        raise broken("the PLY header names no format")
    return order, elements, stop + 1


def _property(element: _Element, words: list[str]) -> None:
    if words[1] == "list":
        entry = (words[4], _TYPES[words[2]], _TYPES[words[3]], len(element.scalars))
        element.lists.append(entry)
    else:
        element.scalars.append((words[2], _TYPES[words[1]]))


def _corners(element: _Element) -> int:
    """Which of the element's lists holds the corners."""
    names = [entry[0] for entry in element.lists]
    return next((names.index(name) for name in _LISTS if name in names), 0)


class _Text:
    """The body of a text file, number by number."""

    def __init__(self, body: bytes) -> None:
        self.at = 0
        try:
            self.numbers = np.array(body.split() or [b"0"], dtype=np.bytes_).astype(np.float64)
        except ValueError:
            raise broken("the PLY file holds a word where a number should be") from None

    def _take(self, count: int) -> np.ndarray:
        stop = self.at + count
        if count < 0 or stop > len(self.numbers):
            raise broken("the PLY file ends before all its vertices and faces are there")
        taken = self.numbers[self.at : stop]
        self.at = stop
        return taken

    def table(self, element: _Element) -> dict[str, np.ndarray]:
        """Columns of an element without lists."""
        rows = self._take(element.count * len(element.scalars)).reshape(element.count, -1)
        return {name: rows[:, i] for i, (name, _) in enumerate(element.scalars)}

    def polygons(self, element: _Element) -> tuple[np.ndarray, np.ndarray]:
        """Number of corners of each polygon, and all corners."""
        chosen, counts, corners = _corners(element), [], []
        for _ in range(element.count):
            done = 0
            for i, (_, _, _, place) in enumerate(element.lists):
                self._take(place - done)
                done = place
                row = self._take(int(self._take(1)[0]))
                if i == chosen:
                    counts.append(len(row))
                    corners.append(row)
            self._take(len(element.scalars) - done)
        return np.array(counts, dtype=np.int64), np.concatenate([np.empty(0), *corners])


class _Binary:
    """The body of a binary file, read at an offset."""

    def __init__(self, body: bytes, order: str) -> None:
        self.body, self.order, self.at = body, order, 0

    def _take(self, dtype: np.dtype, count: int) -> np.ndarray:
        stop = self.at + dtype.itemsize * count
        if count < 0 or stop > len(self.body):
            raise broken("the PLY file ends before all its vertices and faces are there")
        taken = np.frombuffer(self.body, dtype, count, self.at)
        self.at = stop
        return taken

    def _fields(self, scalars: list[tuple[str, str]]) -> list[tuple[str, str]]:
        return [(f"{i} {name}", self.order + kind) for i, (name, kind) in enumerate(scalars)]

    def table(self, element: _Element) -> dict[str, np.ndarray]:
        """Columns of an element without lists."""
        rows = self._take(np.dtype(self._fields(element.scalars)), element.count)
        return {name: rows[f"{i} {name}"] for i, (name, _) in enumerate(element.scalars)}

    def polygons(self, element: _Element) -> tuple[np.ndarray, np.ndarray]:
        """Number of corners of each polygon, and all corners; fast where all have as many."""
        start = self.at
        if len(element.lists) == 1 and element.count:
            _, kind, item, place = element.lists[0]
            first = self._peek(element, kind, place)
            fields = self._fields(element.scalars)
            row = [*fields[:place], ("n", self.order + kind)]
            row += [("i", self.order + item, (first,)), *fields[place:]]
            if start + np.dtype(row).itemsize * element.count <= len(self.body):
                rows = self._take(np.dtype(row), element.count)
                if (rows["n"] == first).all():
                    return rows["n"], rows["i"].ravel()
        self.at = start
        return self._one_by_one(element)

    def _peek(self, element: _Element, kind: str, place: int) -> int:
        """Length of the first list; the position does not move."""
        start = self.at
        self._take(np.dtype(self._fields(element.scalars[:place])), 1)
        first = int(self._take(np.dtype(self.order + kind), 1)[0])
        self.at = start
        return first

    def _one_by_one(self, element: _Element) -> tuple[np.ndarray, np.ndarray]:
        chosen, counts, corners = _corners(element), [], []
        fields = [np.dtype(field) for _, field in self._fields(element.scalars)]
        for _ in range(element.count):
            done = 0
            for i, (_, kind, item, place) in enumerate(element.lists):
                self.at += sum(field.itemsize for field in fields[done:place])
                done = place
                number = int(self._take(np.dtype(self.order + kind), 1)[0])
                row = self._take(np.dtype(self.order + item), number)
                if i == chosen:
                    counts.append(number)
                    corners.append(row)
            self.at += sum(field.itemsize for field in fields[done:])
        return np.array(counts, dtype=np.int64), np.concatenate([np.empty(0), *corners])
