"""Signed distance to a surface or a contour: size by nearest cell, sign by winding number.

The winding number needs no closed mesh: it is 1 inside, 0 outside and passes 1/2 where a hole would
be closed. Cells must face outwards, as `read_shape` leaves them.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from prism.errors import QueryError
from prism.typing import Cells, Floats, Points


def signed_distance(points: ArrayLike, cells: ArrayLike, query: ArrayLike) -> Floats:
    """Signed distance of query points, negative inside.

    Args:
        points: (V, n) vertices.
        cells: (K, 3) triangles in space or (K, 2) segments in the plane, facing outwards.
        query: (Q, n) where to measure.

    Returns:
        (Q,) distances in the unit of the points.
    """
    vertices, facets, places = _arrays(points, cells, query)
    squared, _, _ = _igl().point_mesh_squared_distance(places, vertices, facets)
    # s = (1 − 2·[w > 1/2]) d
    sign = np.where(winding_number(vertices, facets, places) > 0.5, -1.0, 1.0)
    return sign * np.sqrt(np.maximum(squared, 0.0))


def winding_number(points: ArrayLike, cells: ArrayLike, query: ArrayLike) -> Floats:
    """Generalised winding number of query points: 1 inside, 0 outside, between at holes."""
    vertices, facets, places = _arrays(points, cells, query)
    if vertices.shape[1] == 2:
        return _igl().winding_number(vertices, facets, places)
    return _igl().fast_winding_number(vertices, facets, places)


def _igl() -> Any:
    if find_spec("igl") is None:
        raise QueryError(
            "signed distances need the package libigl, which is not installed.",
            "Run: pip install libigl",
        )
    import igl

    return igl


def _arrays(points: ArrayLike, cells: ArrayLike, query: ArrayLike) -> tuple[Points, Cells, Points]:
    """The arrays as libigl takes them; it does not check, so they are checked here."""
    vertices = np.ascontiguousarray(points, dtype=np.float64)
    facets = np.ascontiguousarray(cells, dtype=np.int64)
    places = np.ascontiguousarray(query, dtype=np.float64)
    n = vertices.shape[-1] if vertices.ndim == 2 else 0
    right = n in (2, 3) and facets.ndim == 2 and facets.shape[1] == n and len(facets) > 0
    right = right and places.ndim == 2 and places.shape[1] == n
    if not right or not 0 <= facets.min() <= facets.max() < len(vertices):
        raise QueryError(
            f"points {vertices.shape}, cells {facets.shape} and query {places.shape} do not fit.",
            "Pass (V, n) points, (K, n) cells over them and (Q, n) query points, n = 2 or 3.",
        )
    if not (np.isfinite(vertices).all() and np.isfinite(places).all()):
        raise QueryError(
            "points and query points must be finite.", "Read the shape with read_shape."
        )
    return vertices, facets, places
