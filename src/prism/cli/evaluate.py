"""`prism evaluate`: how good is a model on a cohort?"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from prism.cli._advance import shown_advance
from prism.cli._common import (
    CohortFolder,
    ModelFolder,
    OutFile,
    Split,
    count,
    in_unit,
    open_both,
    say,
)
from prism.cli._write import record, write_json


def evaluate(
    model: ModelFolder,
    cohort: CohortFolder,
    out: OutFile,
    split: Split = None,
    emd: Annotated[bool, typer.Option(help="Also the earth mover's distance (slow).")] = True,
) -> None:
    """Measure how good a model is on a cohort.

    By every metric that the truth or the visits allow.

    Uses the rows of split `test` where a column split names them, unless --split says otherwise.
    """
    from prism.runs import check_file, fresh_file

    check_file(out, "evaluate")
    known, shapes, truth = open_both(model, cohort, split)
    from prism.applications import evaluate as measure

    with fresh_file(out, "evaluate") as draft, shown_advance() as progress:
        result = measure(known, shapes, truth, emd, progress)
        result["provenance"] = record("evaluate", known, shapes, split=split, emd=emd)
        write_json(draft, result)
    unit = known.time_unit
    say(f"evaluate: {count(len(shapes), 'shape')}{_summary(result, unit)}. Wrote {out}")


def _summary(result: dict[str, Any], unit: str) -> str:
    """The two numbers most asked for, where they were measured."""
    from prism.applications.evaluation import AGAINST_AGE

    text = ""
    inside = result.get("coverage", {}).get("displacement", {}).get("0.9")
    if inside is not None:
        text += f", 90% intervals hold {100 * inside:.0f}%"
    found = result.get("time", {})
    mae = found.get("tau", {}).get("mae")
    if mae is not None:
        aged = found["against"] == AGAINST_AGE
        text += f", mean {'distance from age' if aged else 'error of tau'} {in_unit(mae, unit)}"
    return text
