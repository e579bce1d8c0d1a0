"""Point samples of contours and surfaces, so that every method is scored on the same footing.

One seed gives one sample: two shapes sampled with one seed share their random numbers, and a shape
sampled twice has distance zero. For the sampling floor, sample one shape with two seeds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from prism.errors import QueryError
from prism.metrics._door import cell_array, floats, positive_count, shapes
from prism.metrics._polyline import chain
from prism.typing import Cells, Floats, Points, Shapes

CONTOUR_COUNT = 1000
SURFACE_COUNT = 10_000


def resample_contour(points: ArrayLike, cells: ArrayLike, count: int = CONTOUR_COUNT) -> Points:
    """Re-sample a polyline uniformly by arc length; deterministic.

    Segments are chained into lines first, in whatever order they are stored, and the lines are
    laid end to end; sample i lies at arc length (i + 1/2) / count of the whole. Segments with a
    missing end are left out.

    Args:
        points: (M, n) vertices, NaN = missing.
        cells: (K, 2) segments: closed loops, open lines, one or several.
        count: Number of samples.

    Returns:
        (count, n) points on the contour, in the unit of the points.
    """
    return _contours(_one(points), cells, count)[0]


def sample_surface(
    points: ArrayLike, cells: ArrayLike, count: int = SURFACE_COUNT, seed: int = 0
) -> Points:
    """Sample a triangle mesh uniformly by area, independently.

    Triangles with a missing corner are left out.

    Args:
        points: (M, n) vertices, NaN = missing.
        cells: (K, 3) triangles.
        count: Number of samples.
        seed: Seed of the random numbers.

    Returns:
        (count, n) points on the surface, in the unit of the points.
    """
    return _surfaces(_one(points), cells, count, seed)[0]


def sample_shape(
    points: ArrayLike, cells: ArrayLike | None = None, count: int | None = None, seed: int = 0
) -> Points:
    """Sample one shape as its cells ask; see `sample_shapes`."""
    return sample_shapes(_one(points), cells, count, seed)[0]


def sample_shapes(
    points: ArrayLike, cells: ArrayLike | None = None, count: int | None = None, seed: int = 0
) -> Shapes:
    """Sample N shapes that share their cells, all to one count and with one seed.

    Args:
        points: (N, M, n) vertices, NaN = missing.
        cells: (K, 2) segments: by arc length; (K, 3) triangles: by area; None: the observed points
            themselves, or a random choice of `count` of them.
        count: Samples a shape. Default: 1000 of a contour, 10,000 of a surface; without cells, as
            many as every shape has.
        seed: Seed of the random numbers, the same for every shape.

    Returns:
        (N, count, n) samples in the unit of the points.
    """
    points = shapes(points)
    if cells is None:
        return _choices(points, count, seed)
    width = np.shape(cells)[-1] if np.ndim(cells) else 0
    if width == 2:
        return _contours(points, cells, CONTOUR_COUNT if count is None else count)
    if width == 3:
        return _surfaces(points, cells, SURFACE_COUNT if count is None else count, seed)
    raise QueryError(
        f"cells must have shape (K, 2) or (K, 3). Got {np.shape(cells)}.",
        "Pass segments as pairs, triangles as triples, or None for a set of points.",
    )


def _one(points: ArrayLike) -> Shapes:
    return shapes(floats(points, "points")[None])


def _contours(points: Shapes, cells: ArrayLike, count: int) -> Shapes:
    cells = chain(cell_array(cells, 2, points.shape[1]))
    length = np.linalg.norm(points[:, cells[:, 1]] - points[:, cells[:, 0]], axis=-1)  # (N, K)
    share = (np.arange(positive_count(count)) + 0.5) / count
    index, rest = _locate(length, share, "length")  # (N, count)
    start, end = (_corners(points, cells[:, side], index) for side in (0, 1))
    return start + rest[..., None] * (end - start)


def _surfaces(points: Shapes, cells: ArrayLike, count: int, seed: int) -> Shapes:
    cells = cell_array(cells, 3, points.shape[1])
    share, u, v = np.random.default_rng(seed).random((3, positive_count(count)))
    index, _ = _locate(_areas(points, cells), share, "area")
    a, b, c = (_corners(points, cells[:, side], index) for side in range(3))
    root, v = np.sqrt(u)[:, None], v[:, None]
    # y = a + √u (1 − v) (b − a) + √u v (c − a) is uniform on the triangle
    return a + root * (1 - v) * (b - a) + root * v * (c - a)


def _choices(points: Shapes, count: int | None, seed: int) -> Shapes:
    rows = [row[np.isfinite(row).all(axis=-1)] for row in points]
    fewest = min((len(row) for row in rows), default=points.shape[1])
    wanted = max(fewest, 1) if count is None else positive_count(count)
    if fewest < wanted:
        row = int(np.argmin([len(row) for row in rows]))
        raise QueryError(
            f"shape {row} has {fewest} observed points, {wanted} are wanted.",
            "Ask for fewer points, or count the shape as a failure and leave it out.",
        )
    chosen = [_choose(row, wanted, seed) for row in rows]
    return np.array(chosen).reshape(len(rows), wanted, points.shape[-1])


def _choose(row: Points, count: int, seed: int) -> Points:
    """(count, n) points chosen at random without repetition, in stored order."""
    order = np.random.default_rng(seed).permutation(len(row))
    return row[np.sort(order[:count])]


def _locate(size: Floats, share: Floats, what: str) -> tuple[Cells, Floats]:
    """Cell in which each share of the total size falls, and how far into it, both (N, count)."""
    size = np.nan_to_num(size, nan=0.0)  # a cell with a missing corner is not there
    ends = np.cumsum(size, axis=1)
    if not (ends[:, -1] > 0).all():
        row = int(np.argmin(ends[:, -1] > 0))
        raise QueryError(
            f"shape {row} has no {what}: its points coincide or are missing.",
            "Count the shape as a failure and leave it out.",
        )
    total = ends[:, -1:]
    target = np.minimum(total * share, np.nextafter(total, 0.0))  # below the total after rounding
    # Side "right" passes over cells of size zero.
    rows = zip(ends, target, strict=True)
    index = np.array([np.searchsorted(e, s, side="right") for e, s in rows], dtype=np.int64)
    index = index.reshape(target.shape)
    into = target - np.take_along_axis(ends - size, index, axis=1)
    return index, np.clip(into / np.take_along_axis(size, index, axis=1), 0.0, 1.0)


def _areas(points: Shapes, cells: Cells) -> Floats:
    """(N, K) areas of the triangles; a plane is laid into space."""
    a, b, c = np.moveaxis(points[:, cells], 2, 0)
    u, v = (np.pad(e, [(0, 0), (0, 0), (0, 3 - e.shape[-1])]) for e in (b - a, c - a))
    return 0.5 * np.linalg.norm(np.cross(u, v), axis=-1)


def _corners(points: Shapes, corner: Cells, index: Cells) -> Shapes:
    """(N, count, n) positions of one corner of the chosen cells."""
    return np.take_along_axis(points, corner[index][..., None], axis=1)
