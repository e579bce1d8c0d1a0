"""The population's shapes: what two temporal spreads do to them, and where time can be read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from prism.applications import Trajectory, trajectory
from prism.applications.times import tempo_spread
from prism.cohort import Truth
from prism.model import PRISM
from prism.report.shapes import (
    VIEW_NAMES,
    View,
    draw_between,
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
    OLDER,
    SOFT_INK,
    SPREAD_COLOURS,
    TRUTH,
    UNREADABLE,
    YOUNGER,
    age_decimals,
    age_text,
    labelled,
    legend_above,
    new_figure,
    styled,
)
from prism.typing import Floats, Points, Shapes, Times

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

FAN_AGES = (0.05, 0.35, 0.65, 0.95)  # shares of the training ages
MAP_AGES = (0.1, 0.5, 0.9)


def ages_at(model: PRISM, shares: tuple[float, ...]) -> Times:
    """Ages at these shares of the training range, rounded as they are written."""
    first, last = model.ages
    ages = (first + np.array(shares) * (last - first)).round(age_decimals(model))
    return np.clip(ages, first, last)


def fan_shapes(model: PRISM, found: Trajectory) -> tuple[Shapes, Shapes]:
    """Shapes decoded at tau = t - 2 sigma_tau and t + 2 sigma_tau, (T, M, n) each."""
    width = np.where(np.isfinite(found.sigma_tau), 2 * found.sigma_tau, 0.0)
    t = found.t[:, None]
    return model.mean_shapes(t - width), model.mean_shapes(t + width)


def true_mean(truth: Truth, t: float) -> Points:
    """The true mean shape at the tabulated time nearest to t."""
    return truth.mean[int(np.argmin(np.abs(truth.t_grid - t)))]


@styled
def shape_fan(model: PRISM, truth: Truth | None = None) -> Figure:
    """Draw the average shape and the shapes two temporal spreads younger and older."""
    if model.dimension == 3:
        return _fan_in_space(model)
    found = trajectory(model, ages_at(model, FAN_AGES))
    younger, older = fan_shapes(model, found)
    figure = new_figure(2.75)
    panels = figure.subplots(1, len(found.t))
    for k, axes in enumerate(panels):
        true = None if truth is None else true_mean(truth, found.t[k])
        draw_fan(axes, found, k, (younger[k], older[k]), true)
        frame(axes, [younger, older, found.points])
        axes.set_title(f"age {age_text(model, found.t[k])}", loc="center")
    scale_bar(panels[0], model.length_unit)
    legend_above(figure, panels[0], columns=5)
    return figure


def draw_fan(
    axes: Axes,
    found: Trajectory,
    k: int,
    rims: tuple[Points, Points],
    true: Points | None = None,
) -> None:
    """Draw one age of a fan: ribbon, rims, average and, if known, the true average behind."""
    younger, older = rims
    look: dict[str, Any] = {"color": MODEL_LIGHT, "label": "95% of people", "zorder": 1}
    draw_between(axes, younger, older, found.cells, **look)
    thin: dict[str, Any] = {"lw": 0.9, "zorder": 3}
    sigma = r"2 $\sigma_\tau$"
    draw_shape(axes, younger, found.cells, color=YOUNGER, label=f"{sigma} younger", **thin)
    draw_shape(axes, older, found.cells, color=OLDER, label=f"{sigma} older", **thin)
    if true is not None:
        look = {"color": TRUTH, "lw": 4, "alpha": 0.4, "zorder": 2}
        draw_shape(axes, true, found.cells, label="true average", **look)
    draw_shape(axes, found.points[k], found.cells, color=MODEL, lw=1.4, label="average", zorder=4)


def _fan_in_space(model: PRISM) -> Figure:
    """Two views of a whole shape two spreads behind, average, and two spreads ahead.

    Surfaces are moved in time as a whole: each point by its own spread would tear them where
    people differ in more than tempo.
    """
    found = trajectory(model, ages_at(model, (0.5,)))
    width = 2 * tempo_spread(model, found.t)
    times = np.clip(found.t + np.concatenate([-width, width]), *model.ages)
    younger, older = model.mean_shapes(np.repeat(times[:, None], len(model.template), axis=1))
    shapes = [younger, found.points[0], older]
    names = [r"$2\,\sigma$ younger", "average", r"$2\,\sigma$ older"]
    views = views_of(3)
    colours = SPREAD_COLOURS, spread_scale(found.sigma_tau)
    figure = new_figure(6.4)
    panels = figure.subplots(len(views), len(shapes))
    for row, view in zip(panels, views, strict=True):
        for axes, shape, name in zip(row, shapes, names, strict=True):
            draw_values(axes, shape, model.cells, found.sigma_tau[0], colours, view)
            frame(axes, shapes, view)
            if view == views[0]:
                axes.set_title(f"age {age_text(model, found.t[0])}: {name}", loc="center")
        _name_view(row[0], view)
    scale_bar(panels[-1][0], model.length_unit)
    _spread_bar(model, figure, panels, colours[1], found.sigma_tau)
    return figure


@styled
def information_map(model: PRISM) -> Figure:
    """Colour the template by sigma_tau at three ages; grey where time cannot be read."""
    found = trajectory(model, ages_at(model, MAP_AGES))
    views = views_of(model.dimension)
    colours = SPREAD_COLOURS, spread_scale(found.sigma_tau)
    figure = new_figure(3.6 if len(views) == 1 else 6.4)
    panels = figure.subplots(len(views), len(found.t), squeeze=False)
    for row, view in zip(panels, views, strict=True):
        for axes, t, sigma_tau in zip(row, found.t, found.sigma_tau, strict=True):
            draw_values(axes, model.template, model.cells, sigma_tau, colours, view)
            frame(axes, [model.template], view)
            if view == views[0]:
                axes.set_title(f"age {age_text(model, t)}", loc="center")
        _name_view(row[0], view)
    scale_bar(panels[-1][0], model.length_unit)
    _spread_bar(model, figure, panels, colours[1], found.sigma_tau)
    return figure


def spread_scale(sigma_tau: Floats) -> LogNorm:
    """A logarithmic scale over the temporal spreads that can be read."""
    from matplotlib.colors import LogNorm

    finite = sigma_tau[np.isfinite(sigma_tau)]
    if not finite.size:
        return LogNorm(0.1, 1.0)
    low, high = np.quantile(finite, [0.02, 0.98])
    return LogNorm(low, max(high, 1.2 * low))


def _spread_bar(
    model: PRISM, figure: Figure, panels: np.ndarray, scale: LogNorm, sigma_tau: Floats
) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.lines import Line2D
    from matplotlib.ticker import LogLocator, NullFormatter

    bar = figure.colorbar(
        ScalarMappable(scale, SPREAD_COLOURS), ax=panels, extend="both", shrink=0.8, aspect=26
    )
    bar.set_label(labelled(r"temporal spread $\sigma_\tau$", model.time_unit), color=INK)
    bar.ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    bar.ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    bar.ax.yaxis.set_minor_formatter(NullFormatter())
    bar.outline.set_visible(False)  # type: ignore[operator]
    if not np.isfinite(sigma_tau).all():
        mark = Line2D([], [], color=UNREADABLE, lw=4.5)
        figure.legend([mark], ["time cannot be read here"], loc="outside lower center")


def _name_view(axes: Axes, view: View) -> None:
    if VIEW_NAMES[view]:
        axes.text(
            -0.04,
            0.5,
            VIEW_NAMES[view],
            transform=axes.transAxes,
            rotation=90,
            ha="right",
            va="center",
            color=SOFT_INK,
        )
