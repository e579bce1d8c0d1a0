"""The correspondence behind a cohort: how well its raw shapes were registered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from prism.registration import Quality
from prism.report.plates import Plate
from prism.report.shapes import draw_values, frame, scale_bar, views_of
from prism.report.style import (
    MODEL,
    OTHER,
    STRANGE_COLOURS,
    new_figure,
    plain,
    real_unit,
    styled,
)
from prism.report.tables import Row, number, percent, with_unit
from prism.typing import Cells, Points

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_NAMED = 10


def match_plate(quality: Quality, template: Points, cells: Cells | None) -> Plate | None:
    """The figure with its words; None where the template is not that of the registration."""
    if quality.residual.shape[1] != len(template):
        return None
    return Plate(
        "correspondence",
        "How well the shapes were registered",
        "The template is coloured by how far its points, carried onto the shapes, lie off the "
        "shapes' surfaces on average. On the right every shape is a dot, its own mean distance "
        "against how far a point comes back from where it started after a trip to the template "
        "and back, both in percent of the shape's size; red dots are much worse than the others "
        "and deserve a look.",
        match_figure(quality, template, cells),
    )


@styled
def match_figure(quality: Quality, template: Points, cells: Cells | None) -> Figure:
    """Draw the template by residual, and every shape by residual and round trip."""
    from matplotlib.colors import Normalize

    views = views_of(template.shape[1])
    figure = new_figure(3.6)
    *drawings, dots = figure.subplots(1, len(views) + 1, width_ratios=[1] * len(views) + [1.3])
    mean = quality.residual.mean(axis=0)
    colours = STRANGE_COLOURS, Normalize(0.0, float(np.quantile(mean, 0.98)) or 1.0)
    for axes, view in zip(drawings, views, strict=True):
        drawn = draw_values(axes, template, cells, mean, colours, view)
        frame(axes, [template], view)
    scale_bar(drawings[0], quality.length_unit)
    unit = real_unit(quality.length_unit)
    label = f"off the surface ({plain(unit)})" if unit else "off the surface"
    figure.colorbar(drawn, ax=drawings, label=label, shrink=0.8)
    x, y = (100 * v / quality.size for v in (quality.residual.mean(axis=1), quality.round_trip))
    for chosen, colour in ((~quality.outlier, OTHER), (quality.outlier, MODEL)):
        dots.scatter(x[chosen], y[chosen], s=14, color=colour, linewidths=0)
    dots.set(xlabel="off the surface (% of size)", ylabel="round trip (% of size)")
    dots.set_xlim(left=0)
    dots.set_ylim(bottom=0)
    return figure


def match_rows(quality: Quality) -> list[Row]:
    """Measures of the registration: name, value, how to read it."""
    told, unit = quality.summary(), quality.length_unit

    def length(name: str) -> str:
        figures = told[name]
        return f"{with_unit(number(figures['mean']), unit)} ({percent(figures['mean_share'])})"

    bad = np.flatnonzero(quality.outlier)
    who = [str(quality.who[i]) if len(quality.who) else f"shape {i + 1}" for i in bad[:MOST_NAMED]]
    more = f" and {len(bad) - MOST_NAMED} more" if len(bad) > MOST_NAMED else ""
    return [
        ("off the surface", length("residual"), "mean distance of carried points from the shapes"),
        ("round trip", length("round_trip"), "from a shape to the template and back"),
        ("reverse round trip", length("reverse"), "from the template to a shape and back"),
        ("folds", percent(told["folds"]), "points at which a map turns space inside out"),
        ("outliers", str(len(bad)), "; ".join(who) + more or "no shape is much worse than others"),
    ]
