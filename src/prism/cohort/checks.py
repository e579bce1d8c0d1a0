"""What must hold of a cohort's arrays; `values.py` calls these once, at birth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from prism.cohort.ages import parse_age_error
from prism.errors import CohortError, QueryError
from prism.typing import Cells, Floats, Points, Shapes, Strings, Times

if TYPE_CHECKING:
    from prism.cohort.values import Visits

TRUTH_AXES = {
    "regions": "R",
    "landmarks": "R",
    "tau": "NR",
    "clean": "NMn",
    "t_grid": "T",
    "sigma_tau": "TR",
    "mean": "TMn",
    "abnormal": "N",
}


def as_reals(name: str, value: Any) -> Floats:
    """Return the value as float64; refuse text, truth values, complex numbers and ragged lists."""
    try:
        array = np.asarray(value)
        array = array.astype(np.float64) if array.dtype.kind == "O" else array
    except (TypeError, ValueError, OverflowError):
        raise CohortError(
            f"{name} must be a regular array of real numbers. Got {type(value).__name__} data "
            "that do not form one.",
            f"Pass np.asarray({name}, dtype=float) with rows of equal length.",
        ) from None
    if array.dtype.kind not in "fiu":
        raise CohortError(
            f"{name} must hold real numbers. Got data type {array.dtype}.",
            f"Store {name} as float64.",
        )
    with np.errstate(over="ignore"):
        return array.astype(np.float64, copy=False)


def as_indices(name: str, value: Any) -> np.ndarray:
    """Return the value as int64; refuse fractions and numbers too large to be an index."""
    array = np.asarray(value)
    if array.size and array.dtype.kind not in "iu":
        raise CohortError(
            f"{name} must hold whole numbers. Got data type {array.dtype}.",
            f"Store {name} as int64 indices that count points from 0.",
        )
    if array.size and array.max() > np.iinfo(np.int64).max:
        raise CohortError(
            f"{name} holds {array.max()}, which is too large to be a point index.",
            f"Store {name} as int64 indices that count points from 0.",
        )
    return array.astype(np.int64, copy=False)


def check_columns(subject: Strings, columns: Mapping[str, np.ndarray]) -> None:
    """Every column has one entry a visit."""
    if subject.ndim != 1:
        raise CohortError(
            f"subject must be a list of names. Got an array of shape {subject.shape}.",
            "Pass one subject name a visit.",
        )
    for name, column in columns.items():
        if column.shape != subject.shape:
            raise CohortError(
                f"{name} must have one entry a visit ({len(subject)}). Got shape {column.shape}.",
                "Give subject, visit, t and every further column the same length.",
            )


def check_times(t: Times, subject: Strings, visit: Strings) -> None:
    """No time is infinite."""
    for row in np.flatnonzero(np.isinf(t)):
        raise CohortError(
            f"t of row {row + 1} (subject {subject[row]}, visit {visit[row]}) is infinite.",
            "Give a finite time, or leave it empty for a scan to be dated.",
        )


def as_age_errors(column: Strings, subject: Strings, visit: Strings) -> Strings:
    """Return the column as plain numbers, empty where no error is given."""
    written = []
    for row, text in enumerate(column.tolist()):
        try:
            error = parse_age_error(text)
        except CohortError as refused:
            who = f"subject {subject[row]}, visit {visit[row]}"
            raise CohortError(f"{who}: {refused.what}", refused.remedy) from refused
        written.append("" if np.isnan(error) else repr(error))
    return np.asarray(written, dtype=np.str_)


def check_subjects(names: list[str], subjects: list[str], cohort: str) -> None:
    """The cohort has subjects of these names."""
    rest = len(subjects) - 3
    known = ", ".join(subjects[:3]) + (f" and {rest} more" if rest > 0 else "")
    for name in sorted(set(names) - set(subjects)):
        raise QueryError(
            f"cohort {cohort!r} has no subject {name!r}.",
            f"Choose one from the column subject of visits.csv: {known}.",
        )


def check_unique(subject: Strings, visit: Strings) -> None:
    """No two rows are the same visit of the same subject."""
    seen: dict[tuple[str, str], int] = {}
    for row, key in enumerate(zip(subject.tolist(), visit.tolist(), strict=True)):
        if seen.setdefault(key, row) != row:
            raise CohortError(
                f"row {row + 1} repeats row {seen[key] + 1}: subject {key[0]}, visit {key[1]}.",
                "Give each visit of a subject its own name.",
            )


def check_points(points: Shapes, visits: Visits) -> None:
    """One shape a visit, in two or three dimensions; a point is there or wholly missing."""
    if points.ndim != 3 or points.shape[-1] not in (2, 3) or not points.shape[1]:
        raise CohortError(
            f"points must have shape (N, M, 2) or (N, M, 3) with M > 0. Got {points.shape}.",
            "Store one row of M points for each visit.",
        )
    if points.shape[0] != len(visits):
        raise CohortError(
            f"points hold {points.shape[0]} shapes, the visits table {len(visits)}.",
            "Store the shapes in the order of visits.csv, one a row.",
        )
    _check_finite(points, visits)
    _check_missing(np.isnan(points), visits)


def _check_finite(points: Shapes, visits: Visits) -> None:
    for row, m, _ in np.argwhere(np.isinf(points)):
        raise CohortError(
            f"point {m} of {name_shape(visits, row)} is infinite.", "Mark missing points as NaN."
        )


def _check_missing(nan: np.ndarray, visits: Visits) -> None:
    for row, m in np.argwhere(nan.any(axis=-1) & ~nan.all(axis=-1)):
        raise CohortError(
            f"point {m} of {name_shape(visits, row)} has some coordinates missing, but not all.",
            "Mark a missing point as NaN in every coordinate.",
        )
    for row in np.flatnonzero(nan.all(axis=(1, 2))).tolist():
        raise CohortError(
            f"every point of {name_shape(visits, row)} is missing.",
            "Remove this visit from the table and from the points, or give its shape.",
        )


def name_shape(visits: Visits, row: int) -> str:
    """Say which shape is meant, counted from 1, with its subject and visit."""
    return f"shape {row + 1} (subject {visits.subject[row]}, visit {visits.visit[row]})"


def check_template(template: Points, expected: tuple[int, ...]) -> None:
    """The template has the points of the shapes, all of them finite."""
    if template.shape != expected:
        raise CohortError(
            f"template must have shape {expected}, as the shapes have. Got {template.shape}.",
            "Store the template with the same points in the same order, or leave it out.",
        )
    for m in np.flatnonzero(~np.isfinite(template).all(axis=-1)):
        raise CohortError(
            f"template point {m} is not finite: no shape has it, or it was stored so.",
            "Remove this point from every shape, or give a template that has it.",
        )


def check_cells(cells: Cells, count: int) -> None:
    """Cells are segments or triangles over the points 0 to count - 1."""
    if cells.ndim != 2 or cells.shape[1] not in (2, 3):
        raise CohortError(
            f"cells must have shape (K, 2) or (K, 3). Got {cells.shape}.",
            "Store segments as pairs and triangles as triples of point indices.",
        )
    if cells.size and not 0 <= cells.min() <= cells.max() < count:
        raise CohortError(
            f"cells name points {cells.min()} to {cells.max()}, "
            f"but there are points 0 to {count - 1}.",
            "Count points from 0.",
        )


def check_truth(arrays: Mapping[str, Any], sizes: Mapping[str, int]) -> None:
    """Truth arrays agree with each other and with the sizes (N, M, n) known beforehand."""
    known = dict(sizes)
    for name, axes in TRUTH_AXES.items():
        shape = np.shape(arrays[name]) if name in arrays else None
        if shape is None:
            continue
        expected = tuple(known.get(axis, axis) for axis in axes)
        known = dict(zip(axes, shape, strict=False)) | known
        if shape != tuple(known.get(axis) for axis in axes):
            raise CohortError(
                f"truth: {name} must have shape ({', '.join(map(str, expected))}). Got {shape}.",
                "Store the truth of the same visits and points, in the same order.",
            )
    _check_landmarks(np.asarray(arrays["landmarks"]), known["M"])


def _check_landmarks(landmarks: np.ndarray, count: int) -> None:
    if landmarks.size and not 0 <= landmarks.min() <= landmarks.max() < count:
        raise CohortError(
            f"truth: landmarks name points {landmarks.min()} to {landmarks.max()}, "
            f"but there are points 0 to {count - 1}.",
            "Count points from 0.",
        )
