"""The template read off networks whose zero level is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from prism.errors import FitError
from prism.registration.template import extract


class Balls(nn.Module):
    """Exact signed distance of balls; nothing to learn."""

    def __init__(self, *balls: tuple[list[float], float]) -> None:
        super().__init__()
        self.n = len(balls[0][0])
        self.centres = nn.Parameter(torch.tensor([centre for centre, _ in balls]))
        self.radii = torch.tensor([radius for _, radius in balls])

    def distance(self, p: Tensor) -> Tensor:
        away = (p[..., None, :] - self.centres).square().sum(-1).sqrt() - self.radii
        return away.min(-1).values


def on_ball(count: int, n: int, radius: float = 0.5) -> np.ndarray:
    x = np.random.default_rng(0).standard_normal((count, n))
    return radius * x / np.linalg.norm(x, axis=-1, keepdims=True)


def test_a_circle_is_sampled_evenly_and_counter_clockwise() -> None:
    found = extract(Balls(([0.0, 0.0], 0.5)), on_ball(500, 2), 60)
    assert found.points.shape == found.cells.shape == (60, 2)
    np.testing.assert_allclose(np.linalg.norm(found.points, axis=-1), 0.5, atol=1e-5)
    a, b = found.points[found.cells[:, 0]], found.points[found.cells[:, 1]]
    sides = np.linalg.norm(b - a, axis=-1)
    assert sides.max() < 1.02 * sides.min()
    assert (a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0] > 0).all()


def test_a_level_that_no_shape_lies_on_is_left_out() -> None:
    networks = Balls(([0.0, 0.0], 0.3), ([0.45, 0.45], 0.1))
    support = np.concatenate([on_ball(500, 2, 0.3), [[0.7, 0.7]]])
    found = extract(networks, support, 50)
    np.testing.assert_allclose(np.linalg.norm(found.points, axis=-1), 0.3, atol=1e-5)
    more = on_ball(99, 2, 0.1) + 0.45
    both = extract(networks, np.concatenate([support, more]), 80)
    assert len(both.points) == 80
    assert 18 <= (np.linalg.norm(both.points - 0.45, axis=-1) < 0.11).sum() <= 22


def test_a_ball_becomes_an_even_watertight_mesh_that_faces_outwards() -> None:
    found = extract(Balls(([0.0, 0.0, 0.0], 0.5)), on_ball(500, 3), 300)
    points, cells = found.points, found.cells
    assert len(points) == 300
    np.testing.assert_allclose(np.linalg.norm(points, axis=-1), 0.5, atol=1e-5)
    edges = np.sort(np.concatenate([cells[:, [0, 1]], cells[:, [1, 2]], cells[:, [2, 0]]]), axis=1)
    _, shared = np.unique(edges, axis=0, return_counts=True)
    assert (shared == 2).all()
    assert len(points) - len(shared) + len(cells) == 2  # Euler
    assert np.linalg.det(points[cells]).min() > 0
    sides = np.linalg.norm(np.diff(points[edges], axis=1), axis=-1)
    assert np.quantile(sides, 0.95) < 2 * np.quantile(sides, 0.05)


@pytest.mark.parametrize("n", [2, 3])
def test_no_level_is_an_error(n: int) -> None:
    with pytest.raises(FitError, match="nowhere zero"):
        extract(Balls(([0.0] * n, -0.2)), on_ball(100, n), 50)
