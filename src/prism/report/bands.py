"""How far healthy people differ in time: bands of sigma_tau against age at a few places."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from prism.applications import Trajectory, trajectory
from prism.cohort import Truth
from prism.fisher import spread_of
from prism.model import PRISM
from prism.report.shapes import draw_shape, frame, views_of
from prism.report.style import (
    INK,
    MODEL,
    MODEL_LIGHT,
    OTHER,
    TRUTH,
    TRUTH_LIGHT,
    labelled,
    legend_above,
    new_figure,
    plain,
    styled,
)
from prism.typing import Floats, Times

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

AGES = 61
PLACES = 3
APART = 0.35  # least distance between chosen places, as a share of the shape's extent
LETTERS = "ABCD"
Place = tuple[int, str]  # template point, name


def age_grid(model: PRISM, count: int = AGES) -> Times:
    """Ages from the first to the last the model was trained on."""
    return np.linspace(*model.ages, count)


def places_of(model: PRISM, truth: Truth | None) -> list[Place]:
    """The truth's landmarks, or a few informative template points far from each other."""
    if truth is not None:
        names = [plain(name) for name in truth.regions.tolist()]
        return [(int(m), name) for m, name in zip(truth.landmarks, names, strict=True)][:PLACES]
    sigma_tau = np.median(model.spread(age_grid(model, 9)), axis=0)
    template = model.template
    least = APART * float(np.ptp(template, axis=0).max())
    chosen: list[int] = []
    for m in np.argsort(sigma_tau, kind="stable").tolist():
        gaps = [np.linalg.norm(template[m] - template[other]) for other in chosen]
        if len(chosen) < PLACES and min(gaps, default=np.inf) >= least and sigma_tau[m] < np.inf:
            chosen.append(m)
    return [(m, f"point {m}") for m in chosen or [int(np.argmin(sigma_tau))]]


@styled
def spread_bands(
    model: PRISM, truth: Truth | None = None, found: Trajectory | None = None
) -> Figure:
    """Draw t +- 2 sigma_tau against t at a few places; the truth, if known, behind.

    Args:
        model: A trained model.
        truth: What a simulated cohort knows about itself.
        found: The trajectory over `age_grid(model)`, if it was computed before.
    """
    found = found or trajectory(model, age_grid(model))
    places = places_of(model, truth)
    figure, panels = _panels(model, places)
    for r, (axes, (m, name)) in enumerate(zip(panels, places, strict=True)):
        if truth is not None:
            true = np.interp(found.t, truth.t_grid, truth.sigma_tau[:, r])
            fill_band(axes, found.t, found.t, true, TRUTH, "truth")
        draw = fill_band if truth is None else outline_band
        draw(axes, found.t, found.t, found.sigma_tau[:, m], MODEL, "PRISM")
        axes.plot(found.t, found.t, color=INK, lw=0.9, ls=(0, (4, 3)), label="average pace")
        axes.set_title(f"{LETTERS[r]}   {name}")
    _finish(model, figure, panels, r"intrinsic time, $t \pm 2\,\sigma_\tau$")
    return figure


@styled
def information_ablation(
    model: PRISM, truth: Truth | None = None, found: Trajectory | None = None
) -> Figure:
    """Draw +- 2 sigma_tau from I_mu and from I_full, around the average pace.

    Args:
        model: A trained model.
        truth: What a simulated cohort knows about itself.
        found: The trajectory over `age_grid(model)`, if it was computed before.
    """
    found = found or trajectory(model, age_grid(model))
    places = places_of(model, truth)
    figure, panels = _panels(model, places)
    full = np.where(np.isfinite(found.sigma_tau), np.asarray(spread_of(found.info_full)), np.inf)
    mean = np.where(np.isfinite(found.sigma_tau), np.asarray(spread_of(found.info)), np.inf)
    for r, (axes, (m, name)) in enumerate(zip(panels, places, strict=True)):
        if truth is not None:
            true = np.interp(found.t, truth.t_grid, truth.sigma_tau[:, r])
            fill_band(axes, found.t, 0 * found.t, true, TRUTH, "truth")
        outline_band(axes, found.t, 0 * found.t, full[:, m], OTHER, r"from $I_\mathrm{full}$")
        outline_band(axes, found.t, 0 * found.t, mean[:, m], MODEL, r"from $I_\mu$ (PRISM)")
        axes.axhline(0, color=INK, lw=0.9, ls=(0, (4, 3)), label="average pace")
        axes.set_title(f"{LETTERS[r]}   {name}")
    _finish(model, figure, panels, r"intrinsic time minus age, $\pm 2\,\sigma_\tau$")
    return figure


def fill_band(
    axes: Axes, t: Times, centre: Times, sigma: Floats, colour: str, label: str | None = None
) -> None:
    """Fill centre +- 2 sigma and draw its rims; nothing where sigma is infinite."""
    light = {TRUTH: TRUTH_LIGHT, MODEL: MODEL_LIGHT}.get(colour, colour)
    low, high = _rims(centre, sigma)
    axes.fill_between(t, low, high, color=light, lw=0, label=label)
    for rim in (low, high):
        axes.plot(t, rim, color=colour, lw=1.2, alpha=0.6)


def outline_band(
    axes: Axes, t: Times, centre: Times, sigma: Floats, colour: str, label: str | None = None
) -> None:
    """Draw the two rims centre +- 2 sigma."""
    low, high = _rims(centre, sigma)
    axes.plot(t, low, color=colour, lw=1.8, label=label)
    axes.plot(t, high, color=colour, lw=1.8)


def _rims(centre: Times, sigma: Floats) -> tuple[Times, Times]:
    width = np.where(np.isfinite(sigma), 2 * sigma, np.nan)
    return centre - width, centre + width


def _panels(model: PRISM, places: list[Place]) -> tuple[Figure, list[Axes]]:
    """A locator of the places and one panel each, on one vertical scale."""
    figure = new_figure(3.4)
    ratios = [0.8 if len(places) < 3 else 0.95, *[1.5] * len(places)]
    grid = figure.add_gridspec(1, len(places) + 1, width_ratios=ratios)
    _draw_locator(figure.add_subplot(grid[0, 0]), model, places)
    first = figure.add_subplot(grid[0, 1])
    rest = [figure.add_subplot(grid[0, k + 2], sharey=first) for k in range(len(places) - 1)]
    for axes in rest:
        axes.tick_params(labelleft=False)
    return figure, [first, *rest]


def _draw_locator(axes: Axes, model: PRISM, places: list[Place]) -> None:
    view = views_of(model.dimension)[0]
    draw_shape(axes, model.template, model.cells, view, color="#b4bcc4", lw=1.3)
    frame(axes, [model.template], view)
    for letter, (m, _) in zip(LETTERS, places, strict=False):
        x, y = model.template[m, list(view)]
        axes.plot(x, y, "o", color=MODEL, ms=12, mec="white", mew=1, zorder=5, clip_on=False)
        look = {"color": "white", "fontsize": 7.5, "fontweight": "bold", "zorder": 6}
        axes.text(x, y, letter, ha="center", va="center_baseline", **look)


def _finish(model: PRISM, figure: Figure, panels: list[Axes], y_label: str) -> None:
    for axes in panels:
        axes.set_xlabel(labelled("age $t$", model.time_unit))
        axes.margins(x=0.01)
    panels[0].set_ylabel(labelled(y_label, model.time_unit))
    legend_above(figure, panels[0])
