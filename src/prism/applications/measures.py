"""What can be measured on a shape: `31:x`, `12-40`, `arm`, `arm:size`, `area`, `volume`.

PLACE, PLACE:MEASURE, or MEASURE alone for the whole shape. PLACE is a region, a point or `whole`;
MEASURE is `growth` (the default: how far it has moved along the average growth), `distance` (from
its place in the template), `x`, `y` or `z` (of its centre), and for regions and the whole `size`,
`length` (of a contour), `area` or `volume`. Two points, `12-40`, are measured by their distance.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from prism.applications.places import real_unit, region_of
from prism.errors import QueryError
from prism.metrics.extent import (
    contour_length,
    enclosed_area,
    enclosed_volume,
    is_closed,
    surface_area,
)
from prism.model import PRISM
from prism.typing import Cells, Floats, Shapes

WHOLE = "whole"
WORDS = {  # of every measure
    "growth": "movement along the average growth",
    "distance": "distance from the template",
    "x": "position along x",
    "y": "position along y",
    "z": "position along z",
    "size": "root mean square radius",
    "length": "length of the contour",
    "area": "area",
    "volume": "volume",
}
_POWERS = {"area": "²", "volume": "³"}
_OF_POINTS = ("growth", "distance", "x", "y", "z")
_REMEDY = "Write a region, a point (31 or 31:x), two points (12-40), or area, volume or length."

Function = Callable[[Shapes], Floats]


@dataclass(frozen=True)
class Measure:
    """A number read off a shape.

    Attributes:
        at: The text it was asked for by.
        label: What it is, in words, without its unit.
        unit: Its unit, e.g. "mm²"; empty where lengths have none.
        points: Indices of the points it is read off.
        of: (..., M, n) shapes -> (...) values, NaN where a point it needs is missing.
    """

    at: str
    label: str
    unit: str
    points: np.ndarray
    of: Function


@dataclass(frozen=True)
class _Place:
    words: str
    kind: Literal["point", "pair", "set"]
    points: np.ndarray


def measure_at(model: PRISM, at: str) -> Measure:
    """Read what is to be measured, in the grammar at the top of this module.

    Raises:
        QueryError: The text means nothing, or the model's shape does not allow it.
    """
    text = str(at).strip()
    where, name = _split(text, model.regions)
    place = _place(model, where)
    name = name or ("distance" if place.kind == "pair" else "growth")
    _check_name(name, place, model.dimension)
    unit = real_unit(model.length_unit)
    unit += _POWERS.get(name, "") if unit else ""
    if place.kind == "pair":
        words = f"distance between {place.words}"
        return Measure(text, words, unit, place.points, _between(place.points))
    if name in ("length", "area", "volume"):
        words, of = _extent(model, place, name)
    else:
        words, of = WORDS[name], _OF[name](model, place.points)
    label = words if where == WHOLE and name != "growth" else f"{place.words}: {words}"
    return Measure(text, label, unit, place.points, of)


def _split(text: str, regions: Mapping[str, np.ndarray]) -> tuple[str, str]:
    """Place and measure; a region's own name comes before all other readings."""
    if text in regions:
        return text, ""
    if text in WORDS:
        return WHOLE, text
    place, colon, name = text.rpartition(":")
    return (place.strip(), name.strip()) if colon else (text, "")


def _place(model: PRISM, text: str) -> _Place:
    if text in model.regions:
        return _Place(text, "set", model.regions[text])
    if text == WHOLE:
        return _Place("whole shape", "set", np.arange(len(model.template)))
    found = re.fullmatch(r"(\d{1,9})(?:\s*-\s*(\d{1,9}))?", text)
    points = np.array([int(p) for p in found.groups() if p] if found else [], dtype=int)
    if not points.size or points.max() >= len(model.template):
        names = f" and regions {', '.join(model.regions)}" if model.regions else ", no regions"
        raise QueryError(
            f"{text!r} is no place of the model {model.name!r}: it has points 0 to "
            f"{len(model.template) - 1}{names}.",
            _REMEDY,
        )
    if len(points) == 2:
        return _Place(f"points {points[0]} and {points[1]}", "pair", points)
    region = region_of(model.template, model.regions, int(points[0]))
    return _Place(f"point {text} ({region})" if region else f"point {text}", "point", points)


def _check_name(name: str, place: _Place, dimension: int) -> None:
    known = {"point": _OF_POINTS, "pair": ("distance",), "set": tuple(WORDS)}[place.kind]
    known = tuple(measure for measure in known if dimension == 3 or measure not in ("z", "volume"))
    if name not in known:
        raise QueryError(
            f"{name!r} cannot be measured of {place.words} in {dimension}D.",
            f"Choose one of {', '.join(known)}.",
        )


def _between(pair: np.ndarray) -> Function:
    return lambda y: np.linalg.norm(y[..., pair[0], :] - y[..., pair[1], :], axis=-1)


def _growth(model: PRISM, points: np.ndarray) -> Function:
    """Displacement along the average's way from the first to the last training age.

    With g_m that way at point m of a place of K points, sum_m d_m g_m / sqrt(K sum_m |g_m|^2): the
    average itself, come to the end, has moved by the root mean square of |g_m|.
    """
    ages = np.repeat(np.array(model.ages)[:, None], len(model.template), axis=1)
    first, last = model.mean_shapes(ages)[:, points]
    way, start = last - first, model.template[points]
    length = np.sqrt(len(points) * (way**2).sum())
    if not length > 1e-9 * float(np.ptp(model.template, axis=0).max()):
        raise QueryError(
            "the average does not move at this place: growth has no direction.",
            "Ask for :x, :y or :distance instead.",
        )
    return lambda y: ((y[..., points, :] - start) * way).sum(axis=(-2, -1)) / length


def _distance(model: PRISM, points: np.ndarray) -> Function:
    start = model.template[points].mean(axis=0)
    return lambda y: np.linalg.norm(y[..., points, :].mean(axis=-2) - start, axis=-1)


def _along(axis: int) -> Callable[[PRISM, np.ndarray], Function]:
    return lambda _, points: lambda y: y[..., points, axis].mean(axis=-1)


def _size(_: PRISM, points: np.ndarray) -> Function:
    def of(y: Shapes) -> Floats:
        part = y[..., points, :]
        away = part - part.mean(axis=-2, keepdims=True)
        return np.sqrt((away**2).sum(axis=-1).mean(axis=-1))

    return of


_OF: dict[str, Callable[[PRISM, np.ndarray], Function]] = {
    "growth": _growth,
    "distance": _distance,
    "x": _along(0),
    "y": _along(1),
    "z": _along(2),
    "size": _size,
}


def _extent(model: PRISM, place: _Place, name: str) -> tuple[str, Function]:
    """Words and function of a length, area or volume of the cells that lie in a place."""
    cells = np.empty((0, 2), dtype=int) if model.cells is None else model.cells
    cells = cells[np.isin(cells, place.points).all(axis=1)]
    lines, closed = cells.shape[1] == 2, is_closed(cells)
    if name == "length" and lines and len(cells):
        return WORDS[name], lambda y: contour_length(y, cells)
    if name == "area" and lines and closed and model.dimension == 2:
        return "enclosed area", lambda y: enclosed_area(y, cells)
    if name == "area" and not lines and len(cells):
        return "surface area", lambda y: surface_area(y, cells)
    if name == "volume" and not lines and closed:
        return "enclosed volume", lambda y: enclosed_volume(y, cells)
    raise _no_extent(name, place, cells)


def _no_extent(name: str, place: _Place, cells: Cells) -> QueryError:
    kind = "segments" if cells.shape[1] == 2 else "triangles"
    state = f"its {len(cells)} {kind} are not closed" if len(cells) else "no cells lie in it"
    if name == "length" and len(cells):
        state = "it is a surface"
    needs = {
        "length": "a contour of segments",
        "area": "a closed contour in the plane, or triangles",
        "volume": "triangles that close a surface in space, all turned the same way",
    }
    return QueryError(
        f"{name} of {place.words} cannot be measured: {state}. It needs {needs[name]}.",
        "Choose another measure, such as size, or another place.",
    )
