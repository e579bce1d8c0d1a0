"""Single visits: how old they look, and how unusual they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from prism import metrics
from prism.applications import Anomaly, TimeMap
from prism.applications.times import tempo_spread
from prism.cohort import Correspondence, Truth
from prism.model import PRISM
from prism.report.bands import age_grid, fill_band
from prism.report.shapes import VIEW_NAMES, draw_values, frame, scale_bar, views_of
from prism.report.style import (
    INK,
    MODEL,
    OTHER,
    REGION_COLOURS,
    STRANGE_COLOURS,
    age_text,
    correlation,
    labelled,
    new_figure,
    plain,
    styled,
    valued,
)
from prism.typing import Floats, Times

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

FLAG = 0.05
DASHED = (0, (4, 3))


@styled
def time_scatter(model: PRISM, times: TimeMap, truth: Truth | None = None) -> Figure:
    """Draw intrinsic time against age for every visit, and against the truth where known."""
    figure = new_figure(4.5)
    if truth is None:
        draw_times(figure.add_subplot(), model, times)
        return figure
    left, right = figure.subplots(1, 2)
    draw_times(left, model, times)
    left.set_title("against age")
    _draw_against_truth(right, model, times, truth)
    right.set_title("against the truth")
    return figure


def draw_times(axes: Axes, model: PRISM, times: TimeMap) -> None:
    """Draw visits, the lines that join a subject's visits, and the population's band."""
    t = age_grid(model)
    fill_band(axes, t, t, tempo_spread(model, t), MODEL, r"$\pm 2\,\sigma$ of the population")
    axes.plot(t, t, color=INK, lw=1, ls=DASHED, label="looks its age", zorder=2)
    for line in _visit_lines(times):
        axes.plot(*line, color=OTHER, lw=0.6, alpha=0.5, zorder=2)
    known = ~np.isnan(times.visits.t)
    size = 16 if known.sum() < 300 else 9
    look = {"s": size, "color": INK, "alpha": 0.65, "linewidths": 0, "zorder": 3}
    axes.scatter(times.visits.t[known], times.tau[known], label="visit", **look)
    axes.set_xlabel(labelled("age $t$", model.time_unit))
    axes.set_ylabel(labelled(r"intrinsic time $\hat\tau$", model.time_unit))
    axes.legend(loc="upper left")


def _visit_lines(times: TimeMap) -> list[tuple[Times, Times]]:
    """Ages and intrinsic times of every subject seen more than once, in order of age."""
    lines = []
    for name in times.visits.subjects:
        rows = np.flatnonzero((times.visits.subject == name) & ~np.isnan(times.visits.t))
        rows = rows[np.argsort(times.visits.t[rows], kind="stable")]
        if len(rows) > 1:
            lines.append((times.visits.t[rows], times.tau[rows]))
    return lines


def _draw_against_truth(axes: Axes, model: PRISM, times: TimeMap, truth: Truth) -> None:
    """One colour for a time shared by the whole shape, one a region where regions differ."""
    whole = truth.tau_global
    if whole is not None:
        series = [("", times.tau, whole, INK)]
    else:
        series = [
            (plain(name), times.point_tau[:, truth.landmarks[r]], truth.tau[:, r], colour)
            for r, (name, colour) in enumerate(zip(truth.regions, REGION_COLOURS, strict=False))
        ]
    ends = [np.nanmin([true for _, _, true, _ in series]), np.nanmax([s[2] for s in series])]
    axes.plot(ends, ends, color=INK, lw=1, ls=DASHED, zorder=1)
    for name, found, true, colour in series:
        score = metrics.time_metrics(found, true)
        error = valued(score["mae"], model.time_unit)
        label = f"{name}: MAE {error}" if name else f"mean absolute error {error}"
        label += f", $r$ {correlation(score['r'])}"
        axes.scatter(true, found, s=9, color=colour, alpha=0.65, linewidths=0, label=label)
    axes.set_xlabel(labelled(r"true intrinsic time $\tau$", model.time_unit))
    axes.set_ylabel(labelled(r"estimated intrinsic time $\hat\tau$", model.time_unit))
    axes.legend(loc="upper left", handletextpad=0.2)


@styled
def anomaly_ranking(model: PRISM, cohort: Correspondence, found: Anomaly) -> Figure:
    """Draw ranked scores, ranked p-values, and the most unusual visit coloured by z."""
    order = most_unusual_first(found)
    views = views_of(model.dimension)
    figure = new_figure(3.7)
    left, right = figure.subfigures(1, 2, squeeze=False, width_ratios=[2.4, len(views)])[0]
    scores, p_values = left.subplots(1, 2)
    _draw_scores(scores, found.score[order], found.p_value[order])
    _draw_p_values(p_values, np.sort(found.p_value[order]))
    panels = right.subplots(1, len(views), squeeze=False)[0].tolist()
    if len(order):
        _draw_strangest(right, panels, model, cohort, found, int(order[0]))
    return figure


def most_unusual_first(found: Anomaly) -> np.ndarray:
    """Rows of judged visits by p-value, then by score: judges who disagree may order them apart."""
    judged = np.flatnonzero(~np.isnan(found.score))
    return judged[np.lexsort((-found.score[judged], found.p_value[judged]))]


def _draw_scores(axes: Axes, score: Floats, p_value: Floats) -> None:
    rank = np.arange(1, len(score) + 1)
    flagged = p_value <= FLAG
    axes.vlines(rank, 0, score, color=np.where(flagged, MODEL, "#c6ccd2"), lw=_thin(len(score)))
    axes.scatter(rank[flagged], score[flagged], s=9, color=MODEL, zorder=3, label=_flag_label())
    axes.scatter(rank[~flagged], score[~flagged], s=4, color=OTHER, zorder=3, label="not flagged")
    axes.set_ylim(0, 1.3 * max(float(np.nanmax(score, initial=0.0)), 1.0))  # room for the legend
    axes.set_xlabel("visits, most unusual first")
    axes.set_ylabel("anomaly score (standard deviations)")
    axes.set_title("scores")
    axes.legend(loc="upper right", handletextpad=0.2)


def _flag_label() -> str:
    return f"flagged, $p \\leq$ {FLAG:g}"


def _thin(count: int) -> float:
    return float(np.clip(120 / max(count, 1), 0.3, 3.0))


def _draw_p_values(axes: Axes, p_value: Floats) -> None:
    share = (np.arange(len(p_value)) + 1) / (len(p_value) + 1)
    flagged = p_value <= FLAG
    axes.plot([0, 1], [0, 1], color=INK, lw=1, ls=DASHED, label="if all were normal")
    axes.axhline(FLAG, color=MODEL, lw=0.8, alpha=0.7)
    axes.scatter(share, p_value, s=9, c=np.where(flagged, MODEL, OTHER), linewidths=0, zorder=3)
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.02, 1.02)
    axes.set_xlabel("share of visits")
    axes.set_ylabel("$p$-value")
    axes.set_title("$p$-values")
    axes.legend(loc="upper left")


def _draw_strangest(
    figure: SubFigure,
    panels: list[Axes],
    model: PRISM,
    cohort: Correspondence,
    found: Anomaly,
    row: int,
) -> None:
    """Colour the most unusual visit's points by their distance from normal."""
    from matplotlib.colors import Normalize

    colours = STRANGE_COLOURS, Normalize(0, max(3.0, float(np.nanmax(found.point_z[row]))))
    views = views_of(model.dimension)
    for axes, view in zip(panels, views, strict=True):
        shape = draw_values(
            axes, cohort.points[row], model.cells, found.point_z[row], colours, view
        )
        frame(axes, [cohort.points[row]], view)
        axes.set_title(VIEW_NAMES[view] or "most unusual visit", loc="center")
    scale_bar(panels[0], model.length_unit)
    bar = figure.colorbar(shape, ax=panels, orientation="horizontal", shrink=0.8, aspect=24)
    t, p = cohort.visits.t[row], found.p_value[row]
    age = f"age {age_text(model, t)}, " if not np.isnan(t) else ""
    bar.set_label(f"$z$ of every point\n({age}$p$ = {p:.2g})", color=INK)
    bar.outline.set_visible(False)  # type: ignore[operator]
