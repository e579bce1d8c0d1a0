"""Pose of shapes: a common orientation before registration, and its removal after it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations, product

import numpy as np
from scipy.spatial import KDTree

from prism.cohort import SDFSamples, laid_upon, rotation_onto
from prism.errors import QueryError
from prism.registration.similarity import Similarity
from prism.typing import Floats, Points, Shapes

ALIGNMENTS = ("none", "rigid", "similarity")
CLOUD = 400  # points that stand for a shape while its orientation is sought
FINALISTS, ROUNDS = 4, 30
TRIM = 0.9  # share of nearest pairs that count: the rest may have no partner


def check_alignment(align: str) -> str:
    """Return the name of an alignment if it is one."""
    if align not in ALIGNMENTS:
        raise QueryError(f"align must be one of {ALIGNMENTS}. Got {align!r}.", "Choose one.")
    return align


def common_cloud(samples: SDFSamples, similarity: Similarity) -> Points:
    """(C, n) surface points of one shape in common coordinates."""
    return similarity.to_common(samples.surface[None, :CLOUD].astype(np.float64))[0]


def oriented(
    samples: Sequence[SDFSamples], similarity: Similarity, reference: Points
) -> Similarity:
    """Turn every shape to the orientation in which it lies closest to the reference.

    Args:
        samples: The shapes.
        similarity: Their centres and sizes.
        reference: (R, n) points of the reference in common coordinates.
    """
    rows = (similarity[i : i + 1] for i in range(len(samples)))
    clouds = (common_cloud(s, row) for s, row in zip(samples, rows, strict=True))
    return similarity.turned(np.stack([best_rotation(cloud, reference) for cloud in clouds]))


def best_rotation(cloud: Points, reference: Points) -> Floats:
    """(n, n) rotation of a centred cloud that brings it closest to a centred reference.

    Tries the orientation as it is and all ways to lay principal axes upon principal axes, and
    improves the best of them by turning nearest points onto each other.
    """
    tree = KDTree(reference)
    starts = [np.eye(cloud.shape[1]), *_axis_rotations(_axes(cloud), _axes(reference))]
    starts.sort(key=lambda R: _gap(cloud @ R.T, tree))
    finalists = [_improved(R, cloud, reference, tree) for R in starts[:FINALISTS]]
    return min(finalists, key=lambda R: _gap(cloud @ R.T, tree))


def _axes(cloud: Points) -> Floats:
    """(n, n) principal axes as rows, right-handed."""
    axes = np.linalg.svd(cloud - cloud.mean(axis=0), full_matrices=False)[2]
    axes[-1] *= np.linalg.det(axes)
    return axes


def _axis_rotations(own: Floats, other: Floats) -> list[Floats]:
    """Rotations that lay the axes `own` upon the axes `other`, in any order and direction."""
    n = len(own)
    orders = [np.eye(n)[list(order)] for order in permutations(range(n))]
    flips = [np.diag(signs) for signs in product((1.0, -1.0), repeat=n)]
    turns = [flip @ order for order in orders for flip in flips]
    return [other.T @ turn @ own for turn in turns if np.linalg.det(turn) > 0]


def _gap(cloud: Points, tree: KDTree) -> float:
    """Mean distance to the nearest reference points, the farthest tenth left out."""
    distance = np.sort(tree.query(cloud)[0])
    return float(distance[: int(TRIM * len(distance))].mean())


def _improved(R: Floats, cloud: Points, reference: Points, tree: KDTree) -> Floats:
    """Iterated closest points, rotation alone: centres and sizes agree already."""
    for _ in range(ROUNDS):
        distance, nearest = map(np.asarray, tree.query(cloud @ R.T))
        close = distance <= np.quantile(distance, TRIM)
        R = rotation_onto(cloud[close], reference[nearest[close]])
    return R


def rigidly_onto(template: Points, points: Shapes) -> Shapes:
    """Turn and shift every shape (N, M, n) onto the template; sizes stay."""
    return np.stack([laid_upon(template, shape, "size") for shape in points])


def similarly_onto(template: Points, points: Shapes) -> Shapes:
    """Turn, shift and scale every shape (N, M, n) onto the template: its rms radius is theirs."""
    return np.stack([laid_upon(template, shape, "form") for shape in points])
