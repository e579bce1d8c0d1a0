"""What is wrong, or looks wrong, with the raw shapes of a cohort, and what is done about it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from prism.cohort.folder import Cohort
from prism.cohort.mend import Fault
from prism.cohort.parallel import Progress, in_parallel, silent
from prism.cohort.raw_shapes import has_raw_shapes, shape_file, table_rows
from prism.cohort.shape_file import ShapeFile
from prism.cohort.suspicions import LOCAL_FACTOR, Finding, few, neighbours
from prism.errors import CohortError
from prism.typing import Floats, Times

UNIT_FACTOR = 50.0  # no growth explains this between shapes of like age
FEW_FILES = 16


@dataclass(frozen=True)
class Seen:
    """What is remembered of a shape once it has been read and forgotten."""

    file: ShapeFile
    kind: str
    dimension: int
    size: float
    axes: str
    faults: tuple[Fault, ...]


def raw_suspicions(
    cohort: Cohort, workers: int | None = None, progress: Progress = silent
) -> Iterator[Finding]:
    """Read every raw shape and say what was found.

    Args:
        cohort: The cohort; one without raw shapes yields nothing.
        workers: Number of processes. Default: one a core where there are many files.
        progress: Receives a message now and then.
    """
    if not has_raw_shapes(cohort.visits):
        return
    files, refused = _files(cohort)
    if workers is None and len(files) < FEW_FILES:
        workers = 1
    looked = list(in_parallel(_look, files, "check", workers, progress))
    for answer in (*refused, *looked):
        if isinstance(answer, Finding):
            yield answer
    seen = [answer for answer in looked if isinstance(answer, Seen)]
    rows = [row for row, answer in enumerate(looked) if isinstance(answer, Seen)]
    yield from _by_kind(seen)
    yield from _summary(seen, cohort.length_unit)
    yield from _mixtures(seen, cohort.dimension)
    if not refused:
        yield from _odd_sizes(seen, cohort.visits.t[rows])


def _files(cohort: Cohort) -> tuple[list[ShapeFile], list[Finding]]:
    """The files of all rows, and the rows that name none."""
    files, refused = [], []
    for index, where in enumerate(table_rows(cohort.visits, cohort.path)):
        try:
            unit = cohort.length_unit
            files.append(shape_file(cohort.visits, index, cohort.path, unit, where))
        except CohortError as error:
            refused.append(Finding("error", error.what, error.remedy))
    return files, refused


def _look(file: ShapeFile) -> Seen | Finding:
    """Read one shape and keep what matters; an error becomes a finding."""
    try:
        shape, faults = file.examine()
    except CohortError as error:
        return Finding("error", error.what, error.remedy)
    return Seen(file, shape.kind, shape.dimension, shape.size, shape.axes, tuple(faults))


def _name(seen: Seen) -> str:
    return f"{seen.file.where}: {seen.file.path.name}"


def _by_kind(seen: list[Seen]) -> Iterator[Finding]:
    """One warning a kind of fault: how many shapes, the first of them, what is done."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for shape in seen:
        for fault in shape.faults:
            done = fault.done if not fault.changed else _general(fault)
            found[fault.kind, done].append(f"{_name(shape)}, {fault.what}")
    for (kind, done), names in found.items():
        what = f"{kind} in {len(names)} of {len(seen)} shapes: {few(names, '; ')}."
        yield Finding("warning", what, f"What is done: {done}.")


def _general(fault: Fault) -> str:
    """What is done, without the numbers of one shape."""
    return "left out, with the cells they belong to" if "not finite" in fault.kind else fault.done


def _summary(seen: list[Seen], unit: str) -> Iterator[Finding]:
    """One note: how many shapes of which kind, axes and size."""
    if seen:
        kinds = ", ".join(dict.fromkeys(shape.kind for shape in seen))
        axes = ", ".join(dict.fromkeys(shape.axes or "axes not stated" for shape in seen))
        sizes = [shape.size for shape in seen]
        span = f"{min(sizes):.4g} to {max(sizes):.4g} {unit}".rstrip()
        what = f"{len(seen)} raw shapes were read: {kinds}, {axes}, size {span}."
        yield Finding("note", what)


def _mixtures(seen: list[Seen], dimension: int | None) -> Iterator[Finding]:
    """Shapes of different kinds, dimensions or axes in one cohort."""
    remedy = "Keep shapes of one kind and dimension in a cohort."
    for what, values in (("kinds", [s.kind for s in seen]), ("axes", [s.axes for s in seen])):
        if len(set(values)) > 1:
            parts = [f"{values.count(v)} {v or 'not stated'}" for v in dict.fromkeys(values)]
            if what == "axes":
                remedy = "Files that state no axes are taken as LPS: check that they are."
            severity = "error" if what == "kinds" else "warning"
            yield Finding(severity, f"shapes of different {what}: {', '.join(parts)}.", remedy)
    wrong = [s for s in seen if dimension not in (None, s.dimension)]
    if wrong:
        what = f"{few([_name(s) for s in wrong], '; ')}: not of dimension {dimension}."
        yield Finding("error", what, "Correct dimension in cohort.toml, or the files.")


def _odd_sizes(seen: list[Seen], t: Times) -> Iterator[Finding]:
    """Shapes far larger or smaller than others of their age; by 50 and more it is the unit."""
    ratio = size_ratios(np.array([shape.size for shape in seen]), t)
    for shape, factor in zip(seen, ratio, strict=True):
        if max(factor, 1 / factor) > LOCAL_FACTOR:
            severity = "error" if max(factor, 1 / factor) > UNIT_FACTOR else "warning"
            what = f"{_name(shape)} is {factor:.3g} times the size usual at its age."
            yield Finding(severity, what, "Check its length unit (mm, cm or m): nothing is scaled.")


def size_ratios(size: Floats, t: Times) -> Floats:
    """(N,) size of each shape over the median size of shapes of like age."""
    if len(size) < 2:
        return np.ones(len(size))
    log = np.log(size)
    local = np.array([np.median(log[near]) for near in neighbours(t)])
    return np.exp(log - local)
