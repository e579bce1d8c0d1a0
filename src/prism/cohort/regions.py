"""Named regions of a shape: each a name and the points that belong to it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from prism.cohort.checks import as_indices
from prism.errors import CohortError

_NUMBERS = re.compile(r"[\d\s-]+")
EXAMPLE = "Write a name and point indices, such as arm = [30, 31, 32] under [regions]."


def as_regions(value: Any, count: int | None = None) -> dict[str, np.ndarray]:
    """Return regions as name -> sorted point indices that cannot be written to.

    Args:
        value: A table of names, each with a list of point indices or one index.
        count: How many points there are; None leaves the indices' upper end unchecked.

    Raises:
        CohortError: Which region is wrong, and in what.
    """
    if not isinstance(value, Mapping):
        raise CohortError(f"regions must be a table of names. Got {type(value).__name__}.", EXAMPLE)
    regions = {_name(name): _points(name, points) for name, points in value.items()}
    for name, points in regions.items():
        if count is not None and points[-1] >= count:
            raise CohortError(
                f"region {name!r} names point {points[-1]}, but there are points 0 to {count - 1}.",
                "Count points from 0.",
            )
    return regions


def _name(name: Any) -> str:
    """A name that can be printed and cannot be taken for a point's number."""
    if not isinstance(name, str) or not name.isprintable() or name != name.strip() or not name:
        raise CohortError(
            f"a region's name must be printable text without spaces at its ends. Got {name!r}.",
            "Rename the region.",
        )
    if _NUMBERS.fullmatch(name):
        raise CohortError(
            f"region {name!r} has a number for a name: it would be taken for a point.",
            "Give it a name with a letter in it.",
        )
    return name


def _points(name: str, value: Any) -> np.ndarray:
    """Indices of a region: whole numbers from 0, at least one, each once and in order."""
    what = f"region {name!r}"
    try:
        points = np.unique(as_indices(what, np.atleast_1d(np.asarray(value))))
    except ValueError:
        raise CohortError(f"{what} must be one list of point indices.", EXAMPLE) from None
    if np.ndim(value) > 1 or not points.size:
        found = "none" if not points.size else f"an array of shape {np.shape(value)}"
        raise CohortError(f"{what} must be a list of point indices. Got {found}.", EXAMPLE)
    if points[0] < 0:
        raise CohortError(f"{what} names point {points[0]}.", "Count points from 0.")
    points.setflags(write=False)
    return points
