"""Shape and SDFSamples: checked at birth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from prism.cohort import SDFSamples, Shape, read_samples, write_samples
from prism.errors import CohortError

CORNERS = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"points": np.zeros((0, 3))}, "V > 0"),
        ({"points": np.zeros((3, 4))}, "V, 3"),
        ({"points": [[0, 0, np.inf]]}, "point 0 is not finite"),
        ({"points": [[0, 0, np.nan], [1, 2, 3]]}, "point 0 is not finite"),
        ({"points": [[np.nan] * 3]}, "every landmark is missing"),
        ({"points": [[np.nan] * 3, [0, 0, 0]], "cells": [[0, 1]]}, "point 0 is not finite"),
        ({"points": CORNERS, "cells": [[0, 1, 4]]}, "points 0 to 4"),
        ({"points": CORNERS, "axes": "RAS"}, "axes must be LPS"),
        ({"points": CORNERS, "names": ("a",)}, "1 names for 4 points"),
    ],
)
def test_what_does_not_hold_together_is_refused(parts: dict[str, Any], message: str) -> None:
    with pytest.raises(CohortError, match=message):
        Shape(**parts)


def test_size_counts_used_points_only() -> None:
    points = np.concatenate([CORNERS, [[100.0, 0, 0]]])
    assert Shape(points, [[0, 1, 2], [0, 1, 3]]).size == pytest.approx(3**0.5)
    assert Shape(points).size > 99


def _samples(**changed: Any) -> SDFSamples:
    parts = {
        "surface": np.zeros((4, 3)),
        "normals": np.ones((4, 3)),
        "points": np.arange(6.0).reshape(2, 3),
        "distance": [0.5, -0.5],
        "near": 1,
        "length_unit": "mm",
    }
    return SDFSamples(**{**parts, **changed})


@pytest.mark.parametrize(
    "changed",
    [
        {"normals": np.ones((3, 3))},
        {"points": np.zeros((2, 2))},
        {"distance": [0.0]},
        {"near": 3},
        {"distance": [0.0, np.nan]},
        {"surface": np.zeros(3), "normals": np.zeros(3)},
    ],
)
def test_samples_that_do_not_fit_are_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(CohortError):
        _samples(**changed)


def test_samples_come_back_from_their_file(tmp_path: Path) -> None:
    write_samples(_samples(), tmp_path / "a.npz")
    again = read_samples(tmp_path / "a.npz")
    for name in ("surface", "normals", "points", "distance"):
        np.testing.assert_array_equal(getattr(again, name), getattr(_samples(), name))
        assert getattr(again, name).dtype == np.float32
    assert (again.near, again.length_unit) == (1, "mm")
    np.savez(tmp_path / "b.npz", surface=np.zeros((4, 3)))
    with pytest.raises(CohortError, match="normals, points, distance, near"):
        read_samples(tmp_path / "b.npz")
