"""How triangles, or segments, hang together: neighbours, borders, bodies, enclosed volume.

One vocabulary for both: a facet is a triangle in space or a segment in the plane, a ridge is what
two facets share (an edge, or a vertex). A facet meets each of its ridges with a sign; neighbours
are oriented alike where the signs differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from prism.typing import Cells, Floats, Points


@dataclass(frozen=True)
class Facets:
    """Facets over points, coincident points counted as one.

    Attributes:
        points: (V, n) positions.
        cells: (K, n) facets.
        place: (V,) number of each point's position; coincident points share it.
    """

    points: Points
    cells: Cells
    place: np.ndarray

    @classmethod
    def of(cls, points: Points, cells: Cells) -> Facets:
        """Find out which points coincide."""
        return cls(points, cells, places(points))

    def with_cells(self, cells: Cells) -> Facets:
        """Other facets over the same points."""
        return Facets(self.points, cells, self.place)

    @cached_property
    def welded(self) -> Cells:
        """(K, n) facets by the number of each distinct position."""
        return self.place[self.cells]

    @cached_property
    def _ridges(self) -> tuple[np.ndarray, np.ndarray]:
        """Number and sign of the ridges of every facet, both (n, K)."""
        start = self.welded.T
        if len(start) == 2:
            _, number = np.unique(start, return_inverse=True)
            return number.reshape(start.shape), np.repeat([[-1], [1]], len(self.cells), axis=1)
        end = np.roll(start, -1, axis=0)
        key = np.minimum(start, end) * (start.max(initial=0) + 1) + np.maximum(start, end)
        _, number = np.unique(key, return_inverse=True)
        return number.reshape(key.shape), np.where(start < end, 1, -1)

    @cached_property
    def _shared(self) -> np.ndarray:
        """How many facets meet at each ridge."""
        return np.bincount(self._ridges[0].ravel())

    @property
    def branching(self) -> int:
        """Number of ridges at which three or more facets meet."""
        return int((self._shared > 2).sum())

    @property
    def border(self) -> int:
        """Number of ridges that belong to one facet only."""
        return int((self._shared == 1).sum())

    @property
    def gaps(self) -> int:
        """Number of holes of a surface, or of openings of a contour."""
        if self.cells.shape[1] == 2:
            return -(-self.border // 2)
        ridge, _ = self._ridges
        corner, facet = np.nonzero(self._shared[ridge] == 1)
        start, end = self.welded[facet, corner], self.welded[facet, (corner + 1) % 3]
        ends, number = np.unique([start, end], return_inverse=True)
        start, end = number.reshape(2, -1)
        return int(_joined(start, end, len(ends)).max(initial=-1) + 1)

    @cached_property
    def bodies(self) -> np.ndarray:
        """(K,) number of the connected body each facet belongs to."""
        count = int(self.welded.max(initial=-1)) + 1
        start = np.repeat(self.welded[:, 0], self.cells.shape[1] - 1)
        label = _joined(start, self.welded[:, 1:].ravel(), count)
        return np.unique(label[self.welded[:, 0]], return_inverse=True)[1].reshape(-1)

    @property
    def disagreeing(self) -> np.ndarray | None:
        """(K,) True where a facet must be turned to agree with the majority of its neighbours.

        None when no orientation agrees, as on a Möbius strip. Every facet stands for two nodes,
        as it is and turned; neighbours that agree join like with like, others crosswise.
        """
        ridge, sign = (array.ravel() for array in self._ridges)
        facet = np.tile(np.arange(len(self.cells)), self.cells.shape[1])
        order = np.argsort(ridge, kind="stable")
        order = order[self._shared[ridge[order]] == 2]
        (f, g), (a, b) = facet[order].reshape(-1, 2).T, sign[order].reshape(-1, 2).T
        cross = np.where(a == b, len(self.cells), 0)
        if not cross.any():
            return np.zeros(len(self.cells), dtype=bool)
        other = len(self.cells) - cross
        start, end = (
            np.concatenate([f, f + len(self.cells)]),
            np.concatenate([g + cross, g + other]),
        )
        kept, turned = _joined(start, end, 2 * len(self.cells)).reshape(2, -1)
        if (kept == turned).any():
            return None
        votes = np.bincount(kept, minlength=max(kept.max(), turned.max()) + 1)
        for_, against = votes[kept], votes[turned]
        return (for_ < against) | ((for_ == against) & (kept > turned))

    @property
    def repeated(self) -> np.ndarray:
        """(K,) True for a facet that joins the same places as an earlier one."""
        key = np.sort(self.welded, axis=1)
        order = np.lexsort(key.T)  # stable: of equal facets the first stays first
        again = np.zeros(len(key), dtype=bool)
        again[order[1:]] = (np.diff(key[order], axis=0) == 0).all(axis=-1)
        return again

    @property
    def longest(self) -> Floats:
        """(K,) length of the longest side."""
        corners = self.points[self.cells]
        sides = corners - np.roll(corners, 1, axis=1)
        return np.linalg.norm(sides, axis=-1).max(axis=1)

    @cached_property
    def areas(self) -> Floats:
        """(K,) areas of triangles, or lengths of segments."""
        return np.linalg.norm(self.normals, axis=-1)

    @cached_property
    def normals(self) -> Floats:
        """(K, n) normals as long as the facets are large; outward if volumes are positive."""
        corners = self.points[self.cells]
        if self.cells.shape[1] == 2:
            along = corners[:, 1] - corners[:, 0]
            return np.stack([along[:, 1], -along[:, 0]], axis=-1)
        return 0.5 * np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])

    @cached_property
    def volumes(self) -> Floats:
        """(B,) signed volume, or area in the plane, of each body; an open one about its centre."""
        middle = self.points[self.cells].mean(axis=1)
        centre = _means(middle, self.bodies)
        # V = ∮ x·n / d over each body
        flux = ((middle - centre[self.bodies]) * self.normals).sum(axis=-1)
        return np.bincount(self.bodies, flux) / self.points.shape[1]

    def winding(self, query: Points, facets: np.ndarray) -> float:
        """How often the chosen facets wind around one point."""
        corners = self.points[self.cells[facets]] - query
        if self.cells.shape[1] == 2:
            a, b = np.moveaxis(corners, 1, 0)
            angle = np.arctan2(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0], (a * b).sum(axis=-1))
            return float(angle.sum() / (2 * np.pi))
        # tan(Ω/2) = det(a, b, c) / (abc + (a·b)c + (b·c)a + (c·a)b)
        a, b, c = np.moveaxis(corners, 1, 0)
        la, lb, lc = np.linalg.norm(corners, axis=-1).T
        ab, bc, ca = (a * b).sum(-1), (b * c).sum(-1), (c * a).sum(-1)
        solid = np.arctan2(np.linalg.det(corners), la * lb * lc + ab * lc + bc * la + ca * lb)
        return float(solid.sum() / (2 * np.pi))


def places(points: Points) -> np.ndarray:
    """(V,) number of each point's position, the same for points that coincide exactly."""
    order = np.lexsort(points.T)
    new = np.ones(len(points), dtype=np.int64)
    new[1:] = (np.diff(points[order], axis=0) != 0).any(axis=-1)
    number = np.empty(len(points), dtype=np.int64)
    number[order] = np.cumsum(new) - 1
    return number


def turned(cells: Cells, which: np.ndarray) -> Cells:
    """Facets with the chosen ones seen from the other side."""
    swapped = cells.copy()
    swapped[which] = cells[which][:, ::-1]
    return swapped


def _joined(start: np.ndarray, end: np.ndarray, count: int) -> np.ndarray:
    """(count,) number of the connected part each node lies in."""
    links = coo_array((np.ones(len(start), dtype=np.int8), (start, end)), (count, count))
    return connected_components(links, directed=False)[1]


def _means(values: Floats, label: np.ndarray) -> Floats:
    """(B, n) mean of the values under each label."""
    sums = [np.bincount(label, column) for column in values.T]
    return np.stack(sums, axis=-1) / np.bincount(label)[:, None]
