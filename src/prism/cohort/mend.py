"""What is wrong with a surface or a contour, and what is done about it; nothing in silence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from prism.cohort.facets import Facets, turned
from prism.errors import CohortError
from prism.typing import Cells, Points

SPECK = 0.01  # a body with less than this share of the largest one's surface is a speck
FLAT = 1e-6
CELL = {2: "segment", 3: "triangle"}
RIDGE = {2: "end", 3: "edge"}
GAP = {2: "opening", 3: "hole"}


@dataclass(frozen=True)
class Fault:
    """One thing wrong with a shape.

    Attributes:
        kind: What sort of fault, the same words for every shape.
        what: What was found, with numbers.
        done: What is done about it.
        changed: True for a repair; False when the shape is used as it is.
    """

    kind: str
    what: str
    done: str
    changed: bool = True

    def __str__(self) -> str:
        """Both parts as one sentence."""
        return f"{self.what}: {self.done}."


Step = Callable[[Facets], tuple[Facets, list[Fault]]]


def mend(points: Points, cells: Cells) -> tuple[Points, Cells, list[Fault]]:
    """Repair a surface or a contour as far as its meaning is clear, and say what was done.

    Points keep their order; only points that are not finite are removed.

    Args:
        points: (V, n) positions as read.
        cells: (K, n) triangles in space, or segments in the plane.

    Returns:
        Points, cells and the faults, those that were repaired and those that were let be.

    Raises:
        CohortError: Nothing is left that could enclose anything.
    """
    points, cells, faults = without_lost_points(points, cells)
    facets = Facets.of(points, cells)
    for step in STEPS:
        facets, found = step(facets)
        faults += found
    return facets.points, facets.cells, faults


def without_lost_points(points: Points, cells: Cells) -> tuple[Points, Cells, list[Fault]]:
    """Leave out points that are not finite, with their cells."""
    seen = np.asarray(np.isfinite(points).all(axis=-1))
    if seen.all():
        return points, cells, []
    whole = seen[cells].all(axis=1)
    number = np.cumsum(seen) - 1
    lost = count(int((~seen).sum()), "vertex")
    cut = count(int((~whole).sum()), CELL[cells.shape[1]])
    fault = Fault("points not finite", f"{lost} not finite (NaN)", f"left out with {cut}")
    return points[seen], number[cells[whole]], [fault]


def count(number: int, word: str) -> str:
    """Write a number with its noun."""
    plurals = {"vertex": "vertices", "small body or cavity": "small bodies or cavities"}
    return f"{number} {word if number == 1 else plurals.get(word, word + 's')}"


def _empty_cells(facets: Facets) -> tuple[Facets, list[Fault]]:
    """Leave out cells without area."""
    empty = facets.areas <= 1e-12 * facets.longest ** (facets.cells.shape[1] - 1)
    if not empty.any():
        return facets, []
    size = "area" if facets.cells.shape[1] == 3 else "length"
    what = f"{count(int(empty.sum()), CELL[facets.cells.shape[1]])} without {size}"
    return facets.with_cells(facets.cells[~empty]), [Fault("degenerate cells", what, "left out")]


def _repeated_cells(facets: Facets) -> tuple[Facets, list[Fault]]:
    """Keep one of the cells that join the same places: twice would count double."""
    again = facets.repeated
    if not again.any():
        return facets, []
    what = f"{count(int(again.sum()), CELL[facets.cells.shape[1]])} stored more than once"
    return facets.with_cells(facets.cells[~again]), [Fault("repeated cells", what, "kept once")]


def _require_an_inside(facets: Facets) -> tuple[Facets, list[Fault]]:
    """Refuse what cannot enclose anything: too few cells, or all in one plane."""
    points, cells = facets.points, facets.cells
    n, word = points.shape[1], CELL[points.shape[1]]
    if len(cells) <= n:
        left = count(len(cells), word) if len(cells) else f"no {word}"
        raise CohortError(
            f"{left} that has an area: nothing is enclosed.",
            "Export the whole surface again, or remove the visit from the table.",
        )
    used = points[np.unique(cells)]
    spread = np.linalg.eigvalsh(np.cov(used.T))
    if spread[0] <= FLAT**2 * spread[-1]:
        place = "plane" if n == 3 else "line"
        raise CohortError(
            f"all {count(len(cells), word)} lie in one {place}: nothing is enclosed.",
            "Give a closed shape; a contour in the plane is stored as lines, not as triangles.",
        )
    return facets, []


def _specks(facets: Facets) -> tuple[Facets, list[Fault]]:
    """Leave out bodies too small to be anatomy; name the others."""
    area = np.bincount(facets.bodies, facets.areas)
    if len(area) == 1:
        return facets, []
    small, faults = area < SPECK * area.max(), []
    if small.any():
        number = count(int(small.sum()), "small body or cavity")
        what = f"{number} (below {SPECK:.0%} of the largest surface)"
        faults.append(Fault("specks", what, "left out"))
    large = np.sort(area[~small] / area[~small].sum())[::-1]
    if len(large) > 1:
        shares = ", ".join(f"{part:.0%}" for part in large[:4]) + ", ..." * (len(large) > 4)
        what = f"{len(large)} bodies ({shares} of the surface)"
        done = "all are kept; every shape must then have the same bodies"
        faults.append(Fault("several bodies", what, done, changed=False))
    kept = facets.cells[~small[facets.bodies]]
    return (facets.with_cells(kept) if small.any() else facets), faults


def _flipped(facets: Facets) -> tuple[Facets, list[Fault]]:
    """Turn cells that disagree with their neighbours."""
    wrong = facets.disagreeing
    if wrong is None:
        raise CohortError(
            "the surface has one side only (as a Möbius strip): it has no inside.",
            "Repair the mesh where faces with opposite sides touch, or remove the visit.",
        )
    if not wrong.any():
        return facets, []
    word = CELL[facets.cells.shape[1]]
    what = f"{count(int(wrong.sum()), word)} of {len(wrong)} flipped against their neighbours"
    cells = turned(facets.cells, wrong)
    return facets.with_cells(cells), [Fault("flipped cells", what, "turned")]


def _inside_out(facets: Facets) -> tuple[Facets, list[Fault]]:
    """Turn bodies of negative volume to face outwards; a contour may run either way round."""
    wrong = _facing_inwards(facets)
    if not wrong.any():
        return facets, []
    some = "" if len(wrong) == 1 else f" ({wrong.sum()} of {len(wrong)} bodies)"
    fault = Fault("inside out", f"inside out{some}", "turned to face outwards")
    cells = turned(facets.cells, wrong[facets.bodies])
    return facets.with_cells(cells), [fault] if cells.shape[1] == 3 else []


def _facing_inwards(facets: Facets) -> np.ndarray:
    """(B,) True for a body of negative volume, unless it is a cavity within another body."""
    wrong = facets.volumes < 0
    if len(wrong) == 1:
        return wrong
    for body in np.flatnonzero(wrong):
        own = facets.bodies == body
        place = facets.points[facets.cells[np.argmax(own)][0]]
        wrong[body] = abs(facets.winding(place, ~own)) < 0.5
    return wrong


def _holes(facets: Facets) -> tuple[Facets, list[Fault]]:
    """Name holes; they stay open."""
    if not facets.border:
        return facets, []
    n = facets.cells.shape[1]
    what = f"{count(facets.gaps, GAP[n])} ({count(facets.border, 'open ' + RIDGE[n])})"
    done = "left open; the winding number tells inside from outside as if it were closed"
    return facets, [Fault(f"{GAP[n]}s", what, done, changed=False)]


def _branches(facets: Facets) -> tuple[Facets, list[Fault]]:
    """Name edges at which more than two cells meet; they are kept."""
    if not facets.branching:
        return facets, []
    n = facets.cells.shape[1]
    what = f"{count(facets.branching, RIDGE[n])} where three or more {CELL[n]}s meet"
    done = "kept; the winding number tells inside from outside"
    return facets, [Fault("non-manifold", what, done, changed=False)]


STEPS: tuple[Step, ...] = (
    *(_empty_cells, _repeated_cells, _require_an_inside, _specks),
    *(_flipped, _inside_out, _holes, _branches),
)
