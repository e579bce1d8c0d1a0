"""How large a shape is: length, area and volume of points in cells, for many shapes at once.

A missing (NaN) point of a cell makes the whole answer NaN: no sum is ever partial.
"""

from __future__ import annotations

import numpy as np

from prism.metrics._polyline import chain
from prism.typing import Cells, Floats, Shapes


def contour_length(points: Shapes, cells: Cells) -> Floats:
    """Sum of the lengths of segments; (..., M, n) and (K, 2) give (...)."""
    a, b = points[..., cells[:, 0], :], points[..., cells[:, 1], :]
    return np.linalg.norm(b - a, axis=-1).sum(axis=-1)


def enclosed_area(points: Shapes, cells: Cells) -> Floats:
    """Area inside closed lines of the plane; (..., M, 2) and (K, 2) give (...).

    A loop stored the other way round than the others is a hole.
    """
    # Measured from a corner, so that a shape far from the origin loses no digits.
    a, b = (points[..., ends, :] - points[..., cells[:1, 0], :] for ends in chain(cells).T)
    # A = |sum of a x b| / 2
    return np.abs((a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]).sum(axis=-1)) / 2


def surface_area(points: Shapes, cells: Cells) -> Floats:
    """Sum of the areas of triangles; (..., M, n) and (K, 3) give (...)."""
    a, b, c = (points[..., cells[:, k], :] for k in range(3))
    u, v = b - a, c - a
    # |u x v|^2 = |u|^2 |v|^2 - (u v)^2 in any dimension
    square = (u * u).sum(-1) * (v * v).sum(-1) - (u * v).sum(-1) ** 2
    return np.sqrt(np.maximum(square, 0)).sum(axis=-1) / 2


def enclosed_volume(points: Shapes, cells: Cells) -> Floats:
    """Volume inside closed triangles of one orientation; (..., M, 3) and (K, 3) give (...)."""
    a, b, c = (points[..., cells[:, k], :] - points[..., cells[:1, 0], :] for k in range(3))
    # V = |sum of a (b x c)| / 6
    return np.abs((a * np.cross(b, c)).sum(axis=(-2, -1))) / 6


def is_closed(cells: Cells) -> bool:
    """True where segments form loops, or triangles of one orientation a surface without a rim."""
    if not len(cells):
        return False
    if cells.shape[1] == 2:
        return bool((np.unique(cells, return_counts=True)[1] == 2).all())
    sides = np.concatenate([cells[:, [0, 1]], cells[:, [1, 2]], cells[:, [2, 0]]])
    once, count = np.unique(sides, axis=0, return_counts=True)
    back = np.unique(sides[:, ::-1], axis=0)
    return bool((count == 1).all()) and np.array_equal(once, back)
