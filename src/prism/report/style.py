"""One look for every figure: colours that colour-blind readers can tell apart, fonts, units."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from io import BytesIO
from math import ceil, log10
from typing import TYPE_CHECKING, Any, ParamSpec

from prism.applications.places import real_unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from prism.model import PRISM

P = ParamSpec("P")

INK = "#1f2933"
SOFT_INK = "#66727f"
MODEL, MODEL_LIGHT = "#cc3311", "#f6cfc6"  # what PRISM says
YOUNGER, OLDER = "#ee8833", "#882255"
TRUTH, TRUTH_LIGHT = "#0077bb", "#bcdcf0"  # what is true or was observed
OTHER, OTHER_LIGHT = "#8a939c", "#dfe3e7"  # everything to compare with
UNREADABLE = "#d9dde1"
REGION_COLOURS = ("#009988", "#ee7733", "#aa3377", "#33bbee")
SPREAD_COLOURS = "viridis"
STRANGE_COLOURS = "YlOrRd"

WIDTH = 9.6  # inches; at 100 dots an inch the width of the page's column
DPI = 200  # twice the page's resolution, for sharp screens

STYLE: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.5,
    "text.color": INK,
    "axes.edgecolor": "#aab2ba",
    "axes.labelcolor": INK,
    "axes.labelsize": 9.5,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 8,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#eceff2",
    "grid.linewidth": 0.8,
    "xtick.color": SOFT_INK,
    "ytick.color": SOFT_INK,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "lines.solid_capstyle": "round",
}


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Draw in the house style and leave matplotlib's settings as they were."""

    @wraps(draw)
    def inside(*args: P.args, **kwargs: P.kwargs) -> Figure:
        from matplotlib import rc_context

        with rc_context(STYLE):
            return draw(*args, **kwargs)

    return inside


def new_figure(height: float, width: float = WIDTH) -> Figure:
    """Return an empty figure that no window system knows of."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.08)  # type: ignore[union-attr]
    return figure


def png(figure: Figure, dpi: int = DPI) -> bytes:
    """Return the figure as PNG; the same figure gives the same bytes."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    buffer = BytesIO()
    with rc_context(STYLE):
        figure.set_dpi(dpi)
        FigureCanvasAgg(figure).print_png(buffer, metadata={"Software": "prism"})
    return buffer.getvalue()


def svg(figure: Figure) -> bytes:
    """Return the figure as SVG, its text as outlines; the same figure gives the same bytes."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    buffer = BytesIO()
    with rc_context({**STYLE, "svg.hashsalt": "prism", "svg.fonttype": "path"}):
        FigureCanvasSVG(figure).print_svg(buffer, metadata={"Date": None, "Creator": "prism"})
    return buffer.getvalue()


def labelled(text: str, unit: str) -> str:
    """`age` in months reads `age (months)`; without a unit, `age`."""
    return f"{text} ({plain(real_unit(unit))})" if real_unit(unit) else text


def valued(value: float, unit: str) -> str:
    """`12` in months reads `12 months`; without a unit, `12`."""
    return f"{value:.3g} {plain(real_unit(unit))}".strip()


def correlation(r: float) -> str:
    """`= 0.9876`, and never `= 1.0000` for what is not one."""
    return "> 0.9999" if 0.99995 < r < 1 else f"= {r:.4f}"


def age_decimals(model: PRISM) -> int:
    """Decimals that tell apart a hundredth of the training ages, and no more."""
    first, last = model.ages
    return max(0, ceil(-log10((last - first) / 50)))


def bare_age(model: PRISM, t: float) -> str:
    """An age with as many decimals as the training ages need, without its unit."""
    shown = f"{t:.{age_decimals(model)}f}"
    shown = shown.rstrip("0").rstrip(".") if "." in shown else shown
    return "0" if shown == "-0" else shown


def age_text(model: PRISM, t: float) -> str:
    """An age with its unit, for a figure."""
    return f"{bare_age(model, t)} {plain(real_unit(model.time_unit))}".strip()


def plain(text: str) -> str:
    """Escape what matplotlib would read as mathematics."""
    return text.replace("$", r"\$")


def legend_above(figure: Figure, axes: Axes, columns: int = 4) -> None:
    """Put the legend of one panel above the whole figure."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=columns)
