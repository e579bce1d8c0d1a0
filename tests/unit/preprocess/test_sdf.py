"""Samples of one shape: uniform, on the surface, signed, the same for the same seed."""

from __future__ import annotations

import numpy as np
import pytest

from prism.cohort import SDFSamples, Shape
from prism.errors import CohortError, QueryError
from prism.preprocess import SamplingConfig, sample_sdf
from tests.problems.solids import SOLIDS, sphere, torus

pytest.importorskip("igl")
FEW = SamplingConfig(surface=2000, near=1000, box=500)


def _sample(name: str, config: SamplingConfig = FEW, seed: int = 0) -> SDFSamples:
    return sample_sdf(Shape(SOLIDS[name].points, SOLIDS[name].cells, "mm"), config, seed)


@pytest.mark.parametrize("name", SOLIDS)
def test_samples_lie_where_they_should(name: str) -> None:
    solid, samples = SOLIDS[name], _sample(name)
    assert len(samples.surface) == 2000
    assert (len(samples.points), samples.near) == (1500, 1000)
    assert samples.length_unit == "mm"
    assert np.abs(solid.distance(samples.surface.astype(float))).max() <= solid.gap + 1e-6
    exact = solid.distance(samples.points.astype(float))
    np.testing.assert_allclose(samples.distance, exact, atol=solid.gap + 1e-6)
    size = np.linalg.norm(np.ptp(solid.points, axis=0))
    assert np.abs(exact[:1000]).max() < 6 * FEW.band * size
    low, high = solid.points.min(axis=0), solid.points.max(axis=0)
    box = samples.points[1000:]
    assert (box >= low - FEW.padding * size).all()
    assert (box <= high + FEW.padding * size).all()
    assert (box < low).any()
    assert (box > high).any()


@pytest.mark.parametrize("name", SOLIDS)
def test_normals_are_the_gradient_of_the_distance(name: str) -> None:
    solid, samples = SOLIDS[name], _sample(name)
    x, h = samples.surface.astype(float), 1e-4
    steps = h * np.eye(samples.dimension)
    slope = [(solid.distance(x + s) - solid.distance(x - s)) / (2 * h) for s in steps]
    assert (samples.normals * np.stack(slope, axis=-1)).sum(axis=-1).min() > 0.99
    np.testing.assert_allclose(np.linalg.norm(samples.normals, axis=-1), 1.0, atol=1e-6)


def test_surface_points_are_uniform_by_area() -> None:
    samples = _sample("sphere", SamplingConfig(surface=40_000, near=0, box=0))
    # On a sphere the height is uniform, whatever the triangles are like.
    share, _ = np.histogram(samples.surface[:, 2], np.linspace(-1, 1, 11))
    assert np.abs(share / 4000 - 1).max() < 0.06
    assert len(samples.points) == 0


def test_centre_of_a_sample_is_far_nearer_than_that_of_independent_points() -> None:
    few = SamplingConfig(surface=500, near=0, box=0)
    centres = [_sample("sphere", few, seed).surface.mean(axis=0) for seed in range(20)]
    independent = np.sqrt(1 / 3 / 500)
    assert np.sqrt(np.mean(np.square(centres))) < 0.4 * independent


def test_surface_points_come_in_no_order() -> None:
    x = _sample("circle").surface
    away = np.linalg.norm(np.diff(x, axis=0), axis=-1).mean()
    assert away > 0.9 * np.linalg.norm(x[:1000] - x[1000:], axis=-1).mean()


def test_vertex_normals_are_better_than_face_normals() -> None:
    samples = _sample("sphere")
    radial = samples.surface / np.linalg.norm(samples.surface, axis=-1, keepdims=True)
    assert np.degrees(np.arccos((samples.normals * radial).sum(-1).clip(-1, 1))).max() < 0.5


def test_one_seed_gives_one_sample() -> None:
    a, b, c = (_sample("torus", seed=seed) for seed in (0, 0, 1))
    for name in ("surface", "normals", "points", "distance"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
        assert not np.array_equal(getattr(a, name), getattr(c, name))


def test_shapes_draw_independently() -> None:
    solid = torus(detail=12)
    a, b = (sample_sdf(Shape(scale * solid.points, solid.cells), FEW) for scale in (1.0, 2.0))
    assert np.abs(2 * a.points[FEW.near :] - b.points[FEW.near :]).mean() > 0.1


def test_distances_scale_with_the_shape() -> None:
    solid = torus(detail=12)
    large = sample_sdf(Shape(1000 * solid.points + 5e4, solid.cells), FEW)
    exact = 1000 * solid.distance((large.points - 5e4) / 1000)
    np.testing.assert_allclose(large.distance, exact, atol=1000 * solid.gap)


def test_what_has_no_inside_is_refused() -> None:
    for cells in (None, [[0, 1], [1, 2]]):
        with pytest.raises(CohortError, match="no signed distance"):
            sample_sdf(Shape(sphere(detail=4).points, cells))


@pytest.mark.parametrize("change", [{"surface": 0}, {"near": -1}, {"band": np.nan}])
def test_senseless_configurations_are_refused(change: dict) -> None:
    with pytest.raises(QueryError, match=next(iter(change))):
        SamplingConfig(**change)
