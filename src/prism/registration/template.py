"""The template as points and cells: the zero level of its signed distance, evenly sampled."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree

from prism.errors import FitError, ModelError
from prism.registration.networks import Networks
from prism.typing import Cells, Floats, Points

GRID = {2: 256, 3: 144}  # nodes along the longest side
PADDING = 0.08  # of the box around the template, in common units
COARSE = 4  # every how many nodes the distance is first measured
NEAR = 0.04  # how far a piece of the zero level may lie from the shapes that made it
ROUNDS, NEWTON = 10, 4
AT_ONCE = 65_536


@dataclass(frozen=True)
class Template:
    """Points of the template in common coordinates, and how they are joined.

    Attributes:
        points: (M, n) positions.
        cells: (K, n) segments or triangles, facing outwards.
    """

    points: Points
    cells: Cells


def extract(networks: Networks, support: Points, vertices: int) -> Template:
    """Read the template off its network.

    Args:
        networks: The trained networks.
        support: (Q, n) template points of the training surfaces: the zero level near them is the
            template, anything else is a fancy of the network.
        vertices: How many points to spread evenly over it.

    Raises:
        FitError: The network has no zero level near the shapes.
    """
    level = _contours if networks.n == 2 else _surface
    points, cells = _supported(*level(networks, _box(support)), support)
    if not len(cells):
        raise FitError(
            "the template's signed distance is nowhere zero near the shapes.",
            "Register with more steps, or check the shapes: prism check.",
        )
    thin = _even_contours if networks.n == 2 else _even_surface
    points, cells = thin(networks, points, cells, vertices)
    return Template(points, cells)


def _box(support: Points) -> Points:
    return np.stack([support.min(axis=0) - PADDING, support.max(axis=0) + PADDING])


def distances(networks: Networks, p: Points) -> Floats:
    """Signed distance of the template at points p (Q, n)."""
    device = next(networks.parameters()).device
    with torch.no_grad():
        parts = torch.as_tensor(p, dtype=torch.float32).split(AT_ONCE)
        return np.concatenate([networks.distance(x.to(device)).cpu().numpy() for x in parts])


def onto_level(networks: Networks, p: Points) -> Points:
    """Move points p (Q, n) onto the zero level, along the gradient (Newton)."""
    x = torch.as_tensor(p, dtype=torch.float32).to(next(networks.parameters()).device)
    for _ in range(NEWTON):
        x = x.detach().requires_grad_()
        s = networks.distance(x)
        (g,) = torch.autograd.grad(s.sum(), x)
        # p ← p − s ∇s / |∇s|²
        x = x - s[:, None] * g / g.square().sum(-1, keepdim=True).clamp_min(0.1)
    return x.detach().cpu().numpy().astype(np.float64)


def _grid(networks: Networks, box: Points) -> tuple[Floats, Floats]:
    """Distances on a grid over the box and its spacing; exact only where the surface may be.

    A signed distance that is large at a coarse node has no zero in the cells around it, so fine
    nodes there take the coarse value.
    """
    n = networks.n
    spacing = float((box[1] - box[0]).max()) / (GRID[n] - 1)
    counts = np.ceil((box[1] - box[0]) / spacing).astype(int) // COARSE * COARSE + COARSE + 1
    axes = [low + spacing * np.arange(count) for low, count in zip(box[0], counts, strict=True)]
    rough_nodes = np.stack(np.meshgrid(*(a[::COARSE] for a in axes), indexing="ij"), axis=-1)
    rough = distances(networks, rough_nodes.reshape(-1, n)).reshape(rough_nodes.shape[:-1])
    nearest = [(np.arange(count) + COARSE // 2) // COARSE for count in counts]
    values = rough[np.ix_(*nearest)].astype(np.float64)
    fine = np.abs(values) < 2 * COARSE * spacing
    nodes = np.stack([a[i] for a, i in zip(axes, np.nonzero(fine), strict=True)], axis=-1)
    values[fine] = distances(networks, nodes)
    return values, np.full(n, spacing)


def _contours(networks: Networks, box: Points) -> tuple[Points, Cells]:
    """Closed curves of the zero level in the plane, inside on their left."""
    values, spacing = _grid(networks, box)
    curves = _measure().find_contours(values, 0.0, positive_orientation="low")
    closed = [c[:-1] for c in curves if len(c) > 3 and (c[0] == c[-1]).all()]
    cells, start = [], 0
    for curve in closed:
        index = start + np.arange(len(curve))
        cells.append(np.stack([index, np.roll(index, -1)], axis=-1))
        start += len(curve)
    if not closed:
        return np.empty((0, 2)), np.empty((0, 2), dtype=np.int64)
    points = box[0] + np.concatenate(closed) * spacing
    return _counter_clockwise(points, np.concatenate(cells), values)


def _counter_clockwise(points: Points, cells: Cells, values: Floats) -> tuple[Points, Cells]:
    """Turn all curves round if the largest runs clockwise: they share one convention."""
    a, b = points[cells[:, 0]], points[cells[:, 1]]
    area = 0.5 * (a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]).sum()
    return points, cells if area > 0 else cells[:, ::-1]


def _surface(networks: Networks, box: Points) -> tuple[Points, Cells]:
    """Triangles of the zero level in space, facing outwards."""
    values, spacing = _grid(networks, box)
    if not values.min() < 0 < values.max():
        return np.empty((0, 3)), np.empty((0, 3), dtype=np.int64)
    points, cells, _, _ = _measure().marching_cubes(values, 0.0, spacing=tuple(spacing))
    cells = cells.astype(np.int64)
    corners = points[cells].astype(np.float64)
    volume = np.linalg.det(corners).sum()
    return points.astype(np.float64) + box[0], cells if volume > 0 else cells[:, ::-1]


def _measure() -> Any:
    if find_spec("skimage") is None:
        raise ModelError(
            "reading the template off its network needs scikit-image, which is not installed.",
            "Run: pip install scikit-image",
        )
    from skimage import measure

    return measure


def _supported(points: Points, cells: Cells, support: Points) -> tuple[Points, Cells]:
    """Keep the pieces that shapes lie on, and that are no specks."""
    if not len(cells):
        return points, cells
    piece = _pieces(len(points), cells)
    gap = KDTree(support).query(points)[0]
    count = np.bincount(piece)
    near = np.array([np.median(gap[piece == k]) < NEAR for k in range(len(count))])
    kept = near & (count > 0.02 * count[near].max(initial=0))
    cells = cells[kept[piece[cells[:, 0]]]]
    used, inverse = np.unique(cells, return_inverse=True)
    return points[used], inverse.reshape(cells.shape)


def _pieces(count: int, cells: Cells) -> np.ndarray:
    """(count,) number of the connected piece each point belongs to."""
    a, b = cells[:, 0], cells[:, 1:]
    rows = np.repeat(a, b.shape[1])
    links = coo_array((np.ones(rows.size), (rows, b.ravel())), shape=(count, count))
    return connected_components(links, directed=False)[1]


def _even_contours(
    networks: Networks, points: Points, cells: Cells, vertices: int
) -> tuple[Points, Cells]:
    """Points at equal arc length along every curve, shared out by length."""
    after = np.empty(len(points), dtype=np.int64)
    after[cells[:, 0]] = cells[:, 1]
    piece = _pieces(len(points), cells)
    curves = [_walk(np.flatnonzero(piece == k)[0], after) for k in range(piece.max() + 1)]
    lengths = np.array([_arc(points[curve])[-1] for curve in curves])
    counts = np.maximum(3, np.round(vertices * lengths / lengths.sum()).astype(int))
    counts[lengths.argmax()] += vertices - counts.sum()
    placed, joined, start = [], [], 0
    for curve, count in zip(curves, counts, strict=True):
        places = points[curve]
        for _ in range(2):  # the second round evens out what the projection moved
            places = onto_level(networks, _resampled(places, count if _ else 8 * count))
        placed.append(places)
        index = start + np.arange(count)
        joined.append(np.stack([index, np.roll(index, -1)], axis=-1))
        start += count
    return np.concatenate(placed), np.concatenate(joined)


def _walk(first: int, after: np.ndarray) -> list[int]:
    order = [int(first)]
    while (following := int(after[order[-1]])) != order[0]:
        order.append(following)
    return order


def _arc(curve: Points) -> Floats:
    """Arc length at each point of a closed curve, and last its whole length."""
    steps = np.linalg.norm(np.roll(curve, -1, axis=0) - curve, axis=-1)
    return np.concatenate([[0.0], np.cumsum(steps)])


def _resampled(curve: Points, count: int) -> Points:
    arc, closed = _arc(curve), np.concatenate([curve, curve[:1]])
    at = np.arange(count) * arc[-1] / count
    return np.stack([np.interp(at, arc, closed[:, axis]) for axis in range(2)], axis=-1)


def _even_surface(
    networks: Networks, points: Points, cells: Cells, vertices: int
) -> tuple[Points, Cells]:
    """Close the shortest edges until `vertices` are left, then let them slide apart."""
    if find_spec("igl") is None:
        raise ModelError(
            "thinning the template out needs the package libigl, which is not installed.",
            "Run: pip install libigl",
        )
    import igl

    if len(points) > vertices:
        faces = len(cells) - 2 * (len(points) - vertices)
        packed = np.asfortranarray(points), np.asfortranarray(cells.astype(np.int32))
        found = igl.decimate(*packed, max(4, faces))
        points, cells = np.asarray(found[0]), np.asarray(found[1], dtype=np.int64)
    points = onto_level(networks, points)
    for _ in range(ROUNDS):
        points = onto_level(networks, 0.5 * points + 0.5 * _neighbour_means(points, cells))
    return points, cells


def _neighbour_means(points: Points, cells: Cells) -> Points:
    """(M, n) mean of the neighbours of each vertex."""
    pairs = np.concatenate([cells[:, [i, j]] for i, j in ((0, 1), (1, 2), (2, 0))])
    pairs = np.unique(np.concatenate([pairs, pairs[:, ::-1]]), axis=0)
    count = np.bincount(pairs[:, 0], minlength=len(points))
    links = coo_array((np.ones(len(pairs)), pairs.T), shape=(len(points), len(points)))
    return np.asarray(links.tocsr() @ points) / np.maximum(count, 1)[:, None]
