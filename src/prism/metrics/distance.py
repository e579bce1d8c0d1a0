"""Distances between two shapes given as point sets, in the unit of the points.

The tables of the paper show them x100 in the cohort's normalised unit. Sample both shapes the same
way first (`prism.metrics.sample_shape`): 1000 points a contour, 10,000 a surface, 2048 for EMD.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist

from prism.errors import QueryError
from prism.metrics._door import clouds
from prism.typing import Floats, Points

EMD_COUNT = 2048  # points a shape in the tables; the value of EMD depends on it
_EMD_STEPS = 10_000_000


def chamfer(a: ArrayLike, b: ArrayLike) -> float:
    """Chamfer distance (CD): squared, two-sided (sum of the two means).

    Args:
        a: (A, n) points, any count.
        b: (B, n) points, any count.

    Returns:
        The distance in the square of the points' unit.
    """
    a, b = clouds(a, b)
    # CD = 1/A Σ_a min_b |a − b|² + 1/B Σ_b min_a |a − b|²
    return float((_nearest(a, b) ** 2).mean() + (_nearest(b, a) ** 2).mean())


def hausdorff(a: ArrayLike, b: ArrayLike) -> float:
    """Hausdorff distance (HD): not squared, two-sided (larger of the two one-sided maxima).

    Args:
        a: (A, n) points, any count.
        b: (B, n) points, any count.

    Returns:
        The distance in the points' unit.
    """
    a, b = clouds(a, b)
    # HD = max(max_a min_b |a − b|, max_b min_a |a − b|)
    return float(max(_nearest(a, b).max(), _nearest(b, a).max()))


def emd(a: ArrayLike, b: ArrayLike) -> float:
    """Earth mover's distance (EMD): not squared, mean cost of the exact best assignment.

    Symmetric by itself, so neither one- nor two-sided. It depends on the point count: two samples
    of one surface do not score zero. Fix the count (`EMD_COUNT`) and the seed.

    Args:
        a: (A, n) points.
        b: (A, n) points, as many.

    Returns:
        The distance in the points' unit.
    """
    a, b = _equal_size(a, b)
    return _assignment_mean(cdist(a, b))


def emd_squared(a: ArrayLike, b: ArrayLike) -> float:
    """Squared EMD: mean cost of the exact best assignment under *squared* distances.

    Not the square of `emd`: the best assignment is sought anew. Point counts as for `emd`.

    Args:
        a: (A, n) points.
        b: (A, n) points, as many.

    Returns:
        The distance in the square of the points' unit.
    """
    a, b = _equal_size(a, b)
    return _assignment_mean(cdist(a, b, "sqeuclidean"))


def _nearest(a: Points, b: Points) -> Floats:
    """(A,) distance from each point of a to its nearest point of b."""
    distance, _ = KDTree(b).query(a)
    return distance


def _equal_size(a: ArrayLike, b: ArrayLike) -> tuple[Points, Points]:
    a, b = clouds(a, b)
    if len(a) != len(b):
        raise QueryError(
            f"EMD needs as many points in a as in b. Got {len(a)} and {len(b)}.",
            "Sample both shapes to one count: prism.metrics.sample_shape(points, cells, 2048).",
        )
    return a, b


def _assignment_mean(cost: np.ndarray) -> float:
    """Mean cost of the best assignment: optimal transport between equal uniform weights."""
    try:
        import ot  # 3 s to import
    except ImportError as error:
        raise QueryError("EMD needs the package POT.", "Install it: pip install POT") from error
    # Transport between uniform weights of equal number has a permutation among its optima.
    value, log = ot.emd2([], [], cost, numItermax=_EMD_STEPS, log=True)
    if log["warning"] is not None:
        raise QueryError(
            f"the assignment of {len(cost)} points was not solved: {log['warning']}",
            "Use fewer points.",
        )
    return float(value)
