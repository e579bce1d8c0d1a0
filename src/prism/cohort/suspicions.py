"""What looks wrong in a cohort that reads well: each function yields what it finds."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from prism.cohort.checks import name_shape
from prism.cohort.values import Correspondence, Visits
from prism.typing import Floats, Shapes

FEW_SUBJECTS = 10
LARGE_Z = 10.0
NEIGHBOURS = 21
LOCAL_FACTOR = 3.0
OVERALL_FACTOR = 10.0
SHOWN = 5


@dataclass(frozen=True)
class Finding:
    """One thing worth saying about a cohort.

    Attributes:
        severity: "error" stops the work, "warning" wants a look, "note" informs.
        what: What was found, and where.
        remedy: What to do about it; empty for a note that asks for nothing.
    """

    severity: Literal["error", "warning", "note"]
    what: str
    remedy: str = ""


def _warning(what: str, remedy: str) -> Finding:
    return Finding("warning", what, remedy)


def few(names: list[str], mark: str = ", ") -> str:
    """List the first names and count the rest."""
    rest = len(names) - SHOWN
    return mark.join(names[:SHOWN]) + (f" and {rest} more" if rest > 0 else "")


def few_subjects(visits: Visits) -> Iterator[Finding]:
    """Too few subjects to tell the population from its members."""
    count = len(visits.subjects)
    if count < FEW_SUBJECTS:
        what = f"only {count} subject{'s' * (count != 1)}: the spread between subjects is unsure."
        yield _warning(what, f"Add subjects; {FEW_SUBJECTS} is a bare minimum.")


def ages(visits: Visits) -> Iterator[Finding]:
    """Unknown ages, one age only, ages far from the others."""
    known = visits.t[np.isfinite(visits.t)]
    unknown = len(visits) - len(known)
    if unknown:
        count = "every visit" if not len(known) else f"{unknown} of {len(visits)} visits"
        what = f"unknown age: {count}."
        yield _warning(what, "Such scans can be dated, but not used to fit. Give t if it is known.")
    if len(known) and len(np.unique(known)) == 1:
        what = f"only one age ({known[0]:g}) in the table: nothing can be learnt about change."
        yield _warning(what, "Add visits at other ages, or check the column t.")


def distant_ages(visits: Visits) -> Iterator[Finding]:
    """Ages that stand apart from the rest, as mixed units make them."""
    z = _robust_z(visits.t)
    far = np.flatnonzero(z > LARGE_Z).tolist()
    if far:
        names = [f"{visits.t[row]:g} of {name_visit(visits, row)}" for row in far]
        yield _warning(f"ages far from the others: {few(names)}.", "Check their unit.")
    known = np.unique(visits.t[np.isfinite(visits.t) & ~(z > LARGE_Z)])
    if len(known) >= FEW_SUBJECTS:
        gap = int(np.argmax(np.diff(known)))
        if known[gap + 1] - known[gap] > 0.5 * (known[-1] - known[0]):
            what = f"no visit between the ages {known[gap]:g} and {known[gap + 1]:g}."
            yield _warning(what, "Check the unit of the ages; a model is unsure in such a gap.")


def _robust_z(x: Floats) -> Floats:
    """Distance from the median in robust standard deviations; 0 where that is undefined."""
    if not np.isfinite(x).any():
        return np.zeros_like(x)
    away = np.abs(x - np.nanmedian(x))
    scale = 1.4826 * float(np.nanmedian(away))
    return np.nan_to_num(away / scale) if scale > 0 else np.zeros_like(x)


def name_visit(visits: Visits, row: int) -> str:
    """Say which visit is meant."""
    return f"subject {visits.subject[row]}, visit {visits.visit[row]}"


def single_visits(visits: Visits) -> Iterator[Finding]:
    """Subjects seen once tell nothing about change within a subject."""
    counts = Counter(visits.subject.tolist())
    once = sum(count == 1 for count in counts.values())
    if once == len(counts):
        yield Finding("note", "every subject has one visit: no longitudinal information.")
    elif once:
        yield Finding("note", f"{once} of {len(counts)} subjects have one visit only.")


def groups(visits: Visits) -> Iterator[Finding]:
    """How the visits spread over group and split."""
    for name in ("group", "split"):
        if name in visits.columns:
            counts = Counter(value or "(empty)" for value in visits.columns[name].tolist())
            parts = [f"{value} {count}" for value, count in counts.most_common()]
            yield Finding("note", f"visits by {name}: {few(parts)}.")


def shared_splits(visits: Visits) -> Iterator[Finding]:
    """A subject in two splits lets the test set leak into training."""
    splits: dict[str, set[str]] = defaultdict(set)
    column = visits.columns.get("split", np.array([], dtype=np.str_))
    for subject, split in zip(visits.subject.tolist(), column.tolist(), strict=False):
        splits[subject].add(split)
    for subject, names in splits.items():
        if len(names) > 1:
            what = f"subject {subject} is in several splits: {', '.join(sorted(names))}."
            yield Finding("error", what, "Keep all visits of a subject in one split.")


def repeated_shapes(shapes: Correspondence) -> Iterator[Finding]:
    """Shapes that are identical to the last bit were most likely copied by mistake."""
    first: dict[bytes, int] = {}
    for row, points in enumerate(shapes.points):
        other = first.setdefault(points.tobytes(), row)
        if other != row:
            pair = f"{name_shape(shapes.visits, other)} and {name_shape(shapes.visits, row)}"
            yield _warning(f"{pair} are identical.", "Check that no shape was stored twice.")


def gaps(shapes: Correspondence) -> Iterator[Finding]:
    """Shapes with more than half of their points missing; points no shape has."""
    share = 1.0 - shapes.observed.mean(axis=1)
    for row in np.flatnonzero(share > 0.5).tolist():
        what = f"{name_shape(shapes.visits, row)} misses {share[row]:.0%} of its points."
        yield _warning(what, "Check its registration, or leave the visit out.")
    never = np.flatnonzero(~shapes.observed.any(axis=0))
    if len(never):
        what = f"no shape has the points {few([str(m) for m in never])}."
        yield _warning(what, "A model cannot be fitted there: remove them or add shapes.")


def odd_sizes(shapes: Correspondence) -> Iterator[Finding]:
    """Shapes far larger or smaller than others of their age, as wrong units make them."""
    ratio = _size_ratios(shapes)
    for row in np.flatnonzero(_odd(shapes)).tolist():
        what = f"{name_shape(shapes.visits, row)} is {ratio[row]:.3g} times the usual size."
        yield _warning(what, "Check its length unit (mm, cm or m).")


def _size_ratios(shapes: Correspondence) -> Floats:
    """(N,) size of each shape, in units of the same points of the template, over the median."""
    template = np.where(np.isnan(shapes.points), np.nan, shapes.template)
    own, reference = _spread(shapes.points), _spread(template)
    ratio = np.divide(own, reference, out=np.ones_like(own), where=(reference > 0) & (own > 0))
    return ratio / np.median(ratio)


def _spread(points: Shapes) -> Floats:
    """(N,) root mean square distance of the observed points from their centre."""
    centred = points - np.nanmean(points, axis=1, keepdims=True)
    return np.sqrt(np.nanmean((centred**2).sum(axis=-1), axis=-1))


def _odd(shapes: Correspondence) -> np.ndarray:
    """(N,) True where a size is off by 3 among shapes of like age, or by 10 among all."""
    log = np.log(_size_ratios(shapes))
    local = np.array([np.median(log[near]) for near in neighbours(shapes.visits.t)])
    apart = np.abs(log - local) > np.log(LOCAL_FACTOR)
    return apart | (np.abs(log) > np.log(OVERALL_FACTOR))


def neighbours(t: Floats) -> Iterator[np.ndarray]:
    """For each visit a window of visits of like age; all visits where its age is unknown."""
    order, rank = np.argsort(t), np.argsort(np.argsort(t))
    known = order[: np.isfinite(t).sum()]
    for row, time in enumerate(t):
        start = min(max(rank[row] - NEIGHBOURS // 2, 0), max(len(known) - NEIGHBOURS, 0))
        yield known[start : start + NEIGHBOURS] if np.isfinite(time) else order


def still_points(shapes: Correspondence) -> Iterator[Finding]:
    """Points that are at the same place in every shape."""
    if len(shapes) < 2:
        return
    moves = np.nanmax(shapes.points, axis=0) > np.nanmin(shapes.points, axis=0)
    still = np.flatnonzero(~moves.any(axis=-1) & (shapes.observed.sum(axis=0) > 1))
    if len(still):
        what = f"points that never move: {few([str(m) for m in still])} ({len(still)} in all)."
        yield _warning(what, "Check that the shapes were not padded; leave such points out.")


def stray_points(shapes: Correspondence) -> Iterator[Finding]:
    """Points far from where the other shapes have them."""
    away = np.linalg.norm(shapes.points - np.nanmedian(shapes.points, axis=0), axis=-1)
    floor = 1e-3 * float(np.median(_spread(shapes.points)))
    scale = np.maximum(1.4826 * np.nanmedian(away, axis=0), floor)
    stray = np.divide(away, scale, out=np.zeros_like(away), where=scale > 0) > LARGE_Z
    for row in np.flatnonzero(stray.any(axis=1) & ~_odd(shapes)).tolist():
        points = [str(m) for m in np.flatnonzero(stray[row])]
        what = f"{name_shape(shapes.visits, row)} has points far outside: {few(points)}."
        yield _warning(what, "Look at this shape; mark a wrong point as NaN.")


VISIT_SUSPICIONS = (few_subjects, ages, distant_ages, shared_splits, single_visits, groups)
SHAPE_SUSPICIONS = (repeated_shapes, gaps, odd_sizes, still_points, stray_points)
