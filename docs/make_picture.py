"""Make docs/picture.png, the picture of the README, from a Starman model.

    python docs/make_picture.py MODEL [PICTURE]

The model must have been trained on `prism.simulate.starman("global", subjects=1000, seed=0)`; the
truth it is drawn against and the visits on the right are those of 200 unseen subjects.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import prism
from prism.report.bands import age_grid, fill_band, outline_band
from prism.report.fans import fan_shapes
from prism.report.shapes import draw_between, draw_shape, frame
from prism.report.style import INK, MODEL, MODEL_LIGHT, OLDER, SOFT_INK, STYLE, TRUTH, YOUNGER, png
from prism.report.visits import draw_times

AGES = (0.1, 0.5, 0.8, 1.0)
PLACES = np.array([[0.0, 0.0], [4.7, 0.0], [0.0, -4.75], [4.7, -4.75]])  # where the men stand
SIZE = (16.0, 6.6)
HEADING: dict[str, Any] = {"fontsize": 15, "pad": 30, "fontweight": "bold"}
LOOK = {
    **STYLE,
    "font.size": 12.5,
    "axes.labelsize": 13,
    "xtick.labelsize": 11.5,
    "ytick.labelsize": 11.5,
    "legend.fontsize": 12,
}


def main(folder: Path, picture: Path) -> None:
    """Draw the three panels and write the picture."""
    model = prism.PRISM.load(folder)
    study = prism.simulate.starman("global", subjects=1000, test_subjects=200, seed=0)
    test = study.of_split("test")
    with rc_context(LOOK):
        figure = Figure(figsize=SIZE, layout="constrained")
        figure.get_layout_engine().set(w_pad=0.22, h_pad=0.16)  # type: ignore[union-attr]
        grid = figure.add_gridspec(1, 3, width_ratios=[1.22, 1, 1])
        left, middle, right = (figure.add_subplot(grid[0, k]) for k in range(3))
        draw_growth(left, model)
        draw_spread(middle, model, test.truth)
        draw_visits(right, model, test.correspondence[:400])
        picture.write_bytes(png(figure, 100))


def heading(axes: Axes, text: str, below: str) -> None:
    """A bold line and a quiet one above a panel."""
    axes.set_title(text, loc="left", **HEADING)
    look: dict[str, Any] = {"transform": axes.transAxes, "color": SOFT_INK, "fontsize": 12.5}
    axes.text(0, 1.025, below, va="bottom", **look)


def draw_growth(axes: Axes, model: prism.PRISM) -> None:
    """The average man at three ages between the men two temporal spreads younger and older."""
    found = prism.trajectory(model, np.array(AGES))
    younger, older = fan_shapes(model, found)
    shift = PLACES[:, None]
    mean, younger, older = found.points + shift, younger + shift, older + shift
    for k, t in enumerate(AGES):
        x, y = PLACES[k]
        draw_between(axes, younger[k], older[k], model.cells, color=MODEL_LIGHT, zorder=1)
        for rim, colour in ((younger[k], YOUNGER), (older[k], OLDER)):
            draw_shape(axes, rim, model.cells, color=colour, lw=1.3, zorder=2)
        draw_shape(axes, mean[k], model.cells, color=MODEL, lw=2.6, zorder=3)
        axes.text(x, y - 1.98, f"age {t:g}", ha="center", va="top", color=SOFT_INK)
    frame(axes, [mean, younger, older, PLACES - np.array([0, 2.4])])
    axes.set_anchor("N")
    for name, colour in (("younger", YOUNGER), ("average", MODEL), ("older", OLDER)):
        axes.plot([], [], color=colour, lw=2.4, label=name)
    look: dict[str, Any] = {"ncols": 3, "columnspacing": 1.4, "handlelength": 1.4}
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 0.02), **look)
    heading(axes, "What is normal for an age", "average shape, and two spreads younger and older")


def draw_spread(axes: Axes, model: prism.PRISM, truth: prism.Truth) -> None:
    """The temporal spread at the hand against the truth."""
    t = age_grid(model)
    sigma_tau = prism.trajectory(model, t).sigma_tau[:, truth.landmarks[0]]
    true = np.interp(t, truth.t_grid, truth.sigma_tau[:, 0])
    fill_band(axes, t, t, true, TRUTH, "truth")
    outline_band(axes, t, t, sigma_tau, MODEL, "PRISM")
    axes.plot(t, t, color=INK, lw=1, ls=(0, (4, 3)))
    axes.set_xlabel("age $t$")
    axes.set_ylabel(r"intrinsic time at the hand, $t \pm 2\,\sigma_\tau$")
    axes.legend(loc="upper left")
    heading(axes, "How far people differ", "learned spread against the truth")


def draw_visits(axes: Axes, model: prism.PRISM, cohort: prism.Correspondence) -> None:
    """How old unseen visits look."""
    draw_times(axes, model, prism.intrinsic_time(model, cohort))
    heading(axes, "How old one looks", "unseen visits in the population's band")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    target = sys.argv[2] if len(sys.argv) == 3 else Path(__file__).parent / "picture.png"
    main(Path(sys.argv[1]), Path(target))
