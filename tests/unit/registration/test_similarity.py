"""Centre, size and pose: taken off, put back, found again."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import special_ortho_group

from prism.errors import CohortError, QueryError
from prism.preprocess import sample_sdf
from prism.registration.align import (
    best_rotation,
    check_alignment,
    rigidly_onto,
    similarly_onto,
)
from prism.registration.similarity import Similarity, by_moments
from tests.problems.ellipses import COUNTS, ellipse, ellipses


@pytest.mark.parametrize("n", [2, 3])
def test_there_and_back_is_exact(n: int) -> None:
    rng = np.random.default_rng(0)
    rotation = np.stack([special_ortho_group.rvs(n, random_state=rng) for _ in range(4)])
    similarity = Similarity(100 * rng.random((4, n)), 1 + 9 * rng.random(4), rotation)
    y = 100 * rng.random((4, 20, n))
    assert np.abs(similarity.from_common(similarity.to_common(y)) - y).max() < 1e-12
    one = similarity[2:3]
    expected = rotation[2] @ (y[2, 5] - similarity.centre[2]) / similarity.size[2]
    np.testing.assert_allclose(one.to_common(y[2:3])[0, 5], expected)


def test_moments_make_all_shapes_one_size_around_zero() -> None:
    samples = ellipses(4)
    similarity = by_moments(samples)
    common = similarity.to_common(np.stack([s.surface for s in samples]).astype(float))
    np.testing.assert_allclose(common.mean(axis=1), 0, atol=1e-6)
    np.testing.assert_allclose(np.sqrt((common**2).sum(-1).mean(-1)), 0.5)
    assert similarity.mean.size == pytest.approx(similarity.size.mean())


def test_a_shape_without_size_is_refused() -> None:
    sample = ellipses(2)[0]
    sample.surface[:] = 1.0
    with pytest.raises(CohortError, match="single point"):
        by_moments([sample])


@pytest.mark.parametrize("angle", [0.3, 1.9, 3.0, -2.2])
def test_any_pose_of_a_shape_without_symmetry_is_found(angle: float) -> None:
    egg = ellipse(10, 6)
    egg.points[:, 1] += 0.05 * egg.points[:, 0] ** 2 * (egg.points[:, 0] > 0)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    cloud, reference = (sample_sdf(egg, COUNTS, seed=s).surface[:400] for s in (0, 1))
    cloud, reference = cloud - cloud.mean(0), reference - reference.mean(0)
    found = best_rotation(cloud @ turn.T, reference)
    assert np.abs(found @ turn - np.eye(2)).max() < 0.05


@pytest.mark.parametrize("n", [2, 3])
def test_rigid_alignment_keeps_size_and_similarity_takes_it(n: int) -> None:
    rng = np.random.default_rng(1)
    template = rng.standard_normal((30, n))
    turn = special_ortho_group.rvs(n, random_state=rng)
    shape = 1.7 * template @ turn.T + 5
    centred = template - template.mean(axis=0)
    np.testing.assert_allclose(
        rigidly_onto(template, shape[None])[0], 1.7 * centred + template.mean(axis=0)
    )
    np.testing.assert_allclose(similarly_onto(template, shape[None])[0], template)
    mirrored = template * np.r_[-1, np.ones(n - 1)]
    assert np.abs(similarly_onto(template, mirrored[None])[0] - template).max() > 0.1


def test_an_unknown_alignment_is_refused() -> None:
    with pytest.raises(QueryError, match="rigid"):
        check_alignment("affine")
