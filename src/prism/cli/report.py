"""`prism report`: one page to read, that opens from disk with no network."""

from __future__ import annotations

from typing import Annotated

import typer

from prism.cli._common import (
    ALL_ROWS,
    CohortFolder,
    ModelFolder,
    OutFolder,
    Split,
    count,
    open_both,
    say,
)
from prism.cli._write import PROVENANCE, check_place, record, write_json

PAGE = "report.html"


def report(
    model: ModelFolder,
    cohort: CohortFolder,
    out: OutFolder,
    split: Split = ALL_ROWS,
    subject: Annotated[
        str | None,
        typer.Option(metavar="S", help="Report on the visits of this subject only."),
    ] = None,
) -> None:
    """Write a self-contained HTML report on a cohort, or on one subject of it.

    The population first, then the visits against it.
    """
    from prism.report.write import HOLDS

    known, shapes, truth = open_both(model, cohort, split)
    check_place(out, PAGE, HOLDS)
    from prism.registration import read_quality
    from prism.report import write_report
    from prism.runs import fresh_file

    quality = read_quality(cohort, shapes.length_unit)
    page = write_report(known, shapes, truth, out, quality, subject)
    shapes = shapes if subject is None else shapes.of_subjects([subject])
    with fresh_file(page.with_name(PROVENANCE)) as draft:
        one = subject is not None  # never who
        write_json(draft, record("report", known, shapes, split=split, one_subject=one))
    visits = count(len(shapes), "visit")
    unit = f", times in {known.time_unit}" if known.time_unit else ""
    say(f"report: {visits} against the model of {known.name}{unit}. Wrote {page}")
