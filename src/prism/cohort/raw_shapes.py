"""The raw shapes of a cohort: files named in the visits table, read one by one when asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import overload

import numpy as np

from prism.cohort.shape import Shape
from prism.cohort.shape_file import LABEL_MAPS, ShapeFile
from prism.cohort.values import Visits
from prism.cohort.visits_file import find_visits, row_numbers
from prism.errors import CohortError

COLUMNS = ("path", "mask")


@dataclass(frozen=True)
class RawShapes(Sequence[Shape]):
    """One shape a visit, in the order of the table; nothing is read before it is asked for.

    Attributes:
        files: Where each shape lies and how it is to be read.
    """

    files: tuple[ShapeFile, ...]

    def __len__(self) -> int:
        """Count shapes."""
        return len(self.files)

    @overload
    def __getitem__(self, index: int) -> Shape: ...

    @overload
    def __getitem__(self, index: slice | np.ndarray) -> RawShapes: ...

    def __getitem__(self, index: int | slice | np.ndarray) -> Shape | RawShapes:
        """Read one shape, or select several without reading them."""
        if isinstance(index, (int, np.integer)):
            return self.files[index].read()
        rows = np.arange(len(self))[index]
        return RawShapes(tuple(self.files[row] for row in rows))

    def __iter__(self) -> Iterator[Shape]:
        """Read the shapes one after the other."""
        return (file.read() for file in self.files)


def has_raw_shapes(visits: Visits) -> bool:
    """True when the table names a shape file anywhere."""
    return any((visits.columns[name] != "").any() for name in COLUMNS if name in visits.columns)


def raw_shapes(visits: Visits, folder: Path | None, length_unit: str) -> RawShapes | None:
    """Open the shapes a table names; None when it names none.

    Raises:
        CohortError: A row names no file, or a label that is no number.
    """
    if not has_raw_shapes(visits):
        return None
    rows = table_rows(visits, folder)
    files = (shape_file(visits, i, folder, length_unit, rows[i]) for i in range(len(visits)))
    return RawShapes(tuple(files))


def table_rows(visits: Visits, folder: Path | None) -> list[str]:
    """What each visit is called: its row as a spreadsheet numbers it, subject and visit."""
    table, numbers = "visits.csv", list(range(2, len(visits) + 2))
    if folder is not None:
        path = find_visits(folder)
        stored = row_numbers(path)
        table, numbers = path.name, stored if len(stored) == len(visits) else numbers
    pairs = zip(numbers, visits.subject.tolist(), visits.visit.tolist(), strict=True)
    return [f"{table}, row {number} (subject {s}, visit {v})" for number, s, v in pairs]


def shape_file(
    visits: Visits, index: int, folder: Path | None, length_unit: str, where: str
) -> ShapeFile:
    """The file of one visit: its mask where it has one beside an image, else its path."""
    named, mask = (
        str(visits.columns[name][index]) if name in visits.columns else "" for name in COLUMNS
    )
    if mask and (not named or named.lower().endswith(LABEL_MAPS)):
        named = mask
    if not named:
        raise CohortError(
            f"{where}: no shape file is named.",
            "Fill in its path, or remove the row.",
        )
    label = _label(visits, index, where)
    return ShapeFile((folder or Path()) / named, label, length_unit, where)


def _label(visits: Visits, index: int, where: str) -> int | None:
    """The label wanted of a label map, if the table has a column for it."""
    text = str(visits.columns["label"][index]) if "label" in visits.columns else ""
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise CohortError(
            f"{where}: label {text!r} is not a whole number.",
            "Write the label's number, leave it empty, or give the column another name.",
        ) from None


def relinked(visits: Visits, old: Path, new: Path) -> Visits:
    """The visits with paths that lead from the new folder to the files of the old one."""
    if old.resolve() == new.resolve() or not has_raw_shapes(visits):
        return visits
    columns = dict(visits.columns)
    for name in COLUMNS:
        if name in columns:
            moved = [_moved(text, old, new) for text in columns[name].tolist()]
            columns[name] = np.array(moved, dtype=np.str_)
    return Visits(visits.subject, visits.visit, visits.t, columns)


def _moved(text: str, old: Path, new: Path) -> str:
    if not text or Path(text).is_absolute():
        return text
    return Path(os.path.relpath((old / text).resolve(), new.resolve())).as_posix()
