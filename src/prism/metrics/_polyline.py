"""Order in segments: walk a bag of segments line by line."""

from __future__ import annotations

import numpy as np

from prism.typing import Cells


def chain(cells: Cells) -> Cells:
    """Order and turn segments so that each line is walked from one end to the other.

    Open lines start at their ends, loops at their first stored point; at a branch the walk goes
    on along the segment stored first. Every segment is walked once.

    Args:
        cells: (K, 2) segments in any order and direction.

    Returns:
        (K, 2) the same segments; within a line the end of one is the start of the next.
    """
    touching = _touching(cells)
    ends = [point for point, near in touching.items() if len(near) % 2]
    walked: list[tuple[int, int]] = []
    free = np.ones(len(cells), dtype=bool)
    for start in [*ends, *touching]:
        walked += _walk(start, cells, touching, free)
    return np.array(walked, dtype=np.int64)


def _touching(cells: Cells) -> dict[int, list[int]]:
    """Segments that touch each point, in stored order."""
    touching: dict[int, list[int]] = {}
    for k, (i, j) in enumerate(cells.tolist()):
        touching.setdefault(i, []).append(k)
        touching.setdefault(j, []).append(k)
    return touching


def _walk(
    point: int, cells: Cells, touching: dict[int, list[int]], free: np.ndarray
) -> list[tuple[int, int]]:
    """Follow free segments from a point until none is left, marking them as walked."""
    walked = []
    while (k := next((k for k in touching[point] if free[k]), None)) is not None:
        free[k] = False
        i, j = cells[k].tolist()
        following = j if i == point else i
        walked.append((point, following))
        point = following
    return walked
