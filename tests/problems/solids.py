"""Surfaces and contours whose signed distance is known exactly.

Every maker returns a mesh whose vertices lie on the solid; the mesh lies within `gap` of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Distance = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Solid:
    """A mesh, the exact signed distance of the solid it stands for, and how far they differ."""

    points: np.ndarray
    cells: np.ndarray
    distance: Distance
    gap: float


def _grid(rows: int, columns: int, closed_rows: bool) -> np.ndarray:
    """Triangles of a grid whose columns, and perhaps rows, close on themselves."""
    i, j = np.meshgrid(np.arange(rows - (not closed_rows)), np.arange(columns), indexing="ij")
    a, b = i * columns + j, i * columns + (j + 1) % columns
    c, d = ((i + 1) % rows) * columns + j, ((i + 1) % rows) * columns + (j + 1) % columns
    halves = np.stack([a, c, b], axis=-1), np.stack([b, c, d], axis=-1)
    return np.concatenate([half.reshape(-1, 3) for half in halves])


def capsule(radius: float = 1.0, half: float = 0.0, detail: int = 40) -> Solid:
    """A cylinder of length 2 half with round ends; half = 0 is a sphere."""
    theta = np.linspace(0, np.pi, detail + 1)[1:-1]
    phi = 2 * np.pi * np.arange(2 * detail) / (2 * detail)
    ring = np.stack([np.cos(phi), np.sin(phi), 0 * phi], -1)
    up = np.array([0.0, 0.0, 1.0])
    if half:  # the equator twice, once on either end of the cylinder
        theta = np.sort(np.append(theta[~np.isclose(theta, np.pi / 2)], [np.pi / 2] * 2))
    shift = np.where(np.arange(len(theta)) < len(theta) / 2, half, -half) if half else 0 * theta
    rings = zip(theta, shift, strict=True)
    rows = [radius * (np.sin(t) * ring + np.cos(t) * up) + s * up for t, s in rings]
    body, width = np.concatenate(rows), 2 * detail
    top, bottom = len(body), len(body) + 1
    points = np.concatenate([body, [(radius + half) * up, -(radius + half) * up]])
    around = np.arange(width)
    last = (len(rows) - 1) * width
    lids = [
        np.stack([np.full(width, top), around, (around + 1) % width], -1),
        np.stack([np.full(width, bottom), last + (around + 1) % width, last + around], -1),
    ]
    cells = np.concatenate([_grid(len(rows), width, closed_rows=False), *lids])

    def distance(x: np.ndarray) -> np.ndarray:
        core = np.clip(x[:, 2], -half, half)[:, None] * up
        return np.linalg.norm(x - core, axis=-1) - radius

    return Solid(points, cells, distance, radius * (np.pi / detail) ** 2)


def sphere(radius: float = 1.0, detail: int = 40) -> Solid:
    """A ball."""
    return capsule(radius, 0.0, detail)


def torus(large: float = 1.0, small: float = 0.4, detail: int = 48) -> Solid:
    """A ring around the z axis."""
    u = 2 * np.pi * np.arange(2 * detail) / (2 * detail)
    v = 2 * np.pi * np.arange(detail) / detail
    out = large + small * np.cos(v)[None]
    height = np.broadcast_to(small * np.sin(v)[None], (len(u), len(v)))
    points = np.stack([out * np.cos(u)[:, None], out * np.sin(u)[:, None], height], axis=-1)
    points = points.reshape(-1, 3)

    def distance(x: np.ndarray) -> np.ndarray:
        away = np.hypot(x[:, 0], x[:, 1]) - large
        return np.hypot(away, x[:, 2]) - small

    cells = _grid(2 * detail, detail, closed_rows=True)
    return Solid(points, cells, distance, (large + small) * (np.pi / detail) ** 2)


def circle(radius: float = 1.0, detail: int = 200) -> Solid:
    """A disc in the plane, counter-clockwise."""
    angle = 2 * np.pi * np.arange(detail) / detail
    points = radius * np.stack([np.cos(angle), np.sin(angle)], -1)
    cells = np.stack([np.arange(detail), (np.arange(detail) + 1) % detail], -1)
    return Solid(
        points,
        cells,
        lambda x: np.linalg.norm(x, axis=-1) - radius,
        radius * (np.pi / detail) ** 2,
    )


def box_frame(half: float = 1.0) -> Solid:
    """A square in the plane: exact on the mesh itself, corners included."""
    points = half * np.array([[-1.0, -1], [1, -1], [1, 1], [-1, 1]])
    cells = np.array([[0, 1], [1, 2], [2, 3], [3, 0]])

    def distance(x: np.ndarray) -> np.ndarray:
        q = np.abs(x) - half
        return np.linalg.norm(np.maximum(q, 0), axis=-1) + np.minimum(q.max(axis=-1), 0)

    return Solid(points, cells, distance, 0.0)


SOLIDS: dict[str, Solid] = {
    "sphere": sphere(),
    "capsule": capsule(0.5, 1.0),
    "torus": torus(),
    "circle": circle(),
    "square": box_frame(),
}
