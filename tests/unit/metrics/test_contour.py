"""Contours re-sampled by arc length: circles, squares, lines, several at once."""

from __future__ import annotations

import numpy as np
import pytest

from prism.errors import QueryError
from prism.metrics import resample_contour, sample_shapes
from prism.metrics._polyline import chain

SQUARE = np.array([[0.0, 0.0], [4.0, 0.0], [4.0, 4.0], [0.0, 4.0]])
LOOP = np.array([[0, 1], [1, 2], [2, 3], [3, 0]])


def _circle(count: int) -> tuple[np.ndarray, np.ndarray]:
    # Vertices crowd on one side, so that sampling by vertex is far from sampling by arc length.
    angle = 2 * np.pi * (np.arange(count) / count) ** 2
    index = np.arange(count)
    return np.stack([np.cos(angle), np.sin(angle)], -1), np.stack([index, (index + 1) % count], -1)


def test_square_samples_lie_where_arc_length_puts_them() -> None:
    samples = resample_contour(SQUARE, LOOP, 8)
    expected = [[1, 0], [3, 0], [4, 1], [4, 3], [3, 4], [1, 4], [0, 3], [0, 1]]
    np.testing.assert_allclose(samples, expected, atol=1e-12)


def test_uneven_circle_is_sampled_evenly() -> None:
    points, cells = _circle(2000)
    samples = resample_contour(points, cells, 100)
    gaps = np.linalg.norm(samples - np.roll(samples, 1, axis=0), axis=1)
    np.testing.assert_allclose(gaps, 2 * np.sin(np.pi / 100), rtol=1e-3)


def test_order_and_direction_of_segments_do_not_change_the_samples() -> None:
    points, cells = _circle(60)
    shuffled = cells[np.random.default_rng(0).permutation(60)]
    shuffled[::2] = shuffled[::2, ::-1]
    samples = resample_contour(points, shuffled, 30)
    gaps = np.linalg.norm(samples - np.roll(samples, 1, axis=0), axis=1)
    assert gaps.max() < 1.05 * 2 * np.sin(np.pi / 30)


def test_open_line_in_space_is_walked_from_end_to_end() -> None:
    points = np.array([[0.0, 0, 0], [0, 0, 9], [0, 0, 1]])
    samples = resample_contour(points, [[2, 1], [2, 0]], 3)
    height = samples[:, 2]
    np.testing.assert_allclose(np.sort(height), [1.5, 4.5, 7.5])
    assert (np.diff(height) > 0).all() or (np.diff(height) < 0).all()


def test_several_lines_share_the_samples_by_length() -> None:
    points = np.array([[0.0, 0], [3, 0], [0, 5], [1, 5]])
    samples = resample_contour(points, [[0, 1], [2, 3]], 8)
    assert (samples[:, 1] == 0).sum() == 6
    assert (samples[:, 1] == 5).sum() == 2
    assert not ((samples[:, 1] > 0) & (samples[:, 1] < 5)).any()  # never on the gap between them


def test_segments_with_a_missing_end_are_left_out() -> None:
    points = SQUARE.copy()
    points[2] = np.nan
    samples = resample_contour(points, LOOP, 8)
    assert np.isfinite(samples).all()
    assert (np.isclose(samples[:, 0], 0) | np.isclose(samples[:, 1], 0)).all()


def test_repeated_points_take_no_samples() -> None:
    points = np.vstack([SQUARE[:1], SQUARE])
    cells = np.vstack([[0, 1], LOOP[:-1] + 1, [4, 0]])
    samples = resample_contour(points, cells, 8)
    np.testing.assert_allclose(samples, resample_contour(SQUARE, LOOP, 8))


def test_every_segment_is_walked_once_even_at_branches() -> None:
    cells = np.array([[0, 1], [1, 2], [1, 3], [3, 4], [5, 6], [6, 5]])
    walked = chain(cells)
    assert sorted(map(sorted, walked.tolist())) == sorted(map(sorted, cells.tolist()))


def test_a_line_is_one_chain() -> None:
    cells = np.array([[3, 2], [0, 1], [1, 2], [3, 4]])
    walked = chain(cells)
    np.testing.assert_array_equal(walked[1:, 0], walked[:-1, 1])


def test_batch_equals_one_by_one() -> None:
    stack = np.stack([SQUARE, 2 * SQUARE + 1, SQUARE * [1, 3]])
    batch = sample_shapes(stack, LOOP, 10)
    np.testing.assert_array_equal(batch, [resample_contour(s, LOOP, 10) for s in stack])


@pytest.mark.parametrize(
    ("points", "cells", "count", "what"),
    [
        (np.zeros((4, 2)), LOOP, 5, "shape 0 has no length"),
        (np.full((4, 2), np.nan), LOOP, 5, "shape 0 has no length"),
        (SQUARE, LOOP, 0, "count must be at least 1"),
        (SQUARE, [[0, 4]], 5, "points 0 to 4"),
        (SQUARE, [[-1, 0]], 5, "points -1 to 0"),
        (SQUARE, [[0, 1, 2]], 5, r"\(K, 2\)"),
        (SQUARE, [[0.5, 1.0]], 5, "integers"),
        (SQUARE[0], LOOP, 5, "points must have shape"),
    ],
)
def test_bad_input_is_named(points, cells, count: int, what: str) -> None:
    with pytest.raises(QueryError, match=what):
        resample_contour(points, cells, count)
