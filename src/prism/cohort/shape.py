"""One anatomy as it was delivered: a surface, a contour or landmarks, checked at birth."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from prism.cohort import checks
from prism.errors import CohortError
from prism.runs import fingerprint
from prism.typing import Cells, Points

AXES = ("", "LPS")
METRES = {
    **dict.fromkeys(("um", "µm", "micrometer", "micrometre", "micron", "microns"), 1e-6),
    **dict.fromkeys(("mm", "millimeter", "millimetre", "millimeters", "millimetres"), 1e-3),
    **dict.fromkeys(("cm", "centimeter", "centimetre", "centimeters", "centimetres"), 1e-2),
    **dict.fromkeys(("m", "meter", "metre", "meters", "metres"), 1.0),
    **dict.fromkeys(("in", "inch", "inches"), 0.0254),
}


@dataclass(frozen=True)
class Shape:
    """One shape of one visit, before correspondence.

    Attributes:
        points: (V, n) positions, finite; a missing landmark is NaN in every coordinate.
        cells: (K, 3) triangles or (K, 2) segments over the points; None for landmarks.
        length_unit: Unit of the points, e.g. "mm"; empty when nobody stated it.
        axes: "LPS" when the axes are known to run to Left, Posterior, Superior; else empty.
        names: (V,) names of landmarks, or none.
        repairs: What was changed when the shape was read, one sentence each.
    """

    points: Points
    cells: Cells | None = None
    length_unit: str = ""
    axes: str = ""
    names: tuple[str, ...] = ()
    repairs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check sizes, indices and finiteness."""
        set_ = object.__setattr__
        set_(self, "points", checks.as_reals("points", self.points))
        _check_points(self.points, missing=self.cells is None)
        if self.cells is not None:
            set_(self, "cells", checks.as_indices("cells", self.cells))
            checks.check_cells(self.cells, len(self.points))
        if self.axes not in AXES:
            what = f"axes must be LPS, or empty where unknown. Got {self.axes!r}."
            raise CohortError(what, "Turn the points to LPS: from RAS, negate x and y.")
        if self.names and len(self.names) != len(self.points):
            what = f"{len(self.names)} names for {len(self.points)} points."
            raise CohortError(what, "Give every landmark a name, or none.")

    @property
    def dimension(self) -> int:
        """Space dimension n."""
        return self.points.shape[-1]

    @property
    def kind(self) -> Literal["surface", "contour", "line", "landmarks"]:
        """What the cells make of the points; a line is a set of segments in space."""
        if self.cells is None:
            return "landmarks"
        if self.cells.shape[1] == 3:
            return "surface"
        return "contour" if self.dimension == 2 else "line"

    @property
    def used(self) -> Points:
        """The points that are there: those of a cell, or the landmarks that were seen."""
        if self.cells is None:
            return self.points[np.isfinite(self.points[:, 0])]
        return self.points[np.unique(self.cells)]

    @property
    def box(self) -> Points:
        """(2, n) lowest and highest corner of the bounding box of the used points."""
        used = self.used
        return np.stack([used.min(axis=0), used.max(axis=0)])

    @property
    def size(self) -> float:
        """Diagonal of the bounding box, in the length unit."""
        low, high = self.box
        return float(np.linalg.norm(high - low))

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits of the geometry: the same shape, the same digits."""
        cells = np.empty((0, 2), dtype=np.int64) if self.cells is None else self.cells
        return fingerprint(self.points, cells, self.length_unit, self.axes)

    def in_unit(self, unit: str) -> Shape:
        """Return the shape in another length unit; a shape without a unit is taken to be in it.

        Raises:
            CohortError: One of the two units is not a known length.
        """
        if unit in ("", self.length_unit):
            return self
        if not self.length_unit:
            return replace(self, length_unit=unit)
        factor = _metres(self.length_unit) / _metres(unit)
        return replace(self, points=factor * self.points, length_unit=unit)


def _metres(unit: str) -> float:
    if unit.strip().lower() not in METRES:
        raise CohortError(
            f"length unit {unit!r} is not known, so it cannot be converted.",
            "Write um, mm, cm, m or in as length_unit in cohort.toml.",
        )
    return METRES[unit.strip().lower()]


def _check_points(points: Points, missing: bool) -> None:
    """There are points, in two or three dimensions, finite, or missing as a whole."""
    if points.ndim != 2 or points.shape[-1] not in (2, 3) or not len(points):
        raise CohortError(
            f"points must have shape (V, 2) or (V, 3) with V > 0. Got {points.shape}.",
            "Store one row of coordinates a point.",
        )
    lost = ~np.isfinite(points)
    gone = np.isnan(points).all(axis=-1) if missing else np.zeros(len(points), dtype=bool)
    for row in np.flatnonzero(lost.any(axis=-1) & ~gone):
        raise CohortError(
            f"point {row} is not finite: {points[row].tolist()}.",
            "Remove it with its cells; a missing landmark is NaN in every coordinate.",
        )
    if gone.all():
        raise CohortError("every landmark is missing.", "Remove the visit, or give its shape.")
