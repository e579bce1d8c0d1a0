"""What a shape file holds before anything was checked, and the words every reader shares."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from prism.errors import CohortError
from prism.typing import Cells, Points

_TAGS = re.compile(rb"\b(SPACE|UNIT)=(\w+)")
_HEAD = 4096


@dataclass(frozen=True)
class Raw:
    """Points and cells as stored.

    Attributes:
        points: (V, 2|3) positions; anything a file may hold, NaN included.
        cells: (K, 2|3) cells, None for bare points.
        length_unit: The unit the file states, or empty.
        axes: "LPS" or "RAS" as the file states, or empty.
        names: Names of landmarks, or none.
    """

    points: Points
    cells: Cells | None = None
    length_unit: str = ""
    axes: str = ""
    names: tuple[str, ...] = ()


def tags(content: bytes) -> tuple[str, str]:
    """Unit and axes as the comments of a mesh file state them (3D Slicer writes SPACE=LPS)."""
    found = {key.decode(): value.decode() for key, value in _TAGS.findall(content[:_HEAD])}
    return found.get("UNIT", ""), found.get("SPACE", "")


def tag_text(length_unit: str, axes: str) -> str:
    """The comment that `tags` reads back."""
    stated = {"SPACE": axes, "UNIT": length_unit if length_unit.isalnum() else ""}
    return " ".join(f"{key}={value}" for key, value in stated.items() if value)


def broken(what: str) -> CohortError:
    """A file that stops half-way or is not what its name says."""
    return CohortError(f"{what}.", "Export the shape again; if it was copied, copy it again.")


def read_bytes(path: Path) -> bytes:
    """The whole file; refuse one with nothing in it."""
    require_file(path)
    content = path.read_bytes()
    if not content.strip(b"\0 \t\r\n"):
        raise broken("the file is empty")
    return content


def require_file(path: Path) -> None:
    """Refuse a file that is not there, may not be read, or holds no byte."""
    try:
        with path.open("rb") as file:
            first = file.read(1)
    except OSError as error:
        raise CohortError(
            f"cannot be read: {error.strerror or error}.",
            "Check that the file is there and that you may read it.",
        ) from error
    if not first:
        raise broken("the file is empty")


def triangles(counts: np.ndarray, corners: np.ndarray) -> Cells:
    """Cut polygons into triangles, fanwise from their first corner.

    Args:
        counts: (P,) number of corners of each polygon.
        corners: The corners of all polygons, one after the other.
    """
    counts, corners = counts.astype(np.int64), corners.astype(np.int64)
    fans = np.maximum(counts - 2, 0)
    first = np.repeat(np.cumsum(counts) - counts, fans)
    step = np.arange(fans.sum()) - np.repeat(np.cumsum(fans) - fans, fans)
    picks = first[:, None] + np.stack([0 * step, step + 1, step + 2], axis=-1)
    return corners[picks].reshape(-1, 3)


def segments(counts: np.ndarray, corners: np.ndarray) -> Cells:
    """Cut polylines into segments; see `triangles` for the arguments."""
    counts, corners = counts.astype(np.int64), corners.astype(np.int64)
    links = np.maximum(counts - 1, 0)
    first = np.repeat(np.cumsum(counts) - counts, links)
    step = np.arange(links.sum()) - np.repeat(np.cumsum(links) - links, links)
    return corners[(first + step)[:, None] + np.arange(2)].reshape(-1, 2)


def require_faces(cells: Cells | None, points: int) -> None:
    """A mesh file has faces: bare points are what is left of one that was cut short."""
    if cells is None or not len(cells):
        raise broken(f"{points} points and no face")


def check_range(cells: Cells, points: int) -> None:
    """Every cell names points that are there."""
    if cells.size and not 0 <= cells.min() <= cells.max() < points:
        low, high = cells.min(), cells.max()
        raise broken(f"faces name the points {low} to {high}, but there are {points} points")


def flattened(raw: Raw) -> Raw:
    """Lines in a plane z = constant are a contour of the plane."""
    lines = raw.cells is not None and raw.cells.shape[1] == 2
    z = raw.points[:, 2]
    height = z[np.isfinite(z)]
    if not lines or not len(height) or (height != height[0]).any():
        return raw
    points = np.where(np.isfinite(z)[:, None], raw.points[:, :2], np.nan)
    return Raw(points, raw.cells, raw.length_unit)
