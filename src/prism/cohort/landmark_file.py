"""Landmarks of 3D Slicer (.mrk.json), whichever axes they are stored in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from prism.cohort.files import read_text
from prism.cohort.raw import Raw, broken, require_file
from prism.errors import CohortError
from prism.typing import Points

_SCHEMA = (
    "https://raw.githubusercontent.com/slicer/slicer/master/Modules/Loadable/Markups/Resources/"
    "Schema/markups-schema-v1.0.3.json#"
)
_MISSING = ("undefined", "missing")


def read_landmarks(path: Path) -> Raw:
    """Read the control points of the one list in a file; undefined positions are NaN."""
    require_file(path)
    markup = _markup(read_text(path))
    controls = markup.get("controlPoints")
    if not isinstance(controls, list) or not controls:
        raise broken("the list of landmarks is empty")
    points = np.array([_position(point, i) for i, point in enumerate(controls, 1)])
    names = tuple(str(point.get("label", "")) for point in controls)
    unit = markup.get("coordinateUnits", "mm")
    unit = unit[0] if isinstance(unit, list) and unit else unit
    return Raw(points, None, str(unit), _axes(markup), names)


def write_landmarks(
    path: Path, points: Points, names: tuple[str, ...], length_unit: str, axes: str
) -> None:
    """Write landmarks as 3D Slicer reads them; missing ones as undefined."""
    if points.shape[1] != 3:
        raise CohortError("landmarks in the plane cannot be written.", "Write them as .vtp.")
    names = names or tuple(str(i + 1) for i in range(len(points)))
    controls = [_control(i, name, p) for i, (name, p) in enumerate(zip(names, points, strict=True))]
    markup: dict[str, Any] = {"type": "Fiducial", "coordinateSystem": axes or "LPS"}
    if length_unit:
        markup["coordinateUnits"] = length_unit
    content = {"@schema": _SCHEMA, "markups": [{**markup, "controlPoints": controls}]}
    path.write_text(json.dumps(content, indent=2, allow_nan=False), encoding="utf-8")


def _markup(text: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise broken(f"not valid JSON: {error}") from error
    markups = content.get("markups") if isinstance(content, dict) else None
    if not isinstance(markups, list) or len(markups) != 1 or not isinstance(markups[0], dict):
        number = len(markups) if isinstance(markups, list) else 0
        raise CohortError(
            f"the file must hold one list of landmarks. Found {number}.",
            "Save each list of landmarks from 3D Slicer into a file of its own.",
        )
    return markups[0]


def _axes(markup: dict[str, Any]) -> str:
    axes = str(markup.get("coordinateSystem", "LPS")).upper()
    if axes not in ("LPS", "RAS"):
        raise CohortError(
            f"coordinateSystem must be LPS or RAS. Got {axes!r}.", "Correct it in the file."
        )
    return axes


def _position(point: Any, number: int) -> list[float]:
    if not isinstance(point, dict):
        raise broken(f"landmark {number} is not understood")
    if point.get("positionStatus", "defined") in _MISSING:
        return [np.nan] * 3
    position = point.get("position")
    right = isinstance(position, list) and len(position) == 3
    if not right or not all(isinstance(x, (int, float)) for x in position):  # type: ignore[union-attr]
        raise broken(f"landmark {number} has no position of three numbers")
    return [float(x) for x in position]  # type: ignore[union-attr]


def _control(index: int, name: str, position: Points) -> dict[str, Any]:
    entry: dict[str, Any] = {"id": str(index + 1), "label": name}
    if np.isfinite(position).all():
        return {**entry, "position": position.tolist(), "positionStatus": "defined"}
    return {**entry, "positionStatus": "undefined"}
