"""Landmark files are in correspondence already: points of one name are one place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from prism.cohort.shape import Shape
from prism.cohort.values import Correspondence, Visits
from prism.errors import CohortError


def match_landmarks(
    shapes: Sequence[Shape],
    visits: Visits,
    known: Correspondence | None = None,
    where: Sequence[str] = (),
) -> Correspondence:
    """Bring landmarks of every visit into one order; what a visit lacks is missing there.

    Landmarks with names are matched by them, and each becomes a region of its own; without names
    all visits must have as many, in one order.

    Args:
        shapes: Landmarks of each visit.
        visits: The visits.
        known: A cohort matched before, whose landmarks and order are kept.
        where: What each shape is called in an error; its number otherwise.
    """
    where = where or [f"shape {i + 1}" for i in range(len(shapes))]
    for shape, name in zip(shapes, where, strict=True):
        _check(shape, shapes[0], name)
    if not shapes[0].names:
        return Correspondence(_in_order(shapes, known, where), visits)
    names = (
        list(known.regions) if known else list(dict.fromkeys(n for s in shapes for n in s.names))
    )
    place = {name: i for i, name in enumerate(names)}
    points = np.full((len(shapes), len(names), shapes[0].dimension), np.nan)
    for row, shape in enumerate(shapes):
        rows = [i for i, name in enumerate(shape.names) if name in place]
        if not rows:
            raise CohortError(
                f"{where[row]}: none of its landmarks is known: {', '.join(shape.names[:3])}, ...",
                f"Name them as the others are: {', '.join(names[:3])}, ...",
            )
        points[row, [place[shape.names[i]] for i in rows]] = shape.points[rows]
    regions = {name: np.array([i]) for i, name in enumerate(names)}
    template = known.template if known else None
    return Correspondence(points, visits, template, regions=regions)  # type: ignore[arg-type]


def _check(shape: Shape, first: Shape, where: str) -> None:
    """Refuse what cannot be matched with the first shape."""
    if shape.kind != "landmarks":
        raise CohortError(
            f"{where}: a {shape.kind} among landmarks.", "Keep landmarks and surfaces apart."
        )
    if shape.dimension != first.dimension or bool(shape.names) != bool(first.names):
        raise CohortError(
            f"{where}: landmarks of {shape.dimension}D {'with' if shape.names else 'without'} "
            f"names, the first visit's are {first.dimension}D "
            f"{'with' if first.names else 'without'}.",
            "Give all visits landmarks of one kind.",
        )
    if "" in shape.names or len(set(shape.names)) < len(shape.names):
        bad = next(name for name in shape.names if not name or shape.names.count(name) > 1)
        what = f"two landmarks are called {bad!r}" if bad else "a landmark has no name"
        raise CohortError(f"{where}: {what}.", "Give every landmark a name of its own.")


def _in_order(
    shapes: Sequence[Shape], known: Correspondence | None, where: Sequence[str]
) -> np.ndarray:
    count = len(shapes[0].points) if known is None else len(known.template)
    for shape, name in zip(shapes, where, strict=True):
        if len(shape.points) != count:
            raise CohortError(
                f"{name}: {len(shape.points)} landmarks without names, others have {count}.",
                "Name the landmarks, or give every visit all of them (undefined where unseen).",
            )
    return np.stack([shape.points for shape in shapes])
