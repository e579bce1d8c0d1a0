"""`prism chart`: where does a measure of this subject stand among healthy people of its age?"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prism.cli._common import ModelFolder, count, open_both, open_model, outside, say
from prism.cli._write import answer_table, check_answer, record
from prism.errors import QueryError

if TYPE_CHECKING:
    from prism.applications import GrowthChart
    from prism.cohort import Correspondence

VISITS = ".visits.csv"
FORMATS = (".png", ".svg", ".html")
CENTILES = "3,10,25,50,75,90,97"
AT = (
    "What to measure: PLACE, PLACE:MEASURE or MEASURE. PLACE is a region (arm), a point (31) or "
    "whole. MEASURE is growth (default: movement along the average growth), distance (from the "
    "template), x, y or z; of regions and the whole also size, length, area or volume. 12-40 is "
    "the distance between two points. Examples: arm, 31, 31:x, 12-40, arm:size, area, volume."
)


def chart(
    model: ModelFolder,
    at: Annotated[str, typer.Option(metavar="AT", help=AT)],
    out: Annotated[
        Path,
        typer.Option(metavar="FILE", resolve_path=True, help="File to write: .png, .svg or .html."),
    ] = Path("chart.png"),
    cohort: Annotated[
        Path | None, typer.Option(metavar="COHORT", help="Cohort whose visits to show.")
    ] = None,
    subject: Annotated[
        str | None, typer.Option(metavar="S", help="Show the visits of this subject only.")
    ] = None,
    centiles: Annotated[
        str, typer.Option(metavar="C1,C2", help="Centiles to draw, in percent.")
    ] = CENTILES,
) -> None:
    """Draw a growth chart: centiles of a measure over age.

    With a cohort, its visits are on the chart, with their centiles. Beside the picture a table of
    the centiles (.csv) and, with a cohort, of the visits (.visits.csv) is written.
    """
    ending = _ending(out)
    levels = _levels(centiles)
    for place in (out, out.with_suffix(".csv"), *([out.with_suffix(VISITS)] if cohort else [])):
        check_answer(place, "chart")
    from prism.applications import growth_chart
    from prism.report.chart_page import write_chart
    from prism.runs import fresh_file

    shapes: Correspondence | None = None
    if cohort is None:
        known = open_model(model)
    else:
        known, shapes, _ = open_both(model, cohort)
    found = growth_chart(known, at, shapes, subject, levels)
    picture = write_chart(known, found, ending)
    facts = record("chart", known, shapes, at=at, centiles=levels)
    with ExitStack() as stack:
        draft = stack.enter_context(fresh_file(out, "chart"))
        draft.write_bytes(picture)
        stack.enter_context(answer_table(out.with_suffix(".csv"), _curves(found), facts, out))
        if shapes is not None:
            stack.enter_context(answer_table(out.with_suffix(VISITS), _visits(found), facts))
    note = outside(known, found.visit_extrapolated, "visit")
    say(f"chart: {_summary(found)}{note}. Wrote {out}")


def _ending(out: Path) -> str:
    ending = out.suffix.lower()
    if ending not in FORMATS:
        raise QueryError(
            f"--out must end in {', '.join(FORMATS)}. Got {out.name!r}.",
            "Name a file such as chart.png.",
        )
    return ending


def _levels(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise QueryError(
            f"--centiles must be numbers separated by commas. Got {text!r}.",
            f"Write percentages such as --centiles {CENTILES}.",
        ) from None


def _curves(found: GrowthChart) -> dict[str, Any]:
    named = {f"p{level:g}": row for level, row in zip(found.levels, found.centiles, strict=True)}
    extrapolated = ["yes" if flag else "no" for flag in found.extrapolated]
    return {"t": found.ages, **named, "extrapolated": extrapolated}


def _visits(found: GrowthChart) -> dict[str, Any]:
    visits = found.visits
    named = {"subject": visits.subject, "visit": visits.visit, "t": visits.t}
    return named | {"value": found.value, "centile": found.centile}


def _summary(found: GrowthChart) -> str:
    import numpy as np

    from prism.report.charts import centile_text

    unit = f" ({found.unit})" if found.unit else ""
    parts = [f"{found.label}{unit}"]
    if len(found.visits):
        placed = found.centile[np.isfinite(found.centile)]
        parts.append(f"{count(len(placed), 'visit')} of {len(found.visits)} placed")
        if 0 < len(placed) <= 12 and len(found.visits.subjects) == 1:
            parts[-1] += f" (centiles {', '.join(centile_text(c) for c in placed)})"
    missing = int(np.isnan(found.value).sum())
    if missing:
        parts.append(f"{count(missing, 'visit')} not measured for missing points")
    return ", ".join(parts)
