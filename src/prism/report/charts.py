"""Growth charts on paper: centile curves over age, named at their right end, visits among them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from prism.applications.charts import LEAST, MOST, GrowthChart
from prism.model import PRISM
from prism.report.shapes import draw_shape, frame, views_of
from prism.report.style import (
    INK,
    MODEL,
    OTHER,
    SOFT_INK,
    TRUTH,
    labelled,
    new_figure,
    plain,
    styled,
)
from prism.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_NUMBERS = 12  # visits that carry their centile on the picture
_AXES_POINTS = np.array([505.0, 346.0])  # size of the panel, about
_LABEL = 19.0, 11.0  # size of a number, in points
_LIFTS = 11.0, -11.0
_LABEL_GAP = 0.034  # of the height, between names of curves


@styled
def draw_chart(model: PRISM, chart: GrowthChart) -> Figure:
    """Draw a growth chart, with the place it is about on the template beside it."""
    figure = new_figure(5.6)
    grid = figure.add_gridspec(1, 2, width_ratios=[1.0, 4.6])
    _draw_place(figure.add_subplot(grid[0, 0]), model, chart)
    axes = figure.add_subplot(grid[0, 1])
    _draw_curves(axes, chart)
    _draw_visits(axes, chart)
    _mark_extrapolation(axes, model, chart)
    _name_curves(axes, chart)
    axes.set_title(plain(headline(chart)), fontsize=12)
    axes.set_xlabel(labelled("age", chart.time_unit))
    axes.set_ylabel(labelled(plain(_quantity(chart)), chart.unit))
    if notes := chart_notes(chart):
        look = {"fontsize": 8.5, "color": SOFT_INK, "x": 0.99, "ha": "right"}
        figure.supxlabel("\n".join(notes), **look)
    return figure


def headline(chart: GrowthChart) -> str:
    """The measure in words, with a capital."""
    return chart.label[:1].upper() + chart.label[1:]


def _quantity(chart: GrowthChart) -> str:
    """What the vertical axis shows, without its place."""
    return chart.label.rpartition(": ")[2]


def _draw_place(axes: Axes, model: PRISM, chart: GrowthChart) -> None:
    """The template in grey, the points that are measured in the model's colour."""
    view = views_of(model.dimension)[0]
    draw_shape(axes, model.template, model.cells, view, color="#b4bcc4", lw=1.3)
    x, y = model.template[chart.points][:, list(view)].T
    whole = len(chart.points) == len(model.template)
    size = 1.5 if whole else 3.2 if len(x) > 2 else 6.0
    line = "-" if len(x) == 2 else ""
    axes.plot(x, y, "o", ls=line, color=MODEL, ms=size, mew=0, lw=1.2, zorder=5, clip_on=False)
    frame(axes, [model.template], view)


def _draw_curves(axes: Axes, chart: GrowthChart) -> None:
    """Bands between matching centiles, the median boldest, dashes where extrapolated."""
    count = len(chart.levels)
    for i in range(count // 2):
        axes.fill_between(
            chart.ages, chart.centiles[i], chart.centiles[-1 - i], color=MODEL, alpha=0.07, lw=0
        )
    inside, outside = _parts(chart.extrapolated)
    for level, curve in zip(chart.levels, chart.centiles, strict=True):
        look: dict[str, Any] = {"color": MODEL, "lw": 2.2 if level == 50 else 1.0}
        look["alpha"] = 1.0 if level == 50 else 0.75
        axes.plot(chart.ages, np.where(inside, curve, np.nan), **look)
        axes.plot(chart.ages, np.where(outside, curve, np.nan), ls=(0, (3, 2)), **look)
    axes.set_xlim(chart.ages[0], chart.ages[-1])


def _parts(extrapolated: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ages to draw solid, and ages to draw dashed, which reach the solid ones."""
    reach = np.convolve(extrapolated, [1, 1, 1], mode="same") > 0
    return ~extrapolated, reach


def _mark_extrapolation(axes: Axes, model: PRISM, chart: GrowthChart) -> None:
    low, high = axes.get_xlim()
    first, last = model.ages
    for start, end in ((low, first), (last, high)):
        if end > start and chart.extrapolated.any():
            axes.axvspan(start, end, color=OTHER, alpha=0.13, lw=0, zorder=0)
            _write_extrapolated(axes, chart, (start + end) / 2)


def _write_extrapolated(axes: Axes, chart: GrowthChart, t: float) -> None:
    """Write the word upright at this age, where the curves leave more room."""
    low, high = axes.get_ylim()
    outer = [np.interp(t, chart.ages, chart.centiles[row]) for row in (0, -1)]
    below = outer[0] - low > high - outer[1]
    axes.text(
        t,
        0.02 if below else 0.98,
        "extrapolated",
        transform=axes.get_xaxis_transform(),
        rotation=90,
        ha="center",
        va="bottom" if below else "top",
        fontsize=8,
        color=SOFT_INK,
    )


def _draw_visits(axes: Axes, chart: GrowthChart) -> None:
    """One subject as a line with its centiles, several as dots."""
    shown = np.flatnonzero(np.isfinite(chart.value) & np.isfinite(chart.visits.t))
    rows = shown[np.argsort(chart.visits.t[shown], kind="stable")]
    if not rows.size:
        return
    t, value = chart.visits.t[rows], chart.value[rows]
    subjects = chart.visits[rows].subjects
    if len(subjects) > 1:
        words = f"{len(rows)} visits of {len(subjects)} subjects"
        axes.plot(t, value, "o", color=TRUTH, ms=3, mew=0, alpha=0.55, label=words)
    else:
        numbered = len(rows) <= MOST_NUMBERS
        words = f"subject {subjects[0]}" + numbered * ", centile at each visit"
        look: dict[str, Any] = {"color": TRUTH, "lw": 1.4, "ms": 6.5, "mec": "white"}
        axes.plot(t, value, "o-", label=plain(words), zorder=6, clip_on=False, **look)
        if numbered:
            _number_visits(axes, t, value, chart.centile[rows])
    axes.legend(loc="upper left", handlelength=1.4)


def _number_visits(axes: Axes, t: Floats, value: Floats, centile: Floats) -> None:
    """Write centiles above their visits, or below where another is in the way, or not at all."""
    from matplotlib.patheffects import withStroke

    low, high = np.array([axes.get_xlim(), axes.get_ylim()]).T
    places = (np.stack([t, value], axis=-1) - low) / (high - low) * _AXES_POINTS
    for x, y, c, lift in zip(t, value, centile, label_lifts(places), strict=True):
        if lift is not None:
            axes.annotate(
                centile_text(c),
                (x, y),
                xytext=(0, lift),
                textcoords="offset points",
                ha="center",
                va="center",
                fontsize=8.5,
                fontweight="bold",
                color=TRUTH,
                zorder=7,
                path_effects=[withStroke(linewidth=2.5, foreground="white")],
            )


def label_lifts(places: Floats) -> list[float | None]:
    """How far above each place (V, 2) its label goes, so that no two touch; None where it must not.

    The last place, the one a reader asks about, chooses first.
    """
    taken: list[tuple[float, float]] = []
    lifts: list[float | None] = []
    for x, y in places[::-1]:
        free = [
            lift
            for lift in _LIFTS
            if all(abs(x - a) >= _LABEL[0] or abs(y + lift - b) >= _LABEL[1] for a, b in taken)
        ]
        lifts.append(free[0] if free else None)
        taken += [(x, y + lift) for lift in free[:1]]
    return lifts[::-1]


def centile_text(centile: float) -> str:
    """A centile without false digits: `62`, `0.7`, `< 0.4`, or a dash where there is none."""
    if np.isnan(centile):
        return "-"
    if centile <= LEAST * 1.001 or centile >= MOST * 0.999999:
        return f"< {LEAST:g}" if centile < 50 else f"> {MOST:g}"
    return f"{centile:.0f}" if 1.5 <= centile <= 98.5 else f"{centile:.1f}"


def _name_curves(axes: Axes, chart: GrowthChart) -> None:
    """Write each centile at the right end of its curve, moved apart where they would touch."""
    low, high = axes.get_ylim()
    ends = (chart.centiles[:, -1] - low) / (high - low)
    for level, end, place in zip(chart.levels, ends, spaced(ends, _LABEL_GAP), strict=True):
        axes.annotate(
            ordinal(level),
            (1.0, end),
            xytext=(1.022, place),
            xycoords="axes fraction",
            textcoords="axes fraction",
            va="center",
            fontsize=9,
            fontweight="bold" if level == 50 else "normal",
            color=MODEL if level == 50 else INK,
            arrowprops={"arrowstyle": "-", "color": MODEL, "lw": 0.6, "alpha": 0.6, "shrinkB": 0},
            annotation_clip=False,
        )


def spaced(places: Floats, gap: float) -> Floats:
    """Move rising places apart to at least a gap, as little as possible in total square."""
    from scipy.optimize import isotonic_regression

    steps = gap * np.arange(len(places))
    return isotonic_regression(places - steps).x + steps


def ordinal(level: float) -> str:
    """`3rd`, `50th`, `2.5th`."""
    whole = int(level) if level == int(level) else 0
    ending = {1: "st", 2: "nd", 3: "rd"}.get(whole % 10, "th") if whole // 10 % 10 != 1 else "th"
    return f"{level:g}{ending}"


def chart_notes(chart: GrowthChart) -> list[str]:
    """Say what is not on the chart, and why."""
    unmeasured = int(np.isnan(chart.value).sum())
    undated = int((np.isnan(chart.visits.t) & ~np.isnan(chart.value)).sum())
    beyond = int((chart.visit_extrapolated & ~np.isnan(chart.value)).sum())
    parts = [
        (unmeasured, "not measured, because points the measure needs are missing"),
        (undated, "of unknown age, so without a place on the chart"),
        (beyond, "outside the training ages, where centiles are extrapolated"),
    ]
    return [f"{n} visit{'' if n == 1 else 's'} {words}." for n, words in parts if n]
