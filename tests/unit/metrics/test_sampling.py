"""Surfaces sampled by area, and the choice of sampler by cells."""

from __future__ import annotations

import numpy as np
import pytest

from prism.errors import QueryError
from prism.metrics import sample_shape, sample_shapes, sample_surface

# A small and a large triangle, areas 1/2 and 9/2, in the planes z = 0 and z = 1.
CORNERS = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [3, 0, 1], [0, 3, 1]])
FACES = np.array([[0, 1, 2], [3, 4, 5]])


def test_faces_are_hit_by_area() -> None:
    samples = sample_surface(CORNERS, FACES, 20_000, seed=1)
    share = (samples[:, 2] == 1).mean()
    assert share == pytest.approx(0.9, abs=4 * np.sqrt(0.09 / 20_000))


def test_samples_are_uniform_within_a_face() -> None:
    samples = sample_surface(CORNERS, FACES[:1], 40_000, seed=2)[:, :2]
    assert (samples >= 0).all()
    assert (samples.sum(axis=1) <= 1 + 1e-12).all()
    # Uniform on the unit right triangle: mean 1/3, variance 1/18, covariance -1/36.
    np.testing.assert_allclose(samples.mean(axis=0), 1 / 3, atol=4 * np.sqrt(1 / 18 / 40_000))
    expected = np.array([[2, -1], [-1, 2]]) / 36
    np.testing.assert_allclose(np.cov(samples.T), expected, atol=2e-3)


def test_a_plane_mesh_stays_plane() -> None:
    samples = sample_surface(CORNERS[:3, :2], FACES[:1], 50)
    np.testing.assert_array_equal(samples, sample_surface(CORNERS[:3], FACES[:1], 50)[:, :2])


def test_faces_with_a_missing_corner_are_left_out() -> None:
    points = CORNERS.copy()
    points[4] = np.nan
    samples = sample_surface(points, FACES, 500)
    assert (samples[:, 2] == 0).all()


def test_seed_decides() -> None:
    first, again, other = (sample_surface(CORNERS, FACES, 10, seed=s) for s in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_cells_choose_the_sampler_and_the_count() -> None:
    assert sample_shape(CORNERS, FACES[:, :2]).shape == (1000, 3)
    assert sample_shape(CORNERS, FACES).shape == (10_000, 3)
    assert sample_shape(CORNERS, FACES, 7).shape == (7, 3)
    np.testing.assert_array_equal(sample_shape(CORNERS), CORNERS)


def test_points_without_cells_lose_the_missing_ones_only() -> None:
    points = CORNERS.copy()
    points[[1, 4]] = np.nan
    np.testing.assert_array_equal(sample_shape(points), CORNERS[[0, 2, 3, 5]])


def test_points_without_cells_are_chosen_without_repetition() -> None:
    points = np.arange(200.0).reshape(100, 2)
    chosen, other = (sample_shape(points, count=30, seed=s) for s in (0, 1))
    assert len(np.unique(chosen[:, 0])) == 30
    assert not np.array_equal(chosen, other)


def test_batch_equals_one_by_one() -> None:
    stack = np.stack([CORNERS, CORNERS[::-1] * 2])
    batch = sample_shapes(stack, FACES, 20, seed=5)
    np.testing.assert_array_equal(batch, [sample_surface(s, FACES, 20, seed=5) for s in stack])


def test_batch_without_cells_has_one_count() -> None:
    stack = np.stack([CORNERS, CORNERS])
    stack[1, :2] = np.nan
    batch = sample_shapes(stack)
    assert batch.shape == (2, 4, 3)
    np.testing.assert_array_equal(batch[1], CORNERS[2:])


@pytest.mark.parametrize("cells", [None, FACES[:, :2], FACES])
def test_no_shapes_give_no_samples(cells) -> None:
    assert sample_shapes(np.empty((0, 6, 3)), cells, 4).shape == (0, 4, 3)


@pytest.mark.parametrize(
    ("points", "cells", "count", "what"),
    [
        (np.zeros((6, 3)), FACES, 5, "shape 0 has no area"),
        (CORNERS, FACES, 0, "count must be at least 1"),
        (CORNERS, np.zeros((1, 4), int), 5, r"\(K, 2\) or \(K, 3\)"),
        (CORNERS, np.zeros((0, 3), int), 5, "K > 0"),
        (CORNERS, None, 7, "6 observed points, 7 are wanted"),
        (np.full((6, 3), np.nan), None, None, "0 observed points"),
        (np.zeros((6, 4)), None, None, "points must have shape"),
    ],
)
def test_bad_input_is_named(points, cells, count, what: str) -> None:
    with pytest.raises(QueryError, match=what):
        sample_shape(points, cells, count)


def test_the_failing_shape_of_a_batch_is_named() -> None:
    stack = np.stack([CORNERS, np.zeros_like(CORNERS)])
    with pytest.raises(QueryError, match="shape 1 has no area"):
        sample_shapes(stack, FACES)
