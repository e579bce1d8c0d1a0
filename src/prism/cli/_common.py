"""What several verbs share: arguments, opening models and cohorts, choosing rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prism.errors import QueryError

if TYPE_CHECKING:
    import numpy as np

    from prism.cohort import Correspondence, Truth
    from prism.model import PRISM

NORMAL_GROUPS = ("", "normal", "control", "healthy")
ALL_ROWS = "all"

ModelFolder = Annotated[
    Path, typer.Argument(metavar="MODEL", help="Model folder that `prism fit` wrote.")
]
CohortFolder = Annotated[
    Path, typer.Argument(metavar="COHORT", help="Cohort folder with visits.csv.")
]
OutFolder = Annotated[
    Path, typer.Option("--out", metavar="DIR", resolve_path=True, help="Folder to write.")
]
OutFile = Annotated[
    Path, typer.Option("--out", metavar="FILE", resolve_path=True, help="File to write.")
]
MapsFolder = Annotated[
    Path | None,
    typer.Option("--maps", metavar="DIR", resolve_path=True, help="Also write maps on the shapes."),
]
Split = Annotated[
    str | None,
    typer.Option("--split", metavar="NAME", help="Rows of this split only; `all` for every row."),
]


def say(line: str) -> None:
    """Tell the user something, on stdout."""
    typer.echo(line)


def count(number: int, word: str) -> str:
    """Write a number with its noun: 1 visit, 2 visits."""
    return f"{number} {word}{'' if number == 1 else 's'}"


def in_unit(value: float, unit: str) -> str:
    """Write a value with its unit, if it has one."""
    return f"{value:.3g} {unit}".rstrip()


def parse_ages(text: str) -> list[float]:
    """Read `1,2,5` as numbers."""
    try:
        ages = [float(part) for part in text.split(",")]
    except ValueError:
        ages = [float("nan")]
    if not all(abs(age) < float("inf") for age in ages):
        raise QueryError(
            f"--at must be finite numbers separated by commas. Got {text!r}.",
            "Write ages such as --at 1,2.5,5 with a decimal point.",
        )
    return ages


def open_model(path: Path) -> PRISM:
    """Read a model folder."""
    from prism.model import PRISM

    return PRISM.load(path)


def open_cohort(path: Path) -> tuple[Correspondence, Truth | None]:
    """Read the shapes in correspondence of a cohort folder, and their truth if there is one."""
    from prism.cohort import Cohort, require_correspondence

    cohort = Cohort.read(path)
    return require_correspondence(cohort), cohort.truth


def open_both(
    model_path: Path, cohort_path: Path, split: str | None = ALL_ROWS
) -> tuple[PRISM, Correspondence, Truth | None]:
    """Read a model and a cohort that fits it, the rows of one split."""
    from prism.cohort import unfamiliar

    model = open_model(model_path)
    cohort, truth = open_cohort(cohort_path)
    model.displacements(cohort)  # refuses a cohort that does not fit
    strangers = unfamiliar(cohort.visits, model.provenance.get("covariates", {}))
    for sentence in (*_unstated_units(model, cohort), *strangers):
        typer.echo(f"note: {sentence}", err=True)
    return model, *rows_of_split(cohort, truth, split)


def _unstated_units(model: PRISM, cohort: Correspondence) -> list[str]:
    """Sentences on units that the model states and the cohort does not."""
    return [
        f"the cohort states no {kind} unit; taken as {unit}, like the model."
        for kind, unit, own in (
            ("time", model.time_unit, cohort.time_unit),
            ("length", model.length_unit, cohort.length_unit),
        )
        if unit and not own
    ]


def say_taken_as_exact(verb: str, cohort: Correspondence) -> None:
    """Say how many ages were given with an error that this verb does not look at."""
    import numpy as np

    visits = cohort.visits
    number = int(((visits.t_error > 0) & ~np.isnan(visits.t)).sum())
    if number:
        are = "is" if number == 1 else "are"
        say(f"{verb}: {count(number, 'age')} with a t_error {are} taken as exact.")


def rows_of_split(
    cohort: Correspondence, truth: Truth | None, split: str | None
) -> tuple[Correspondence, Truth | None]:
    """Select a split by name, `all`, or (None) the test split where there is one."""
    names = cohort.visits.columns.get("split")
    if split is None:
        split = "test" if names is not None and "test" in names else ALL_ROWS
    if split == ALL_ROWS:
        return cohort, truth
    chosen = cohort.of_split(split)
    return chosen, None if truth is None else truth[names == split]


def is_normal(cohort: Correspondence) -> np.ndarray:
    """(N,) True where the column `group` names no patient group, or there is none."""
    import numpy as np

    group = cohort.visits.columns.get("group")
    if group is None:
        return np.ones(len(cohort), dtype=bool)
    return np.isin(np.char.lower(np.char.strip(group)), NORMAL_GROUPS)


def outside(model: PRISM, extrapolated: np.ndarray, word: str) -> str:
    """Say how many answers lie outside the ages the model was trained on."""
    number = int(extrapolated.sum())
    if not number:
        return ""
    first, last = model.ages
    ages = f"{first:.3g} to {in_unit(last, model.time_unit)}"
    return f"; {count(number, word)} outside the training ages {ages}, extrapolated"
