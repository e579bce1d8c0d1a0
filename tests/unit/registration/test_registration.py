"""A registration learned from growing ellipses: what holds of any, and that this one is good."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from prism.cohort import SDFSamples, Shape, Visits
from prism.errors import CohortError, FitError, ModelError, PrismError
from prism.nets import Sines
from prism.preprocess import sample_sdf
from prism.registration import Maps, Registration, preset, quality
from prism.registration.bank import turn
from prism.registration.quality import Quality, fold_share, stands_out, surface_distance
from prism.training import Runtime
from tests.problems.ellipses import COUNTS, TINY, axes, ellipse, ellipses
from tests.problems.solids import sphere

CPU = Runtime("cpu")


@pytest.fixture(scope="module")
def learned() -> Registration:
    return Registration.fit(ellipses(), TINY, runtime=CPU)


def short(seed: int = 0, **options: object) -> Registration:
    return Registration.fit(
        ellipses(3), replace(TINY, steps=20, shapes=3), seed=seed, runtime=CPU, **options
    )


def test_maps_undo_each_other_and_points_lie_on_the_shapes(learned: Registration) -> None:
    judged = quality(learned, learned.maps, ellipses())
    figures = judged.summary()
    assert figures["round_trip"]["mean_share"] < 0.005
    assert figures["reverse"]["mean_share"] < 0.005
    assert figures["residual"]["mean_share"] < 0.01
    assert figures["folds"] == 0
    assert figures["outliers"] == []
    assert figures["length_unit"] == "mm"


def test_shapes_keep_their_place_and_size(learned: Registration) -> None:
    shapes = learned.carry(learned.maps)
    assert shapes.shape == (6, 40, 2)
    expected = axes(6)
    np.testing.assert_allclose(np.ptp(shapes, axis=1) / 2, expected, rtol=0.05)
    centre = np.stack([expected[:, 0], 2 * expected[:, 1]], axis=-1)
    middle = (shapes.min(axis=1) + shapes.max(axis=1)) / 2
    np.testing.assert_allclose(middle, centre, rtol=0.02)


def test_the_same_template_point_is_the_same_place(learned: Registration) -> None:
    shapes = learned.carry(learned.maps)
    centred = shapes - shapes.mean(axis=1, keepdims=True)
    angle = np.unwrap(
        np.arctan2(centred[..., 1] / axes(6)[:, 1:], centred[..., 0] / axes(6)[:, :1])
    )
    assert np.abs(angle - angle.mean(axis=0)).max() < 0.2  # of 2 pi


def test_correspondence_joins_the_template_to_the_visits(learned: Registration) -> None:
    visits = Visits([f"s{i}" for i in range(6)], ["a"] * 6, np.arange(6.0))
    found = learned.correspondence(learned.maps, visits, "years", "ovals")
    assert (found.time_unit, found.length_unit, found.name) == ("years", "mm", "ovals")
    assert found.cells is not None
    average = 2 * axes(6).mean(axis=0)
    np.testing.assert_allclose(np.ptp(found.template, axis=0), average, rtol=0.05)


def test_a_new_shape_is_registered_onto_the_template(learned: Registration) -> None:
    new = [sample_sdf(ellipse(13, 9, (100, 50)), COUNTS)]
    maps = learned.onto(new, runtime=CPU)
    figures = quality(learned, maps, new).summary()
    assert figures["residual"]["mean_share"] < 0.015
    assert figures["round_trip"]["mean_share"] < 0.01
    shape = learned.carry(maps)[0]
    np.testing.assert_allclose(np.ptp(shape, axis=0) / 2, [13, 9], rtol=0.06)
    np.testing.assert_allclose(shape.mean(axis=0), [100, 50], atol=0.5)
    before = [w.clone() for w in learned.networks.parameters()]
    learned.onto(new, runtime=CPU)
    pairs = zip(before, learned.networks.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


def test_shapes_that_do_not_fit_are_refused(learned: Registration) -> None:
    ball = sphere(detail=8)
    with pytest.raises(FitError, match="2D shapes"):
        learned.onto([sample_sdf(Shape(ball.points, ball.cells, "mm"), COUNTS)])
    with pytest.raises(FitError, match="one shape"):
        Registration.fit(ellipses(2)[:1])
    mixed = [*ellipses(2), sample_sdf(replace(ellipse(3, 2), length_unit="cm"), COUNTS)]
    with pytest.raises(CohortError, match="length_unit"):
        Registration.fit(mixed)
    with pytest.raises(CohortError, match="no shape"):
        learned.onto([])


def test_what_is_saved_is_what_is_loaded(learned: Registration, tmp_path: Path) -> None:
    learned.save(tmp_path / "a")
    again = Registration.load(tmp_path / "a")
    assert np.array_equal(again.carry(again.maps), learned.carry(learned.maps))
    assert np.array_equal(again.template, learned.template)
    assert (again.align, again.config, again.length_unit) == ("none", TINY, "mm")
    again.save(tmp_path / "b")
    for file in (tmp_path / "a").iterdir():
        assert file.suffix in (".toml", ".safetensors", ".json")
        assert (tmp_path / "b" / file.name).read_bytes() == file.read_bytes()


def test_a_damaged_folder_is_refused(learned: Registration, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="not a registration"):
        Registration.load(tmp_path)
    for name in ("registration.toml", "networks.safetensors", "arrays.safetensors"):
        learned.save(tmp_path / name)
        file = tmp_path / name / name
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
        with pytest.raises(ModelError):
            Registration.load(tmp_path / name)
    learned.save(tmp_path / "mixed")
    text = (tmp_path / "mixed" / "registration.toml").read_text()
    (tmp_path / "mixed" / "registration.toml").write_text(text.replace("width = 24", "width = 16"))
    with pytest.raises(ModelError, match="does not fit"):
        Registration.load(tmp_path / "mixed")


def test_same_seed_same_bits_other_seed_other_bits() -> None:
    a, b, c = short(0), short(0), short(1)
    y = np.stack([s.surface[:20] for s in ellipses(3)])
    assert np.array_equal(a.maps.to_template(y), b.maps.to_template(y))
    assert not np.array_equal(a.maps.to_template(y), c.maps.to_template(y))


def test_the_papers_network_learns_as_well() -> None:
    config = replace(TINY, network="hyper", code=8, steps=100, learning_rate=3e-3)
    found = Registration.fit(ellipses(), config, runtime=CPU)
    figures = quality(found, found.maps, ellipses()).summary()
    assert figures["residual"]["mean_share"] < 0.03
    assert figures["folds"] == 0
    assert preset("paper", 3).code == 1024


def test_pose_is_found_and_taken_off() -> None:
    turned = []
    for i, (a, b) in enumerate(axes(4)):
        shape = ellipse(a, b)
        angle = 0.7 * i
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        turned.append(sample_sdf(replace(shape, points=shape.points @ turn.T + 50 * i), COUNTS))
    config = replace(TINY, steps=120, shapes=4)
    found = Registration.fit(turned, config, align="rigid", runtime=CPU)
    shapes = found.carry(found.maps)
    expected = found.template.mean(axis=0)
    np.testing.assert_allclose(shapes.mean(axis=1), np.tile(expected, (4, 1)), atol=1e-6)
    long_axes = [np.linalg.svd(shape - shape.mean(axis=0))[2][0] for shape in shapes]
    assert min(abs(axis @ long_axes[0]) for axis in long_axes) > 0.98
    reach = np.linalg.norm(shapes - expected, axis=-1).max(axis=1)
    np.testing.assert_allclose(reach, axes(4)[:, 0], rtol=0.08)  # sizes stay
    same_size = replace(found, align="similarity").carry(found.maps)
    radius = np.sqrt(((same_size - expected) ** 2).sum(-1).mean(-1))
    np.testing.assert_allclose(radius, radius[0])


@pytest.mark.parametrize("strength", [0.5, 1.5, 4.0])
def test_folds_are_counted(strength: float) -> None:
    """y + (a/k) sin(k y) along one axis folds where cos(k y) < -1/a: a known share."""
    k = 20.0
    first = torch.tensor([[[k, 0.0]]]), torch.zeros(1, 1, 1)
    last = torch.tensor([[[strength / k], [0.0]]]), torch.zeros(1, 1, 2)
    p = torch.rand(1, 20_000, 2, generator=torch.Generator().manual_seed(0)) * 2 * math.pi
    _, jacobian = Sines((first, last)).with_jacobian(p)
    found = fold_share(torch.linalg.det(jacobian).numpy())
    expected = math.acos(1 / strength) / math.pi if strength > 1 else 0.0
    assert found[0] == pytest.approx(expected, abs=0.01)


def test_distance_to_a_sampled_ball_sees_between_the_samples() -> None:
    rng = np.random.default_rng(0)
    normals = rng.standard_normal((2000, 3))
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    samples = SDFSamples(normals, normals, np.empty((0, 3)), np.empty(0), 0)
    query = rng.standard_normal((500, 3))
    query *= (1 + 0.02 * rng.standard_normal((500, 1))) / np.linalg.norm(query, axis=-1)[:, None]
    expected = np.abs(np.linalg.norm(query, axis=-1) - 1)
    error = np.abs(surface_distance(samples, query) - expected)
    spacing = math.sqrt(4 * math.pi / 2000)
    assert error.mean() < 0.01 * spacing
    assert error.max() < 0.1 * spacing


def test_a_shape_far_worse_than_the_others_stands_out() -> None:
    value = np.array([1.0, 1.1, 0.9, 1.2, 1.0, 0.8, 1.1, 1.0, 3.0])
    assert stands_out(value).tolist() == [False] * 8 + [True]
    assert not stands_out(value[-3:]).any()


@pytest.mark.parametrize("which", ["residual", "round_trip", "reverse"])
def test_a_registration_that_went_astray_is_poor_in_any_unit(which: str) -> None:
    size = np.full(4, 2000.0)
    good = {"residual": np.full((4, 9), 2.0), "round_trip": 0.01 * size, "reverse": 0.01 * size}
    rest = {"folds": np.zeros(4), "size": size, "outlier": np.zeros(4, dtype=bool)}
    assert not Quality(**good, **rest).poor
    assert Quality(**good | {which: 50 * good[which]}, **rest).poor


def test_all_shapes_are_visited_equally_often() -> None:
    visits = torch.cat([turn(step, 4, 10, seed=3) for step in range(5)])
    assert torch.bincount(visits, minlength=10).tolist() == [2] * 10
    assert not torch.equal(visits[:10], visits[10:])


def test_maps_select_and_join(learned: Registration) -> None:
    y = np.stack([s.surface[:10] for s in ellipses()])
    whole = learned.maps.to_template(y)
    joined = Maps.joined([learned.maps[3:], learned.maps[:3]])[np.array([3, 4, 5, 0, 1, 2])]
    np.testing.assert_allclose(joined.to_template(y), whole, atol=1e-6)


@pytest.mark.parametrize(
    "change", [{"network": "cnn"}, {"steps": 0}, {"omega": 0.0}, {"near": -1}, {"reach": -1.0}]
)
def test_settings_that_cannot_train_are_refused(change: dict) -> None:
    with pytest.raises(PrismError):
        replace(TINY, **change)


def test_the_numeric_core_opens_on_a_bare_machine() -> None:
    absent = ("igl", "skimage", "pyvista", "vtk", "SimpleITK", "joblib", "tomli_w", "typer")
    code = f"import sys; sys.modules.update(dict.fromkeys({absent})); import prism.registration"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
