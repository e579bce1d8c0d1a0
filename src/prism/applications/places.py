"""Places of a template in words: its named regions, its points, their unit."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from prism.typing import Points

NEAR = 0.25  # of the template's extent: farther from a region is not near it
NOTHING = 1e-9  # of the template's extent: nearer to zero is rounding


def real_unit(unit: str) -> str:
    """Return the unit, or nothing where the cohort has none worth writing."""
    return "" if unit.strip().lower() in ("", "unit", "units") else unit.strip()


def region_of(template: Points, regions: Mapping[str, np.ndarray], point: int) -> str:
    """Name of the smallest region that holds a point, `near` the nearest one, or nothing.

    Args:
        template: (M, n) positions.
        regions: Name -> indices of its points.
        point: Index of a point.
    """
    holding = [name for name, points in regions.items() if point in points]
    if holding:
        return min(holding, key=lambda name: len(regions[name]))
    away = {
        name: float(np.linalg.norm(template[points] - template[point], axis=1).min())
        for name, points in regions.items()
    }
    nearest = min(away, key=lambda name: away[name], default="")
    extent = float(np.ptp(template, axis=0).max())
    return f"near {nearest}" if nearest and away[nearest] <= NEAR * extent else ""


def place_in_words(
    template: Points, regions: Mapping[str, np.ndarray], point: int, length_unit: str
) -> str:
    """Say where a point lies, e.g. `arm, point 31 at (1.6, 0.64) mm`.

    Args:
        template: (M, n) positions.
        regions: Name -> indices of its points; may be empty.
        point: Index of the point.
        length_unit: Unit of the template.
    """
    nothing = NOTHING * float(np.ptp(template, axis=0).max())
    position = ", ".join(f"{x if abs(x) > nothing else 0.0:.3g}" for x in template[point])
    where = f"({position}) {real_unit(length_unit)}".rstrip()
    region = region_of(template, regions, point)
    return f"{region}, point {point} at {where}" if region else f"point {point} at template {where}"
