"""Signed distances of solids whose distance is known, whole and with faces missing."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from prism.errors import QueryError
from prism.preprocess import signed_distance
from tests.problems.solids import SOLIDS, capsule, torus

pytest.importorskip("igl")


def _query(points: np.ndarray, count: int = 4000, seed: int = 0) -> np.ndarray:
    """Half of the points anywhere around the shape, half close to it."""
    rng = np.random.default_rng(seed)
    low, high = points.min(axis=0) - 0.5, points.max(axis=0) + 0.5
    near = points[rng.integers(len(points), size=count // 2)]
    near = near + 0.03 * rng.standard_normal(near.shape)
    return np.concatenate([rng.uniform(low, high, near.shape), near])


@pytest.mark.parametrize("name", SOLIDS)
def test_the_distance_of_a_known_solid(name: str) -> None:
    solid = SOLIDS[name]
    query = _query(solid.points)
    exact = solid.distance(query)
    measured = signed_distance(solid.points, solid.cells, query)
    np.testing.assert_allclose(measured, exact, atol=solid.gap + 1e-12)
    clear = np.abs(exact) > solid.gap
    assert ((measured < 0) == (exact < 0))[clear].all()
    assert 0.1 < (measured < 0).mean() < 0.9


@pytest.mark.parametrize("name", ["sphere", "capsule", "torus", "circle"])
@pytest.mark.parametrize("seed", range(2))
def test_signs_survive_missing_faces(name: str, seed: int) -> None:
    solid = SOLIDS[name]
    kept = np.random.default_rng(seed).random(len(solid.cells)) >= 0.01
    assert not kept.all()
    query = _query(solid.points, 10_000, seed)
    whole = signed_distance(solid.points, solid.cells, query)
    holed = signed_distance(solid.points, solid.cells[kept], query)
    assert ((whole < 0) != (holed < 0)).mean() <= 1e-3


def test_signs_inside_an_open_tube() -> None:
    solid = capsule(0.5, 2.0)
    tube = np.abs(solid.points[solid.cells][..., 2]).max(axis=1) <= 2.0
    query = _query(solid.points, 20_000)
    query = query[np.abs(query[:, 2]) < 1.5]
    exact = solid.distance(query)
    measured = signed_distance(solid.points, solid.cells[tube], query)
    clear = np.abs(exact) > solid.gap
    assert ((measured < 0) == (exact < 0))[clear].mean() >= 0.999
    np.testing.assert_allclose(measured, exact, atol=solid.gap)


def test_distance_does_not_see_the_order_of_faces_and_points() -> None:
    solid, rng = torus(detail=12), np.random.default_rng(0)
    order = rng.permutation(len(solid.points))
    cells = np.argsort(order)[solid.cells][rng.permutation(len(solid.cells))]
    query = _query(solid.points, 500)
    shuffled = signed_distance(solid.points[order], cells, query)
    np.testing.assert_allclose(
        shuffled, signed_distance(solid.points, solid.cells, query), atol=1e-12
    )


@pytest.mark.parametrize(
    "changed",
    [
        {"cells": [[0, 1, 9999]]},
        {"cells": np.empty((0, 3), dtype=int)},
        {"cells": [[0, 1]]},
        {"query": np.zeros((4, 2))},
        {"query": [[0.0, 0.0, np.nan]]},
        {"points": np.zeros((4, 4))},
    ],
)
def test_what_does_not_fit_is_refused(changed: dict[str, Any]) -> None:
    solid = torus(detail=6)
    parts = {"points": solid.points, "cells": solid.cells, "query": np.zeros((1, 3)), **changed}
    with pytest.raises(QueryError):
        signed_distance(**parts)


def test_nothing_under_another_licence_is_loaded() -> None:
    solid = SOLIDS["square"]
    signed_distance(solid.points, solid.cells, solid.points)
    assert not [name for name in sys.modules if name.startswith("igl.copyleft")]
