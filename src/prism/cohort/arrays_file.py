"""correspondence.npz and truth/truth.npz: the arrays of a cohort."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from prism.cohort import checks
from prism.cohort.files import naming, read_arrays, write_arrays
from prism.cohort.settings_file import FILE as SETTINGS
from prism.cohort.settings_file import Settings
from prism.cohort.values import Correspondence, Truth, Visits
from prism.errors import CohortError

POINTS = "correspondence.npz"
TRUTH = "truth/truth.npz"
ENTRIES = ("points", "template", "cells")


def read_correspondence(folder: Path, visits: Visits, settings: Settings) -> Correspondence | None:
    """Read correspondence.npz, if there is one, and give it the cohort's visits and units."""
    path = folder / POINTS
    if not path.exists():
        return None
    arrays = read_arrays(path)
    with naming(path):
        _require("points", arrays)
        shapes = Correspondence(
            arrays["points"],
            visits,
            arrays.get("template"),  # type: ignore[arg-type]  # None: the mean shape
            arrays.get("cells"),
            time_unit=settings.time_unit,
            length_unit=settings.length_unit,
            name=settings.name,
        )
        _check_dimension(shapes, settings)
    with naming(folder / SETTINGS):
        return replace(shapes, regions=settings.regions) if settings.regions else shapes


def write_correspondence(correspondence: Correspondence, folder: Path) -> None:
    """Write correspondence.npz; the template is always stored, cells where there are any."""
    entries = {name: getattr(correspondence, name) for name in ENTRIES}
    write_arrays(folder / POINTS, {k: array for k, array in entries.items() if array is not None})


def read_truth(folder: Path) -> Truth | None:
    """Read truth/truth.npz, if there is one."""
    path = folder / TRUTH
    if not path.exists():
        return None
    arrays = read_arrays(path)
    with naming(path):
        for name in checks.TRUTH_AXES:
            if name != "abnormal":
                _require(name, arrays)
        known = {f.name: _truth_entry(f.name, arrays) for f in fields(Truth) if f.name in arrays}
        return Truth(**known)


def write_truth(truth: Truth, folder: Path) -> None:
    """Write truth/truth.npz."""
    (folder / TRUTH).parent.mkdir(exist_ok=True)
    write_arrays(folder / TRUTH, truth.arrays())


def _truth_entry(name: str, arrays: dict[str, np.ndarray]) -> Any:
    """Give one truth array its type: text, indices, truth values or real numbers."""
    array = arrays[name]
    if name == "landmarks":
        return checks.as_indices(name, array)
    kind = {"regions": "U", "abnormal": "b"}.get(name)
    if kind is None:
        return checks.as_reals(name, array)
    if array.dtype.kind != kind:
        expected = "text" if kind == "U" else "True or False"
        raise CohortError(
            f"{name} must hold {expected}. Got data type {array.dtype}.",
            f"Store {name} as an array of {expected}.",
        )
    return array


def _require(name: str, arrays: dict[str, np.ndarray]) -> None:
    if name not in arrays:
        raise CohortError(
            f"array {name} is missing. Found: {', '.join(arrays) or 'none'}.",
            f"Store it under the name {name}.",
        )


def _check_dimension(shapes: Correspondence, settings: Settings) -> None:
    if settings.dimension not in (None, shapes.dimension):
        raise CohortError(
            f"points have dimension {shapes.dimension}, "
            f"but cohort.toml says dimension = {settings.dimension}.",
            "Correct cohort.toml, or store points of that dimension.",
        )
