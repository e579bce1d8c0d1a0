"""`prism predict`: what will this anatomy look like at a later age?"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from prism.cli._common import (
    CohortFolder,
    ModelFolder,
    OutFolder,
    count,
    open_both,
    outside,
    parse_ages,
    say,
    say_taken_as_exact,
)
from prism.cli._write import PROVENANCE, record, write_json

if TYPE_CHECKING:
    from pathlib import Path

    from prism.applications import Prediction

ARRAYS, HOLDS = "predictions.npz", ("prediction-*.vtp",)
KEYS = ("points", "lower", "upper", "subject", "from_visit", "t0", "t1")


class Rule(StrEnum):
    """How a subject is carried forward."""

    pooled = "pooled"
    paper = "paper"
    mean = "mean"


class History(StrEnum):
    """Which earlier visits are looked at."""

    first = "first"
    all = "all"


def predict(
    model: ModelFolder,
    cohort: CohortFolder,
    out: OutFolder,
    at: Annotated[
        str | None, typer.Option(metavar="T1,T2", help="Ages. Default: each later visit's.")
    ] = None,
    rule: Annotated[
        Rule,
        typer.Option(
            help="pooled: as points and visits co-vary. paper: each point keeps its temporal "
            "z-score. mean: the population's."
        ),
    ] = Rule.pooled,
    history: Annotated[
        History | None,
        typer.Option(
            help="Look at the earliest visit alone, or at every visit before the age (rule "
            "pooled). Default: first; all with --at."
        ),
    ] = None,
) -> None:
    """Forecast the shape of every subject.

    From its earlier visits, with 90% intervals of every coordinate.
    """
    from prism.cohort.vtp_file import require_vtp
    from prism.runs import check_folder, fresh_folder

    ages = None if at is None else parse_ages(at)
    require_vtp()
    check_folder(out, ARRAYS, HOLDS)
    import numpy as np

    from prism.applications import left_out, predict_shape

    known, shapes, _ = open_both(model, cohort)
    say_taken_as_exact("predict", shapes)
    t1 = None if ages is None else np.asarray(ages)
    found = predict_shape(
        known, shapes, t1, rule.value, history=None if history is None else history.value
    )
    missed = left_out(shapes, found)
    with fresh_folder(out, ARRAYS, HOLDS) as draft:
        _write(draft, found)
        asked = {"at": ages, "rule": rule, "history": history}
        facts = record("predict", known, shapes, **asked, extrapolated=found.extrapolated.tolist())
        facts["left_out"] = missed
        write_json(draft / PROVENANCE, facts)
    forecasts = count(len(found.points), "forecast")
    people = count(len(set(found.subject.tolist())), "subject")
    note = outside(known, found.extrapolated, "forecast") + _without(missed)
    width = f"in {known.length_unit}" if known.length_unit else "in the cohort's units"
    say(f"predict: {forecasts} of {people}, 90% intervals {width}{note}. Wrote {out}")


def _without(missed: dict[str, int]) -> str:
    """Say how many had no share, and why: `; left out: 1 subject without an age`."""
    told = [f"{n} {what if n != 1 else _single(what)}" for what, n in missed.items() if n]
    return f"; left out: {', '.join(told)}" if told else ""


def _single(words: str) -> str:
    """`subjects without an age` of one subject."""
    noun, rest = words.split(" ", 1)
    return f"{noun.removesuffix('s')} {rest}"


def _write(folder: Path, found: Prediction) -> None:
    from prism.cohort.files import write_arrays
    from prism.cohort.vtp_file import write_vtp

    write_arrays(folder / ARRAYS, {key: getattr(found, key) for key in KEYS})
    for i, points in enumerate(found.points):
        data = {"lower": found.lower[i], "upper": found.upper[i]}
        write_vtp(folder / f"prediction-{i:04d}.vtp", points, found.cells, data)
