"""Forecasts over what came: first visit, forecast with its interval, later visit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from prism.applications import Prediction
from prism.cohort import Correspondence, Truth
from prism.model import PRISM
from prism.report.shapes import (
    PLANE,
    View,
    draw_boxes,
    draw_shape,
    draw_values,
    frame,
    scale_bar,
    views_of,
)
from prism.report.style import (
    INK,
    MODEL,
    MODEL_LIGHT,
    SOFT_INK,
    STRANGE_COLOURS,
    TRUTH,
    age_text,
    bare_age,
    labelled,
    legend_above,
    new_figure,
    plain,
    real_unit,
    styled,
)
from prism.typing import Floats, Points

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SUBJECTS = 3
MOST_POINTS = 400
CLOSE_UP = 0.12  # half-width of the close-up as a share of the shape's extent


def longest_forecasts(prediction: Prediction, count: int = SUBJECTS) -> list[int]:
    """Rows of the farthest forecasts within the training ages, one a subject."""
    reach = prediction.t1 - prediction.t0 - 1e9 * prediction.extrapolated
    chosen: dict[str, int] = {}
    for row in np.argsort(-reach, kind="stable").tolist():
        chosen.setdefault(str(prediction.subject[row]), row)
    return list(chosen.values())[:count]


@styled
def prediction_overlay(
    model: PRISM, cohort: Correspondence, prediction: Prediction, truth: Truth | None = None
) -> Figure:
    """Draw up to three forecasts with 90% intervals over what was observed later.

    The lower row is a close-up of the place where the forecast is farthest from the average; in
    space, the second view. Surfaces in space are coloured by that distance.
    """
    if is_surface(model):
        return _surfaces(model, cohort, prediction)
    rows, views = longest_forecasts(prediction), views_of(model.dimension)
    figure = new_figure(5.6)
    panels = figure.subplots(2, len(rows), squeeze=False, height_ratios=[1.25, 1])
    for k, row in enumerate(rows):
        upper, lower = panels[:, k]
        for axes, view in ((upper, views[0]), (lower, views[-1])):
            draw_forecast(axes, model, cohort, prediction, row, truth, view)
            frame(axes, [prediction.lower[rows], prediction.upper[rows]], view)
        if model.dimension == 2:
            _close_up(upper, lower, *_window(model, prediction, row))
        upper.set_title(_title(model, prediction, k, row), loc="center")
    scale_bar(panels[0, 0], model.length_unit)
    legend_above(figure, panels[0, 0], columns=6)
    return figure


def _title(model: PRISM, prediction: Prediction, k: int, row: int) -> str:
    ages = f"{bare_age(model, prediction.t0[row])} → {age_text(model, prediction.t1[row])}"
    return f"subject {k + 1}, age {ages}"


def is_surface(model: PRISM) -> bool:
    """True where shapes are triangles in space, which points over each other would not show."""
    return model.cells is not None and model.cells.shape[1] == 3 == model.dimension


def _surfaces(model: PRISM, cohort: Correspondence, prediction: Prediction) -> Figure:
    from matplotlib.colors import Normalize

    rows, views = longest_forecasts(prediction), views_of(model.dimension)
    averages = [_average(model, prediction, row) for row in rows]
    gaps = [
        np.linalg.norm(prediction.points[row] - average, axis=1)
        for row, average in zip(rows, averages, strict=True)
    ]
    colours = STRANGE_COLOURS, Normalize(0.0, float(np.nanmax(gaps)) or 1.0)
    figure = new_figure(5.6)
    panels = figure.subplots(2, len(rows), squeeze=False)
    for k, row in enumerate(rows):
        for axes, view in zip(panels[:, k], views, strict=True):
            shape = prediction.points[row]
            drawn = draw_values(axes, shape, model.cells, gaps[k], colours, view)
            frame(axes, [prediction.points[rows]], view)
        title = _title(model, prediction, k, row)
        later = int(prediction.row1[row])
        if later >= 0:
            found = cohort.points[later]
            off, plainly = (_rms(x - found) for x in (prediction.points[row], averages[k]))
            unit = real_unit(model.length_unit)
            title += f"\noff by {off:.2g} {plain(unit)}; average {plainly:.2g}"
        panels[0, k].set_title(title, loc="center")
    scale_bar(panels[0, 0], model.length_unit)
    bar = figure.colorbar(drawn, ax=panels, shrink=0.8, aspect=26)
    bar.set_label(labelled("from the average of that age", model.length_unit), color=INK)
    bar.outline.set_visible(False)  # type: ignore[operator]
    return figure


def _rms(apart: Points) -> float:
    """Root mean square distance of points."""
    return float(np.sqrt(np.nanmean(np.square(apart).sum(-1))))


def draw_forecast(
    axes: Axes,
    model: PRISM,
    cohort: Correspondence,
    prediction: Prediction,
    row: int,
    truth: Truth | None = None,
    view: View = PLANE,
) -> None:
    """Draw one forecast with its interval over the first and the later visit."""
    cells = model.cells
    some = slice(None) if model.dimension == 2 else slice(None, None, _step(len(model.template)))
    lower, upper = prediction.lower[row, some], prediction.upper[row, some]
    look: dict[str, Any] = {"color": MODEL_LIGHT, "label": "90% interval", "zorder": 1}
    draw_boxes(axes, lower, upper, cells, view, **look)
    start = cohort.points[prediction.row0[row], some]
    draw_shape(axes, start, cells, view, color="#b4bcc4", lw=1.4, label="first visit", zorder=2)
    look = {"color": INK, "lw": 0.9, "ls": (0, (4, 2)), "zorder": 3}
    draw_shape(axes, _average(model, prediction, row)[some], cells, view, label="average", **look)
    later = int(prediction.row1[row])
    if later >= 0 and truth is not None:
        look = {"color": TRUTH, "lw": 3, "alpha": 0.4, "zorder": 4}
        draw_shape(axes, truth.clean[later, some], cells, view, label="truth", **look)
    look = {"color": MODEL, "lw": 1.5, "label": "forecast", "zorder": 5}
    draw_shape(axes, prediction.points[row, some], cells, view, **look)
    if later >= 0:
        look = {"color": TRUTH, "lw": 1.8, "label": "observed later", "zorder": 6}
        draw_shape(axes, cohort.points[later, some], None, view, **look)


def _step(count: int) -> int:
    """Thin clouds of points in space, which would cover each other."""
    return max(1, count // MOST_POINTS)


def _average(model: PRISM, prediction: Prediction, row: int) -> Points:
    return model.mean_shapes(np.full((1, len(model.template)), prediction.t1[row]))[0]


def _window(model: PRISM, prediction: Prediction, row: int) -> tuple[Floats, float]:
    """Centre and half-width of the close-up, kept inside what the shape covers."""
    flat = prediction.points[row]
    gap = np.linalg.norm(flat - _average(model, prediction, row), axis=1)
    half = CLOSE_UP * float(np.ptp(flat, axis=0).max())
    room = np.array([1.2 * half, 0.7 * half])
    low, high = flat.min(axis=0) + room, flat.max(axis=0) - room
    return np.clip(flat[int(np.argmax(gap))], np.minimum(low, high), np.maximum(low, high)), half


def _close_up(whole: Axes, part: Axes, centre: Floats, half: float) -> None:
    """Show a window of one panel in another, and frame it in the first."""
    part.set_xlim(centre[0] - 1.5 * half, centre[0] + 1.5 * half)
    part.set_ylim(centre[1] - half, centre[1] + half)
    part.set_aspect("equal")
    part.axis("on")
    part.grid(visible=False)
    part.set(xticks=[], yticks=[])
    part.spines[:].set_visible(True)
    from matplotlib.patches import Rectangle

    corner = centre - np.array([1.5 * half, half])
    look = {"fill": False, "ec": SOFT_INK, "lw": 0.8, "zorder": 7, "clip_on": False}
    whole.add_patch(Rectangle((corner[0], corner[1]), 3 * half, 2 * half, **look))
