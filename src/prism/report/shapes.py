"""Shapes on paper: outlines in the plane, orthographic views of points and triangles in space."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from prism.report.style import INK, SOFT_INK, UNREADABLE, plain, real_unit
from prism.typing import Cells, Floats, Points

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

View = tuple[int, int]  # the axes of space that run right and up on paper
PLANE: View = (0, 1)
FRONT: View = (0, 2)
SIDE: View = (1, 2)
VIEW_NAMES = {PLANE: "", FRONT: "front view (x, z)", SIDE: "side view (y, z)"}
MARGIN = 0.06


def views_of(dimension: int) -> list[View]:
    """One view of a plane shape, two of a shape in space."""
    return [PLANE] if dimension == 2 else [FRONT, SIDE]


def edges_of(cells: Cells | None) -> Cells:
    """(E, 2) segments to draw: the cells themselves, or the rim of a set of triangles."""
    if cells is None or cells.shape[1] == 2:
        return np.empty((0, 2), dtype=int) if cells is None else cells
    sides = np.sort(np.concatenate([cells[:, [0, 1]], cells[:, [1, 2]], cells[:, [2, 0]]]), axis=1)
    unique, count = np.unique(sides, axis=0, return_counts=True)
    return unique[count == 1]


def paths_of(cells: Cells | None) -> list[np.ndarray]:
    """Rows of points to draw without lifting the pen: runs of segments that follow each other."""
    edges = edges_of(cells)
    if not len(edges):
        return []
    breaks = np.flatnonzero(edges[1:, 0] != edges[:-1, 1]) + 1
    return [np.append(run[:, 0], run[-1, 1]) for run in np.split(edges, breaks)]


def frame(axes: Axes, shapes: list[Points], view: View = PLANE) -> None:
    """Make room for all these shapes, equally scaled, without axes."""
    every = np.concatenate([shape.reshape(-1, shape.shape[-1]) for shape in shapes])[:, list(view)]
    low, high = np.nanmin(every, axis=0), np.nanmax(every, axis=0)
    margin = MARGIN * float((high - low).max() or 1.0)
    axes.set_xlim(low[0] - margin, high[0] + margin)
    axes.set_ylim(low[1] - margin, high[1] + margin)
    axes.set_aspect("equal")
    axes.axis("off")


def scale_bar(axes: Axes, unit: str) -> None:
    """Draw a bar of a round length below the shape; nothing where lengths have no unit."""
    if not real_unit(unit):
        return
    left, right = axes.get_xlim()
    bottom, top = axes.get_ylim()
    length = _round_down(0.3 * (right - left))
    y = bottom - 0.05 * (top - bottom)
    axes.plot([left, left + length], [y, y], color=INK, lw=1.6, clip_on=False)
    axes.annotate(
        f"{length:g} {plain(real_unit(unit))}",
        (left + length / 2, y),
        xytext=(0, -3),
        textcoords="offset points",
        ha="center",
        va="top",
        fontsize=8,
        color=SOFT_INK,
        annotation_clip=False,
    )


def _round_down(value: float) -> float:
    power = 10.0 ** np.floor(np.log10(value))
    return float(max(step for step in (1, 2, 5) if step * power <= value * (1 + 1e-9)) * power)


def draw_shape(
    axes: Axes, points: Points, cells: Cells | None, view: View = PLANE, **look: Any
) -> None:
    """Draw one shape in one colour: an outline in the plane, points in space or without cells.

    Args:
        axes: Where to draw.
        points: (M, n) positions; NaN = missing.
        cells: Segments or triangles, or None.
        view: Which axes of space to show.
        look: `color`, `lw`, `ls`, `label`, `zorder`, `alpha`.
    """
    from matplotlib.collections import LineCollection

    flat = points[:, list(view)]
    if cells is None or points.shape[1] == 3:
        size = 4.0 * look.pop("lw", 1.5)
        look.pop("ls", None)
        axes.scatter(flat[:, 0], flat[:, 1], s=size, linewidths=0, **look)
        return
    label = look.pop("label", None)
    lines = [flat[path] for path in paths_of(cells)]
    axes.add_collection(LineCollection(lines, capstyle="round", joinstyle="round", **look))
    sample = {name: look.get(name) for name in ("color", "lw", "ls", "alpha")}
    axes.plot([], [], label=label, **sample)  # type: ignore[arg-type]  # for the legend


def draw_between(
    axes: Axes, first: Points, second: Points, cells: Cells | None, view: View = PLANE, **look: Any
) -> None:
    """Fill what lies between two shapes: a ribbon along outlines, else a bar at every point."""
    from matplotlib.collections import LineCollection, PolyCollection

    a, b = first[:, list(view)], second[:, list(view)]
    colour = look.pop("color")
    label = look.pop("label", None)
    if cells is None or first.shape[1] == 3:
        bars = np.stack([a, b], axis=1)
        axes.add_collection(LineCollection(list(bars), color=colour, lw=1.2, **look))
    else:
        i, j = edges_of(cells).T
        ribbon = np.stack([a[i], a[j], b[j], b[i]], axis=1)
        axes.add_collection(PolyCollection(list(ribbon), color=colour, lw=0.6, **look))
    axes.fill([], [], color=colour, label=label)


def draw_boxes(
    axes: Axes, lower: Points, upper: Points, cells: Cells | None, view: View = PLANE, **look: Any
) -> None:
    """Fill the boxes [lower, upper] of every point, swept along the outline where there is one."""
    from matplotlib.collections import PolyCollection

    x0, y0, x1, y1 = *lower[:, list(view)].T, *upper[:, list(view)].T
    corners = np.stack([[x0, y0], [x1, y0], [x1, y1], [x0, y1]]).transpose(2, 0, 1)
    patches = [corners]
    if cells is not None and lower.shape[1] == 2:
        i, j = edges_of(cells).T
        for a, b in ((0, 1), (1, 2), (2, 3), (3, 0)):  # each side of the box, swept to the next
            sides = [corners[i, a], corners[i, b], corners[j, b], corners[j, a]]
            patches.append(np.stack(sides, axis=1))
    colour = look.pop("color")
    label = look.pop("label", None)
    everything = list(np.concatenate(patches))
    axes.add_collection(PolyCollection(everything, color=colour, lw=0.8, **look))
    axes.fill([], [], color=colour, label=label)


def draw_values(
    axes: Axes,
    points: Points,
    cells: Cells | None,
    values: Floats,
    colours: tuple[str, Normalize],
    view: View = PLANE,
) -> ScalarMappable:
    """Colour a shape by a value a point; grey where the value is not finite.

    Args:
        axes: Where to draw.
        points: (M, n) positions; NaN = missing, not drawn.
        cells: Segments or triangles, or None.
        values: (M,) value of every point.
        colours: Name of a colour map, and the scale of its values.
        view: Which axes of space to show.
    """
    from matplotlib.cm import ScalarMappable

    mappable = ScalarMappable(colours[1], colours[0])
    flat = points[:, list(view)]
    if cells is not None and cells.shape[1] == 3 and points.shape[1] == 3:
        _draw_triangles(axes, points, cells, values, mappable, view)
    elif cells is not None and len(edges_of(cells)):
        _draw_coloured_edges(axes, flat, edges_of(cells), values, mappable)
    else:
        depth = np.argsort(_depth(points, view))
        axes.scatter(*flat[depth].T, s=16, c=_paint(values[depth], mappable), linewidths=0)
    return mappable


def _paint(values: Floats, mappable: ScalarMappable) -> Floats:
    """RGBA of every value; grey where it is not finite."""
    from matplotlib.colors import to_rgba

    finite = np.isfinite(values)
    colours = mappable.to_rgba(np.where(finite, values, 1.0))
    return np.where(finite[:, None], colours, to_rgba(UNREADABLE))


def _draw_coloured_edges(
    axes: Axes, flat: Points, edges: Cells, values: Floats, mappable: ScalarMappable
) -> None:
    """Draw outlines; unreadable parts first, so that they do not cover the others."""
    from matplotlib.collections import LineCollection

    middle = values[edges].mean(axis=1)
    order = np.argsort(np.isfinite(middle), kind="stable")
    colours = _paint(middle[order], mappable)
    lines = LineCollection(list(flat[edges[order]]), colors=colours, lw=4.5, capstyle="round")
    axes.add_collection(lines)


def _depth(points: Points, view: View) -> Floats:
    """How near each point is to the reader; the front view looks along y, the side view along x."""
    if view == FRONT:
        return -points[:, 1]
    return points[:, 0] if view == SIDE else np.zeros(len(points))


def _draw_triangles(
    axes: Axes,
    points: Points,
    cells: Cells,
    values: Floats,
    mappable: ScalarMappable,
    view: View,
) -> None:
    """Draw triangles from far to near, darker where they turn away from the reader."""
    from matplotlib.collections import PolyCollection

    corners = points[cells]
    seen = ~np.isnan(corners).any(axis=(1, 2))
    corners, cells = corners[seen], cells[seen]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    facing = np.abs(normal[:, ({0, 1, 2} - set(view)).pop()])
    light = 0.6 + 0.4 * facing / np.maximum(np.linalg.norm(normal, axis=1), 1e-300)
    colours = _paint(values[cells].mean(axis=1), mappable)
    colours[:, :3] *= light[:, None]
    order = np.argsort(_depth(corners.mean(axis=1), view))
    flat = corners[order][..., list(view)]
    axes.add_collection(PolyCollection(list(flat), facecolors=colours[order], edgecolors="face"))
