"""Random points on a surface or a contour, uniform by area, with normals."""

from __future__ import annotations

import numpy as np

from prism.cohort.facets import Facets
from prism.typing import Cells, Floats, Points

CREASE = 0.87  # cosine: where the normals of vertex and cell part by more, there is a crease


def sample_normals(
    points: Points, cells: Cells, count: int, rng: np.random.Generator
) -> tuple[Points, Floats]:
    """Draw points uniformly by area, with outward unit normals, in no order.

    The area is cut into `count` equal parts along the list of cells and one point drawn in each.
    Neighbours in the list are mostly neighbours in space, so the centre and the size of the sample
    are several times nearer the shape's own than those of independent points.

    Normals of vertices are averages over their cells, weighted by angle, and are interpolated
    within a cell; at a corner on a crease the normal of the cell stands in.

    Args:
        points: (V, n) vertices.
        cells: (K, n) triangles in space or segments in the plane, facing outwards.
        count: Number of points.
        rng: Source of randomness.

    Returns:
        (count, n) points and (count, n) normals.
    """
    facets = Facets.of(points, cells)
    chosen = rng.permutation(_one_a_part(facets.areas, count, rng))
    weights = _barycentric(count, cells.shape[1], rng)
    corners = facets.points[cells[chosen]]
    flat = _unit(facets.normals)[chosen][:, None]
    bent = _vertex_normals(facets)[facets.welded[chosen]]
    smooth = (flat * bent).sum(axis=-1, keepdims=True) >= CREASE
    normals = _mix(weights, np.where(smooth, bent, flat))
    return _mix(weights, corners), _unit(normals)


def _one_a_part(areas: Floats, count: int, rng: np.random.Generator) -> Cells:
    """(count,) cells in which points drawn from equal parts of the whole area fall, in order."""
    ends = np.cumsum(areas)
    place = (np.arange(count) + rng.random(count)) / count * ends[-1]
    return np.minimum(np.searchsorted(ends, place, side="right"), len(areas) - 1)


def _mix(weights: Floats, corners: Floats) -> Floats:
    """(count, n) averages of the corners of each cell."""
    return np.einsum("ck,ckn->cn", weights, corners)


def _barycentric(count: int, corners: int, rng: np.random.Generator) -> Floats:
    """(count, corners) weights uniform on the segment or the triangle."""
    u = rng.random((count, corners - 1))
    if corners == 2:
        return np.concatenate([1 - u, u], axis=1)
    root = np.sqrt(u[:, :1])
    return np.concatenate([1 - root, root * (1 - u[:, 1:]), root * u[:, 1:]], axis=1)


def _vertex_normals(facets: Facets) -> Floats:
    """(P, n) unit normals of the distinct positions, weighted by angle (in the plane, equally)."""
    flat, welded = _unit(facets.normals), facets.welded
    angle = _angles(facets) if welded.shape[1] == 3 else np.ones(welded.shape)
    count = int(facets.place.max()) + 1
    normals = np.zeros((count, flat.shape[1]))
    for axis in range(flat.shape[1]):
        weighted = (angle * flat[:, axis : axis + 1]).ravel()
        normals[:, axis] = np.bincount(welded.ravel(), weighted, minlength=count)
    return _unit(normals)


def _angles(facets: Facets) -> Floats:
    """(K, 3) angle of each triangle at each corner."""
    corners = facets.points[facets.cells]
    ahead = _unit(np.roll(corners, -1, axis=1) - corners)
    behind = _unit(np.roll(corners, 1, axis=1) - corners)
    return np.arccos(np.clip((ahead * behind).sum(axis=-1), -1.0, 1.0))


def _unit(vectors: Floats) -> Floats:
    """Vectors of length one; zero stays zero."""
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0)
