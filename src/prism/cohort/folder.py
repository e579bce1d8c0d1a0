"""A cohort and the folder it lives in: cohort.toml, visits.csv, correspondence.npz, truth/."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from prism.cohort import checks
from prism.cohort.arrays_file import (
    POINTS,
    TRUTH,
    read_correspondence,
    read_truth,
    write_correspondence,
    write_truth,
)
from prism.cohort.files import beside, naming, writing
from prism.cohort.raw_shapes import RawShapes, raw_shapes, relinked
from prism.cohort.settings_file import FILE as SETTINGS
from prism.cohort.settings_file import Settings, read_settings, write_settings
from prism.cohort.values import Correspondence, Truth, Visits
from prism.cohort.visits_file import find_visits, read_visits, write_visits
from prism.errors import CohortError

_OWNED = (SETTINGS, "visits.csv", "visits.tsv", POINTS, TRUTH)


@dataclass(frozen=True)
class Cohort:
    """Visits with their units and, once registered, their shapes in correspondence.

    Attributes:
        name: Name of the cohort.
        time_unit: Unit of `visits.t`, e.g. "months"; empty when not stated.
        length_unit: Unit of the shapes, e.g. "mm"; empty when not stated.
        dimension: Space dimension, 2 or 3; None when neither stated nor seen in the data.
        visits: Who was seen, and when.
        correspondence: The shapes in correspondence, or None before registration.
        truth: What a simulated cohort knows about itself, or None.
        path: The folder the cohort was read from or written to, or None.
    """

    name: str
    time_unit: str
    length_unit: str
    dimension: int | None
    visits: Visits
    correspondence: Correspondence | None = None
    truth: Truth | None = None
    path: Path | None = None

    def __post_init__(self) -> None:
        """Check that the parts belong together."""
        sizes = {"N": len(self.visits)}
        if self.correspondence is not None:
            self._check_correspondence(self.correspondence)
            sizes |= {"M": self.correspondence.points.shape[1], "n": self.correspondence.dimension}
        if self.truth is not None:
            checks.check_truth(self.truth.arrays(), sizes)

    def _check_correspondence(self, correspondence: Correspondence) -> None:
        for name in ("name", "time_unit", "length_unit", "dimension"):
            own, other = getattr(self, name), getattr(correspondence, name)
            if own != other:
                raise CohortError(
                    f"{name} of the cohort is {own!r}, but its shapes have {other!r}.",
                    "Build the cohort with Cohort.from_correspondence, or correct cohort.toml.",
                )
        if not _same_visits(self.visits, correspondence.visits):
            raise CohortError(
                "the cohort and its correspondence list different visits.",
                "Build the cohort with Cohort.from_correspondence.",
            )

    @property
    def shapes(self) -> RawShapes | None:
        """The raw shapes that the table's column `path` names, read when asked for; or None."""
        return raw_shapes(self.visits, self.path, self.length_unit)

    @classmethod
    def from_correspondence(
        cls, correspondence: Correspondence, truth: Truth | None = None
    ) -> Cohort:
        """Wrap shapes in correspondence, with their names and units, as a cohort."""
        return cls(
            correspondence.name,
            correspondence.time_unit,
            correspondence.length_unit,
            correspondence.dimension,
            correspondence.visits,
            correspondence,
            truth,
        )

    @classmethod
    def read(cls, path: str | Path) -> Cohort:
        """Read a cohort folder; shapes and truth are optional in it.

        Raises:
            CohortError: What is wrong, with its file and row, and what to do about it.
        """
        folder = existing_folder(path)
        settings = read_settings(folder)
        visits = read_visits(find_visits(folder), settings.time_unit)
        correspondence = read_correspondence(folder, visits, settings)
        return assemble(folder, settings, visits, correspondence, read_truth(folder))

    def write(self, path: str | Path) -> Cohort:
        """Write the cohort into a folder and return it with its new path.

        Everything is written under a hidden name first and then moved into place. Other files of
        an existing cohort folder, such as shapes, stay where they are; the raw shapes of a cohort
        that was read from another folder stay there, and the new table leads to them.

        Raises:
            CohortError: The place holds something else, or cannot be written to.
        """
        folder = Path(path)
        _check_place(folder)
        visits = self.visits if self.path is None else relinked(self.visits, self.path, folder)
        part = beside(folder / "new" if folder.exists() else folder.resolve())
        with writing(folder):
            try:
                part.mkdir(parents=True)
                self._write_files(part, visits)
                _move_in(part, folder)
            finally:
                shutil.rmtree(part, ignore_errors=True)
        return replace(self, visits=visits, path=folder)

    def _write_files(self, folder: Path, visits: Visits) -> None:
        regions = {} if self.correspondence is None else self.correspondence.regions
        stated = self.name, self.time_unit, self.length_unit, self.dimension
        write_settings(Settings(*stated, regions), folder)
        write_visits(visits, folder / "visits.csv")
        if self.correspondence is not None:
            write_correspondence(self.correspondence, folder)
        if self.truth is not None:
            write_truth(self.truth, folder)


def require_correspondence(cohort: Cohort) -> Correspondence:
    """Return the cohort's shapes in correspondence, or say how to get them."""
    if cohort.correspondence is None:
        raise CohortError(
            f"cohort {str(cohort.path or cohort.name)!r} has no {POINTS}: "
            "its shapes are not in correspondence yet.",
            f"Run prism register on it, or store {POINTS} with points (N, M, n) in the order of "
            "visits.csv.",
        )
    return cohort.correspondence


def existing_folder(path: str | Path) -> Path:
    """Return the path if it is a folder."""
    folder = Path(path)
    if not folder.is_dir():
        state = "is a file" if folder.exists() else "does not exist"
        raise CohortError(
            f"cohort folder {folder} {state}.",
            "Give the path of a folder that holds visits.csv.",
        )
    return folder


def assemble(
    folder: Path,
    settings: Settings,
    visits: Visits,
    correspondence: Correspondence | None,
    truth: Truth | None,
) -> Cohort:
    """Put the parts of a folder together; they must belong to each other."""
    stated = settings.name, settings.time_unit, settings.length_unit
    seen = settings.dimension if correspondence is None else correspondence.dimension
    with naming(folder):
        return Cohort(*stated, seen, visits, correspondence, truth, folder)


def _same_visits(a: Visits, b: Visits) -> bool:
    return a is b or (
        np.array_equal(a.subject, b.subject)
        and np.array_equal(a.visit, b.visit)
        and np.array_equal(a.t, b.t, equal_nan=True)
    )


def _check_place(folder: Path) -> None:
    """Refuse to write over anything that is not a cohort."""
    if folder.is_dir():
        visible = any(not entry.name.startswith(".") for entry in folder.iterdir())
        if visible and not (folder / SETTINGS).exists():
            raise CohortError(
                f"{folder} is not empty and is not a cohort folder (it has no {SETTINGS}).",
                "Choose a new or empty folder.",
            )
    elif folder.exists():
        raise CohortError(f"{folder} is a file.", "Choose a new or empty folder.")


def _move_in(part: Path, folder: Path) -> None:
    """Put finished files in place, and take away those the new cohort does not have."""
    if not folder.exists():
        part.rename(folder)
        return
    for name in _OWNED:
        if (part / name).exists():
            (folder / name).parent.mkdir(exist_ok=True)
            (part / name).replace(folder / name)
        else:
            (folder / name).unlink(missing_ok=True)
