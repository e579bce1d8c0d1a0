"""STL and OBJ files, read and written without VTK."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from prism.cohort.facets import places
from prism.cohort.raw import (
    Raw,
    broken,
    check_range,
    flattened,
    read_bytes,
    require_faces,
    segments,
    tag_text,
    tags,
    triangles,
)
from prism.typing import Cells, Points

_FACET = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
_HEADER = 84
_VERTEX = re.compile(rb"vertex\s+(\S+)\s+(\S+)\s+(\S+)", re.IGNORECASE)


def read_stl(path: Path) -> Raw:
    """Read an STL file, text or binary; corners at the same place become one point."""
    content = read_bytes(path)
    stated = int.from_bytes(content[80:_HEADER], "little") if len(content) >= _HEADER else -1
    if len(content) == _HEADER + stated * _FACET.itemsize:
        facets = np.frombuffer(content, _FACET, offset=_HEADER)
        corners = facets["corners"].astype(np.float64).reshape(-1, 3)
    elif content.lstrip().lower().startswith(b"solid"):
        corners = _text_corners(content)
    else:
        raise broken(f"not an STL file: {len(content)} bytes do not hold {stated} triangles")
    number = places(corners)
    points = np.empty((number.max(initial=-1) + 1, 3))
    points[number] = corners
    cells = number.reshape(-1, 3)
    require_faces(cells, len(points))
    return Raw(points, cells, *tags(content))


def _text_corners(content: bytes) -> Points:
    found = _VERTEX.findall(content)
    if len(found) % 3 or b"endsolid" not in content[-400:].lower():
        raise broken("the STL file ends before its last triangle is complete")
    return _floats(found).reshape(-1, 3)


def write_stl(path: Path, points: Points, cells: Cells, length_unit: str, axes: str) -> None:
    """Write a binary STL file (single precision is all it can hold)."""
    facets = np.zeros(len(cells), dtype=_FACET)
    corners = points[cells]
    facets["corners"] = corners
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    length = np.linalg.norm(normal, axis=-1, keepdims=True)
    facets["normal"] = np.divide(normal, length, out=np.zeros_like(normal), where=length > 0)
    head = f"prism {tag_text(length_unit, axes)}".encode()[:80].ljust(80)
    path.write_bytes(head + len(cells).to_bytes(4, "little") + facets.tobytes())


def read_obj(path: Path) -> Raw:
    """Read vertices, faces and lines of an OBJ file; everything else in it is left aside."""
    content = read_bytes(path)
    vertices, faces, lines = [], [], []
    for words in _lines(content):
        if words[0] == b"v":
            vertices.append(words[1:4])
        elif words[0] == b"f":
            faces.append(_corners(words[1:], len(vertices)))
        elif words[0] == b"l":
            lines.append(_corners(words[1:], len(vertices)))
    if not vertices:
        raise broken("no vertex (a line that starts with v)")
    if any(len(vertex) < 3 for vertex in vertices):
        raise broken("a vertex has fewer than three coordinates")
    points = _floats(vertices).reshape(-1, 3)
    cells = segments(*_flat(lines)) if lines and not faces else triangles(*_flat(faces))
    require_faces(cells, len(points))
    check_range(cells, len(points))
    return flattened(Raw(points, cells, *tags(content)))


def write_obj(path: Path, points: Points, cells: Cells, length_unit: str, axes: str) -> None:
    """Write an OBJ file that reads back to the last bit."""
    mark = "f" if cells.shape[1] == 3 else "l"
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(f"# prism {tag_text(length_unit, axes)}\n")
        file.writelines(f"v {x!r} {y!r} {z!r}\n" for x, y, z in points.tolist())
        file.writelines(f"{mark} {' '.join(map(str, row))}\n" for row in (cells + 1).tolist())


def _lines(content: bytes) -> Iterator[list[bytes]]:
    """The words of every line that has any; a backslash goes on in the next line."""
    for line in content.replace(b"\\\r\n", b" ").replace(b"\\\n", b" ").splitlines():
        words = line.split()
        if words:
            yield words


def _corners(words: list[bytes], seen: int) -> list[int]:
    """Indices from 0 of `3`, `3/1`, `3//2` or `-1`, which counts back from the last vertex."""
    try:
        numbers = [int(word.split(b"/", 1)[0]) for word in words]
    except ValueError:
        raise broken(f"face not understood: {b' '.join(words).decode('latin-1')}") from None
    return [seen + number if number < 0 else number - 1 for number in numbers]


def _flat(rows: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    counts = np.array([len(row) for row in rows], dtype=np.int64)
    return counts, np.array([number for row in rows for number in row], dtype=np.int64)


def _floats(rows: list) -> Points:
    try:
        return np.array(rows, dtype=np.bytes_).astype(np.float64)
    except ValueError:
        raise broken("a word stands where a coordinate should be") from None
