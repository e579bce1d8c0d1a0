"""Triangle meshes made of a larger one: holes closed, vertices thinned out, always watertight."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np

from prism.typing import Cells, Floats, Shapes

SHARPEST_TURN = 0.3  # least cosine between a face's normals before and after an edge is closed
WORST_FACE = 0.1  # least quality of a face so made; 1 is equilateral


def triangles(quads: np.ndarray) -> Cells:
    """Cut quads (K, 4) into triangles (2K, 3)."""
    return np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])


def holes(faces: np.ndarray) -> list[list[int]]:
    """Boundary loops of faces (K, 3) or (K, 4), each in the order its closing faces need."""
    edges = np.stack([faces, np.roll(faces, -1, axis=1)], axis=-1).reshape(-1, 2)
    known = set(map(tuple, edges.tolist()))
    after = {b: a for a, b in sorted(known) if (b, a) not in known}
    loops = []
    while after:
        loop = [next(iter(after))]
        while (following := after.pop(loop[-1])) != loop[0]:
            loop.append(following)
        loops.append(loop)
    return loops


def fan(loop: Sequence[int] | np.ndarray, centre: int) -> Cells:
    """Triangles from a boundary loop to a point in its middle."""
    return np.stack([loop, np.roll(loop, -1), np.full(len(loop), centre)], axis=1)


def thin_out(shapes: Shapes, cells: Cells, count: int) -> tuple[np.ndarray, Cells]:
    """Choose `count` vertices, evenly over the area, and join them to a mesh of the same topology.

    The shortest edge is closed first, so that dense places lose most. An edge stays when closing
    it would pinch the surface or, in any of the shapes, fold a face over or leave a needle.

    Args:
        shapes: (S, M, 3) the shapes that share the mesh; squared lengths are summed over them.
        cells: (K, 3) triangles of a closed surface.
        count: Vertices to keep.

    Returns:
        (count,) numbers of the kept vertices, rising, and triangles that count them from 0. More
        vertices are kept where no edge can be closed any more.
    """
    mesh = _Thinning(shapes, cells)
    mesh.thin(shapes.shape[1] - count)
    kept = np.array(sorted(mesh.neighbours), dtype=np.int64)
    return kept, np.searchsorted(kept, np.array(mesh.triangles(), dtype=np.int64))


class _Thinning:
    """A closed surface that loses vertices one by one, by closing edges (kept, gone)."""

    def __init__(self, shapes: Shapes, cells: Cells) -> None:
        self.points = np.ascontiguousarray(shapes.swapaxes(0, 1))  # (M, S, 3)
        self.around: dict[int, set[tuple[int, int]]] = {}  # v -> (a, b) of each face (v, a, b)
        for a, b, c in cells.tolist():
            for v, face in ((a, (b, c)), (b, (c, a)), (c, (a, b))):
                self.around.setdefault(v, set()).add(face)
        self.neighbours = {v: {a for a, _ in faces} for v, faces in self.around.items()}
        self.queue: list[tuple[float, int, int]] = []
        for v in self.neighbours:
            self._enqueue(v, [a for a in self.neighbours[v] if a < v])

    def triangles(self) -> list[tuple[int, int, int]]:
        """Return the faces, each once."""
        every = ((v, a, b) for v, faces in self.around.items() for a, b in faces)
        return sorted(face for face in every if face[0] == min(face))

    def thin(self, number: int) -> None:
        """Remove this many vertices, or as many as can be."""
        while number > 0 and self.queue:
            _, kept, gone = heapq.heappop(self.queue)
            if gone in self.neighbours.get(kept, ()) and self._allowed(kept, gone):
                self._close(kept, gone)
                number -= 1

    def _enqueue(self, v: int, others: list[int]) -> None:
        """Put the edges between v and others up for closing, either way."""
        lengths = ((self.points[others] - self.points[v]) ** 2).sum((1, 2)).tolist()
        for length, a in zip(lengths, others, strict=True):
            heapq.heappush(self.queue, (length, v, a))
            heapq.heappush(self.queue, (length, a, v))

    def _allowed(self, kept: int, gone: int) -> bool:
        if len(self.neighbours[kept] & self.neighbours[gone]) != 2:
            return False  # the surface would be pinched
        faces = np.array([face for face in self.around[gone] if kept not in face])
        return bool(_sound(self.points[faces], self.points[gone], self.points[kept]))

    def _close(self, kept: int, gone: int) -> None:
        """Move the faces of `gone` to `kept`; the two faces on the edge vanish."""
        touched = self.neighbours.pop(gone)
        for a, b in self.around.pop(gone):
            self.around[a].discard((b, gone))
            self.around[b].discard((gone, a))
            if kept not in (a, b):
                self.around[kept].add((a, b))
                self.around[a].add((b, kept))
                self.around[b].add((kept, a))
        for v in touched:
            self.neighbours[v] = {a for a, _ in self.around[v]}
        self._enqueue(kept, sorted(self.neighbours[kept]))


def _sound(edges: Floats, old: Floats, new: Floats) -> np.bool_:
    """Judge faces over edges (F, 2, S, 3) when their tip moves from old (S, 3) to new (S, 3)."""
    base, leg = edges[:, 1] - edges[:, 0], new - edges[:, 0]
    before, after = _cross(base, old - edges[:, 0]), _cross(base, leg)
    area = np.sqrt((after**2).sum(-1))
    straight = (before * after).sum(-1) > SHARPEST_TURN * np.sqrt((before**2).sum(-1)) * area
    sides = (base**2 + leg**2 + (leg - base) ** 2).sum(-1)
    return (straight & (2 * np.sqrt(3) * area > WORST_FACE * sides)).all()


def _cross(u: Floats, v: Floats) -> Floats:
    """Cross product along the last axis; numpy's own is slow on few vectors."""
    return u[..., [1, 2, 0]] * v[..., [2, 0, 1]] - u[..., [2, 0, 1]] * v[..., [1, 2, 0]]
