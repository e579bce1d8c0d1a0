"""Drawn people: as smooth beside the modes as people are."""

from __future__ import annotations

import numpy as np
import pytest

from prism.covariation import Covariation, Texture, learn_texture
from tests.problems.covarying import covariances, dense, planted

PLACES = np.stack(np.meshgrid(np.linspace(0, 10, 12), np.linspace(0, 10, 12)), -1).reshape(-1, 2)
SIGMA = np.broadcast_to(np.array([[2.0, 0.5], [0.5, 1.0]]), (144, 2, 2))


def without_modes(points: int = 144) -> Covariation:
    return Covariation.none(points, 2)


@pytest.mark.parametrize("noise_share", [0.0, 0.95])
def test_plain_people_have_the_covariation_alone(noise_share: float) -> None:
    how = planted(4, noise_share=noise_share, tolerance=0.0)
    texture = Texture()
    r = texture.draw(how, covariances(4), PLACES[:4], 8000, seed=0).reshape(8000, -1)
    true = dense(how, covariances(4)[None], np.zeros(1)).measured
    np.testing.assert_allclose(np.cov(r.T), true, atol=5 * true.max() / np.sqrt(8000))
    again = texture.draw(how, covariances(4), PLACES[:4], 8000, seed=0).reshape(8000, -1)
    np.testing.assert_array_equal(r, again)


def test_drawn_remainders_covary_over_distance() -> None:
    texture = Texture(smooth=0.6, length=3.0, own=0.4)
    u = np.stack([texture._fields(np.random.default_rng(k), PLACES, 1)[0] for k in range(3000)])
    found = np.einsum("kpi,kqi->pq", u, u) / (2 * len(u))
    apart = np.linalg.norm(PLACES[:, None] - PLACES, axis=-1)
    expected = 0.6 * np.exp(-((apart / 3) ** 2) / 2) + 0.4 * np.eye(len(PLACES))
    assert np.abs(found - expected).max() < 0.09
    assert np.abs(found - expected).mean() < 0.015


@pytest.mark.parametrize(
    ("smooth", "length", "own"), [(0.7, 3.0, 0.3), (0.0, 1.0, 1.0), (0.5, 2.0, 0.1)]
)
def test_planted_smoothness_is_found(smooth: float, length: float, own: float) -> None:
    how = without_modes()
    planted_texture = Texture(smooth, length, own)
    parts = [planted_texture.draw(how, SIGMA, PLACES, 5, seed) for seed in range(60)]
    r = np.concatenate(parts)
    found = learn_texture(how, r, np.broadcast_to(SIGMA, (len(r), *SIGMA.shape)), PLACES)
    np.testing.assert_allclose([found.smooth, found.own], [smooth, own], atol=0.06)
    if smooth:
        np.testing.assert_allclose(found.length, length, rtol=0.15)


def test_gaps_and_few_points_are_no_trouble() -> None:
    how = without_modes()
    r = Texture(0.7, 3.0, 0.3).draw(how, SIGMA, PLACES, 100, seed=0)
    r[::3, ::4] = np.nan
    found = learn_texture(how, r, np.broadcast_to(SIGMA, (100, *SIGMA.shape)), PLACES)
    assert 0.4 < found.smooth < 1.0
    few = learn_texture(without_modes(5), r[:, :5], SIGMA[None, :5].repeat(100, 0), PLACES[:5])
    assert (few.smooth, few.own) == (0.0, 1.0)
    same = learn_texture(how, r, SIGMA[None].repeat(100, 0), np.zeros_like(PLACES))
    assert same.smooth == 0.0
    unseen = learn_texture(how, np.full_like(r, np.nan), SIGMA[None].repeat(100, 0), PLACES)
    assert unseen.smooth == 0.0
