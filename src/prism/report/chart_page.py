"""A growth chart as a file: a picture, or a page that needs nothing but a browser."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import numpy as np

from prism.applications.charts import GrowthChart
from prism.model import PRISM
from prism.report.charts import centile_text, chart_notes, draw_chart, headline, ordinal
from prism.report.html import render
from prism.report.style import age_decimals, bare_age, png, real_unit, svg

TEMPLATE = "chart.html.j2"
TABLE_AGES = 13
MOST_ROWS = 500


def write_chart(model: PRISM, chart: GrowthChart, ending: str) -> bytes:
    """Return the chart as a file of this ending: .png, .svg or .html."""
    figure = draw_chart(model, chart)
    if ending == ".html":
        return chart_page(model, chart, png(figure)).encode("utf-8")
    return svg(figure) if ending == ".svg" else png(figure)


def chart_page(model: PRISM, chart: GrowthChart, image: bytes) -> str:
    """Return a self-contained HTML page: the picture, the visits and the centiles as tables."""
    from prism import __version__

    rows = np.unique(np.linspace(0, len(chart.ages) - 1, TABLE_AGES).round().astype(int))
    return render(
        TEMPLATE,
        model=model,
        title=headline(chart),
        unit=chart.unit,
        time_unit=real_unit(chart.time_unit),
        ages=[bare_age(model, t) for t in model.ages],
        image="data:image/png;base64," + b64encode(image).decode("ascii"),
        notes=chart_notes(chart),
        visits=visit_rows(model, chart)[:MOST_ROWS],
        visits_given=len(chart.visits),
        names=[ordinal(level) for level in chart.levels],
        centiles=[_centile_row(model, chart, row) for row in rows.tolist()],
        version=__version__,
        facts=[(k, v) for k, v in model.provenance.items() if not isinstance(v, dict)],
    )


def visit_rows(model: PRISM, chart: GrowthChart) -> list[tuple[str, ...]]:
    """Subject, visit, age, value and centile of every visit, as text."""
    visits, digits = chart.visits, _digits(chart)
    return [
        (
            str(visits.subject[i]),
            str(visits.visit[i]),
            "unknown" if np.isnan(visits.t[i]) else f"{visits.t[i]:.{age_decimals(model)}f}",
            "points missing" if np.isnan(chart.value[i]) else f"{chart.value[i]:.{digits}f}",
            centile_text(chart.centile[i]),
        )
        for i in range(len(visits))
    ]


def _centile_row(model: PRISM, chart: GrowthChart, row: int) -> dict[str, Any]:
    values = [f"{value:.{_digits(chart)}f}" for value in chart.centiles[:, row]]
    age = f"{chart.ages[row]:.{age_decimals(model)}f}"
    return {"age": age, "values": values, "extrapolated": bool(chart.extrapolated[row])}


def _digits(chart: GrowthChart) -> int:
    """Decimals that tell a fiftieth of the spread, and no more."""
    spread = float(np.median(np.ptp(chart.centiles, axis=0)))
    return int(np.clip(np.ceil(-np.log10(max(spread, 1e-12) / 50)), 0, 6))
