"""What the metrics ask of their input, checked once, at the door."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prism.errors import QueryError
from prism.typing import Cells, Floats, Points, Shapes


def floats(values: ArrayLike, name: str) -> Floats:
    """Return the values as float64, or say which argument holds something else."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise QueryError(
            f"{name} must be an array of numbers. Got {type(values).__name__}: {error}.",
            f"Pass {name} as a NumPy array of floats.",
        ) from error


def cloud(points: ArrayLike, name: str) -> Points:
    """Return (M, n) finite points, at least one."""
    points = floats(points, name)
    if points.ndim != 2 or 0 in points.shape:
        raise QueryError(
            f"{name} must have shape (M, n) with at least one point. Got {points.shape}.",
            "Pass one row a point; count an empty shape as a failure, do not score it.",
        )
    if not np.isfinite(points).all():
        bad = int((~np.isfinite(points).all(axis=1)).sum())
        raise QueryError(
            f"{bad} of the {len(points)} points of {name} are not finite.",
            "Sample the shape first: prism.metrics.sample_shape drops missing points.",
        )
    return points


def clouds(a: ArrayLike, b: ArrayLike) -> tuple[Points, Points]:
    """Return two finite point sets of one space dimension."""
    a, b = cloud(a, "a"), cloud(b, "b")
    if a.shape[1] != b.shape[1]:
        raise QueryError(
            f"a and b must have one space dimension. Got {a.shape[1]} and {b.shape[1]}.",
            "Compare planar shapes with planar ones, solid with solid ones.",
        )
    return a, b


def shapes(points: ArrayLike) -> Shapes:
    """Return (N, M, n) points, n = 2 or 3; a missing point is NaN."""
    points = floats(points, "points")
    if points.ndim != 3 or points.shape[-1] not in (2, 3) or points.shape[1] == 0:
        raise QueryError(
            f"points must have shape (N, M, 2) or (N, M, 3). Got {points.shape}.",
            "Pass one row a point and n = 2 or 3 columns; sample_shapes wants N shapes in front.",
        )
    return points


def cell_array(cells: ArrayLike, width: int, point_count: int) -> Cells:
    """Return (K, width) indices into the points, at least one cell."""
    cells = np.asarray(cells)
    whole = cells.dtype.kind in "iu"
    if not (whole and cells.ndim == 2 and cells.shape[1] == width and len(cells)):
        raise QueryError(
            f"cells must be a (K, {width}) array of integers, K > 0. "
            f"Got {cells.dtype} of shape {cells.shape}.",
            "Pass segments as pairs, triangles as triples of point indices.",
        )
    if not 0 <= cells.min() <= cells.max() < point_count:
        raise QueryError(
            f"cells name points {cells.min()} to {cells.max()}, "
            f"but there are points 0 to {point_count - 1}.",
            "Count points from 0.",
        )
    return cells.astype(np.int64)


def positive_count(count: int, name: str = "count") -> int:
    """Return a count of at least one."""
    if count < 1:
        raise QueryError(f"{name} must be at least 1. Got {count}.", f"Give a positive {name}.")
    return int(count)


def level_inside(level: float) -> float:
    """Return a nominal level strictly between 0 and 1."""
    if not 0 < level < 1:
        raise QueryError(
            f"level must be between 0 and 1, both excluded. Got {level}.",
            "Write 90% as 0.9.",
        )
    return float(level)


def same_shape(first: ArrayLike, second: ArrayLike, names: str) -> tuple[Floats, Floats]:
    """Return two arrays of one shape."""
    first, second = floats(first, names), floats(second, names)
    if first.shape != second.shape:
        raise QueryError(
            f"{names} must have the same shape. Got {first.shape} and {second.shape}.",
            "Pass one estimate for each true value, in the same order.",
        )
    return first, second


def two_groups(score: ArrayLike, abnormal: ArrayLike) -> tuple[Floats, NDArray[np.bool_]]:
    """Return (N,) finite scores and (N,) labels, with both groups present."""
    score, abnormal = floats(score, "score"), np.asarray(abnormal)
    if score.ndim != 1 or abnormal.shape != score.shape:
        raise QueryError(
            f"score and abnormal must be two lists of one length. "
            f"Got shapes {score.shape} and {abnormal.shape}.",
            "Pass one score and one label a case.",
        )
    if not np.isin(abnormal, (0, 1)).all():
        raise QueryError(
            f"abnormal must hold True and False. Got {abnormal.dtype} with other values.",
            "Mark an abnormal case True and a normal one False.",
        )
    if np.isnan(score).any():
        raise QueryError(
            f"{int(np.isnan(score).sum())} of {len(score)} scores are NaN.",
            "Leave out the cases that could not be scored and report how many they were.",
        )
    abnormal = abnormal.astype(bool)
    if abnormal.all() or not abnormal.any():
        raise QueryError(
            f"{int(abnormal.sum())} of {len(score)} cases are abnormal: one group is empty.",
            "Pass normal and abnormal cases together.",
        )
    return score, abnormal
