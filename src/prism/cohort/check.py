"""Say everything that is wrong, or looks wrong, with a cohort folder."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from prism.cohort.arrays_file import POINTS, read_correspondence, read_truth
from prism.cohort.files import read_arrays
from prism.cohort.folder import Cohort, assemble, existing_folder
from prism.cohort.parallel import Progress, silent
from prism.cohort.raw_shapes import has_raw_shapes
from prism.cohort.settings_file import FILE as SETTINGS
from prism.cohort.settings_file import Settings, read_settings
from prism.cohort.shape_suspicions import raw_suspicions
from prism.cohort.suspicions import (
    SHAPE_SUSPICIONS,
    VISIT_SUSPICIONS,
    Finding,
)
from prism.cohort.visits_file import find_visits, scan_visits
from prism.errors import CohortError

MOST_ERRORS = 20
Value = TypeVar("Value")


@dataclass(frozen=True)
class CheckResult:
    """What `prism check` has to say: errors first, then warnings, then notes."""

    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """True when nothing stops the work."""
        return all(finding.severity != "error" for finding in self.findings)


def check_cohort(
    path: str | Path, workers: int | None = None, progress: Progress = silent
) -> CheckResult:
    """Read a cohort folder, raw shapes included, and collect all that is wrong or suspicious.

    Raw shapes are read where they are not in correspondence yet.

    Args:
        path: The cohort folder.
        workers: Processes that read raw shapes. Default: one a core where there are many.
        progress: Receives a message now and then while raw shapes are read.

    Returns:
        The findings; never raises for what a user can fix.
    """
    cohort, settings, errors = _read(path)
    findings = [Finding("error", error.what, error.remedy) for error in errors]
    findings += _unstated(settings) if settings is not None else ()
    findings += _early_regions(Path(path), settings) if settings is not None else ()
    if cohort is not None:
        findings += _suspicions(cohort)
        if cohort.correspondence is None:
            findings += raw_suspicions(cohort, workers, progress)
    order = ("error", "warning", "note")
    findings.sort(key=lambda finding: order.index(finding.severity))
    return CheckResult(tuple(_cut_short(findings)))


def _cut_short(findings: list[Finding]) -> list[Finding]:
    """Show the first errors and count the rest."""
    errors = sum(finding.severity == "error" for finding in findings)
    if errors <= MOST_ERRORS:
        return findings
    what = f"{errors - MOST_ERRORS} more errors are not shown."
    rest = Finding("error", what, "Correct those above and check again.")
    return [*findings[:MOST_ERRORS], rest, *findings[errors:]]


def _read(path: str | Path) -> tuple[Cohort | None, Settings | None, list[CohortError]]:
    """Read as much of the folder as can be read, going on after an error where possible."""
    errors: list[CohortError] = []

    def attempt(read: Callable[[], Value]) -> Value | None:
        try:
            return read()
        except CohortError as error:
            errors.append(error)
            return None

    folder = attempt(lambda: existing_folder(path))
    if folder is None:
        return None, None, errors
    settings = attempt(lambda: read_settings(folder))
    stated = settings or Settings(folder.resolve().name)
    table = attempt(lambda: find_visits(folder))
    visits, problems = scan_visits(table, stated.time_unit) if table else (None, [])
    errors += problems
    truth = attempt(lambda: read_truth(folder))
    if visits is None:
        attempt(lambda: (folder / POINTS).exists() and read_arrays(folder / POINTS))
        return None, settings, errors
    shapes = attempt(lambda: read_correspondence(folder, visits, stated))
    cohort = attempt(lambda: assemble(folder, stated, visits, shapes, truth))
    return cohort, settings, errors


def _suspicions(cohort: Cohort) -> Iterator[Finding]:
    """Everything that reads well but deserves a look, and the summary."""
    for suspect in VISIT_SUSPICIONS:
        yield from suspect(cohort.visits)
    if cohort.correspondence is None:
        if not (cohort.path is not None and (cohort.path / POINTS).exists()):
            remedy = "Run prism register to bring the shapes into correspondence."
            raw = "" if has_raw_shapes(cohort.visits) else ", and no column path that names shapes"
            yield Finding("note", f"no {POINTS} yet{raw}.", remedy)
    else:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            for suspect in SHAPE_SUSPICIONS:
                yield from suspect(cohort.correspondence)
    yield Finding("note", _summary(cohort))


def _unstated(settings: Settings) -> Iterator[Finding]:
    """Units nobody stated, and keys nobody reads."""
    for name, example in (("time_unit", "months"), ("length_unit", "mm")):
        if not getattr(settings, name):
            remedy = f'Write {name} = "{example}", or whichever it is, in {SETTINGS}.'
            yield Finding("warning", f"{SETTINGS} does not state {name}.", remedy)
    for key in settings.unknown:
        remedy = "Known keys are name, time_unit, length_unit, dimension and regions."
        yield Finding("warning", f"{SETTINGS}: key {key!r} has no meaning here.", remedy)


def _early_regions(folder: Path, settings: Settings) -> Iterator[Finding]:
    """Regions of points that do not correspond yet."""
    if settings.regions and not (folder / POINTS).exists():
        what = f"{SETTINGS} names regions, but without {POINTS} their points mean nothing yet."
        yield Finding("warning", what, "Add [regions] after the shapes are in correspondence.")


def _summary(cohort: Cohort) -> str:
    """One line: subjects, visits, ages, points, dimension."""
    t = cohort.visits.t[np.isfinite(cohort.visits.t)]
    unit = f" {cohort.time_unit}".rstrip()
    span = f"ages {t.min():g} to {t.max():g}{unit}" if len(t) else "no known age"
    parts = [f"{len(cohort.visits.subjects)} subjects", f"{len(cohort.visits)} visits", span]
    if cohort.correspondence is not None:
        parts.append(f"{cohort.correspondence.points.shape[1]} points")
    if cohort.dimension is not None:
        parts.append(f"dimension {cohort.dimension}")
    return f"{cohort.name}: {', '.join(parts)}."
