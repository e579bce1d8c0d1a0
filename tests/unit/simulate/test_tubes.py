from __future__ import annotations

import sys

import numpy as np
import pytest
import torch

from prism.errors import QueryError
from prism.fisher import field_and_rate
from prism.simulate import tubes
from prism.simulate.tubes import AGES, GROWTHS, LENGTH, RADIUS, SPREAD, TRAITS, basis, surface


def _radii(shapes: np.ndarray, rings: int, around: int) -> np.ndarray:
    """(N, rings) mean distance of a ring's points from their centre."""
    ring = shapes.reshape(len(shapes), rings, around, 3)
    return np.linalg.norm(ring - ring.mean(axis=2, keepdims=True), axis=-1).mean(axis=2)


def test_growth_slows_down() -> None:
    tau = np.linspace(0, 200, 50)
    for growth in GROWTHS:
        size = np.asarray(growth(tau))
        assert (np.diff(size) > 0).all()
        assert (np.diff(size, 2) < 0).all()


def test_moments_of_growth_are_those_of_many_draws() -> None:
    t, sigma = np.array(60.0), np.array(25.0)
    tau = t + sigma * np.random.default_rng(0).standard_normal(400_000)
    length, radius = (np.asarray(g(tau)) for g in GROWTHS)
    assert LENGTH.mean(t, sigma) == pytest.approx(length.mean(), rel=1e-3)
    assert LENGTH.covariance(RADIUS, t, sigma) == pytest.approx(
        np.cov(length, radius)[0, 1], rel=0.01
    )
    assert RADIUS.covariance(RADIUS, t, sigma) == pytest.approx(radius.var(), rel=0.01)


def test_the_surface_is_an_open_tube_facing_outwards() -> None:
    points, cells = surface(12, 7)
    assert points.shape == (84, 3)
    assert len(cells) == 2 * 11 * 7
    a, b, c = (points[cells[:, i]] for i in range(3))
    normal, centre = np.cross(b - a, c - a), (a + b + c) / 3
    assert ((normal * centre * [1, 1, 0]).sum(axis=-1) > 0).all()
    edges = np.sort(np.concatenate([cells[:, [0, 1]], cells[:, [1, 2]], cells[:, [2, 0]]]), axis=1)
    shared = np.unique(edges, axis=0, return_counts=True)[1]
    assert sorted(set(shared)) == [1, 2]
    assert (shared == 1).sum() == 2 * 7  # the two rims


def test_the_basis_rebuilds_the_template_and_is_the_same_for_tensors() -> None:
    points, _ = surface(9, 5)
    B = np.asarray(basis(points))
    assert B.shape == (45, 1 + len(TRAITS), 2, 3)
    sizes = [float(np.asarray(g(np.array(100.0)))) for g in GROWTHS]
    np.testing.assert_allclose(np.einsum("k,mkc->mc", sizes, B[:, 0]), points, atol=1e-12)
    np.testing.assert_allclose(basis(torch.as_tensor(points)), B, atol=1e-12)


@pytest.mark.parametrize("trait", ["bend-x", "bend-y"])
def test_rings_stay_square_to_a_bent_axis(trait: str) -> None:
    B = np.asarray(basis(surface(101, 8)[0]))
    moved = B[:, 0] + 0.005 * B[:, 1 + list(TRAITS).index(trait)]
    y = (LENGTH.final * moved[:, 0] + RADIUS.final * moved[:, 1]).reshape(101, 8, 3)
    axis = y.mean(axis=1)
    tangent = (axis[2:] - axis[:-2]) / np.linalg.norm(axis[2:] - axis[:-2], axis=-1)[:, None]
    assert np.abs(tangent[:, :2]).max() > 0.015  # it is bent
    lean = ((y - axis[:, None])[1:-1] * tangent[:, None]).sum(axis=-1) / RADIUS.final
    assert np.abs(lean).max() < 1e-4


def test_an_oval_is_as_oval_in_any_direction() -> None:
    points, _ = surface(3, 16)
    B, names = np.asarray(basis(points)), ["mean", *TRAITS]
    ring = B[:, 0, 1]
    factor = [(B[:, names.index(n), 1] * ring).sum(-1) / (ring**2).sum(-1) for n in names[6:8]]
    angle = np.arctan2(points[:, 1], points[:, 0])
    np.testing.assert_allclose(factor, [np.cos(2 * angle), np.sin(2 * angle)], atol=1e-12)


def test_same_seed_same_cohort_other_seed_another() -> None:
    a, b, c = (tubes(4, seed=s, abnormal=2, missing=0.2, visits=2) for s in (1, 1, 2))
    np.testing.assert_array_equal(a.correspondence.points, b.correspondence.points)
    assert len(a) != len(c) or not np.array_equal(a.correspondence.points, c.correspondence.points)


def test_the_cohort_says_who_is_who() -> None:
    study = tubes(6, test_subjects=4, abnormal=3, visits=3, rings=6, around=5)
    visits = study.correspondence.visits
    counts = {
        (split, group): len(set(visits.subject[(s == split) & (g == group)]))
        for s, g in [(visits.columns["split"], visits.columns["group"])]
        for split in ("train", "test")
        for group in ("normal", "stenosis")
    }
    assert list(counts.values()) == [6, 0, 4, 3]
    np.testing.assert_array_equal(study.truth.abnormal, visits.columns["group"] == "stenosis")
    assert (study.correspondence.time_unit, study.correspondence.length_unit) == ("months", "mm")
    assert AGES[0] <= visits.t.min() < visits.t.max() <= AGES[1]
    z = (study.truth.tau_global - visits.t) / np.asarray(SPREAD(visits.t))
    for subject in visits.subjects:
        np.testing.assert_allclose(z[visits.subject == subject], z[visits.subject == subject][0])


def test_a_subject_keeps_its_traits_over_visits() -> None:
    study = tubes(6, seed=2, visits=9, rings=10, around=8, noise=0.0)
    length, radius = (np.asarray(g(study.truth.tau_global)) for g in GROWTHS)
    axis = study.truth.clean.reshape(-1, 10, 8, 3).mean(axis=2) / length[:, None, None]
    radii = _radii(study.truth.clean * [1, 1, 0], 10, 8) / radius[:, None]  # seen from above
    subject = study.correspondence.visits.subject
    for name in study.correspondence.visits.subjects:
        for mine in (axis[subject == name], radii[subject == name]):
            np.testing.assert_allclose(mine, mine * 0 + mine[0], atol=1e-9)
    assert radii.std(axis=0).min() > 0.01  # others have others


def test_a_narrowing_is_local_and_as_deep_as_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    wish = {"subjects": 5, "abnormal": 80, "rings": 401, "around": 4, "noise": 0.0}
    narrow = tubes(**wish).truth
    module = sys.modules["prism.simulate.tubes"]  # the room shows the function under this name
    monkeypatch.setattr(module, "DEPTH", (0.0, 0.0))  # the same people, not narrowed
    twins = tubes(**wish).truth
    np.testing.assert_array_equal(narrow.clean[:5], twins.clean[:5])
    axis = [x.clean.reshape(-1, 401, 4, 3).mean(axis=2) for x in (narrow, twins)]
    np.testing.assert_allclose(*axis, atol=1e-9)
    lost = 1 - (_radii(narrow.clean, 401, 4) / _radii(twins.clean, 401, 4))[5:]
    depth, place = lost.max(axis=1), lost.argmax(axis=1) / 400
    assert 0.149 < depth.min() < 0.17 < 0.33 < depth.max() < 0.351
    assert 0.149 < place.min() < 0.2 < 0.8 < place.max() < 0.851
    # Half the width of a Gaussian at exp(-1/2) of its height is its standard deviation.
    reach = (lost > depth[:, None] * np.exp(-0.5)).mean(axis=1) / 2
    assert 0.028 < reach.min() < 0.036 < 0.074 < reach.max() < 0.082


def test_noise_and_gaps_are_as_asked() -> None:
    study = tubes(40, noise=0.5, missing=0.26, rings=20, around=6)
    observed = study.correspondence.observed.reshape(-1, 20, 6)
    assert (observed.all(axis=2) == observed.any(axis=2)).all()  # whole rings
    gone = ~observed[:, :, 0]
    assert set(gone.sum(axis=1)) == {5}
    assert (np.abs(np.diff(gone, axis=1)).sum(axis=1) <= 2).all()  # one stretch
    assert np.nanstd(study.correspondence.points - study.truth.clean) == pytest.approx(
        0.5, rel=0.02
    )


def test_almost_everything_missing_still_leaves_a_shape() -> None:
    assert tubes(3, missing=0.999, rings=5, around=4).correspondence.observed.any(axis=1).all()


def test_the_law_has_the_cohorts_mean_and_covariance() -> None:
    study = tubes(6000, seed=0, rings=5, around=5)
    p, t = torch.as_tensor(study.correspondence.template), study.correspondence.visits.t
    law = study.law(p, torch.as_tensor(t)[:, None])
    white = law.whiten(torch.as_tensor(study.correspondence.displacements)).numpy()
    assert np.abs(white.mean(axis=0)).max() < 0.06
    spread = np.einsum("nmc,nmd->mcd", white, white) / len(white)
    assert np.abs(spread - np.eye(3)).max() < 0.12
    grid = torch.as_tensor(study.truth.t_grid)[:, None]
    np.testing.assert_allclose(study.truth.mean, p + study.law(p, grid).mu, atol=1e-9)


@pytest.mark.parametrize("t", [3.0, 90.0, 200.0])
def test_the_law_is_the_integral_over_tempo(t: float) -> None:
    p, _ = surface(6, 5)
    z, weight = np.polynomial.hermite_e.hermegauss(30)
    tau = t + z * SPREAD(t)
    g = np.stack([np.asarray(growth(tau)) for growth in GROWTHS], axis=-1)  # (Z, 2)
    y = np.einsum("zk,mjkc->zjmc", g, np.asarray(basis(p)))
    weight = weight / weight.sum()
    mean = np.einsum("z,zmc->mc", weight, y[:, 0])
    away = y[:, 0] - mean
    Sigma = np.einsum("z,zmc,zmd->mcd", weight, away, away)
    variance = np.array(list(TRAITS.values())) ** 2
    Sigma += np.einsum("z,j,zjmc,zjmd->mcd", weight, variance, y[:, 1:], y[:, 1:])
    field = tubes(1, noise=0.3).law(torch.as_tensor(p), torch.tensor(t, dtype=torch.float64))
    np.testing.assert_allclose(field.mu, mean - p, atol=1e-9)
    np.testing.assert_allclose(field.Sigma, Sigma + 0.09 * np.eye(3), atol=1e-9)


def test_one_points_spread_is_mostly_not_age() -> None:
    study = tubes(1)
    p = torch.as_tensor(study.correspondence.template)
    for t in (5.0, 100.0, 195.0):
        rate = field_and_rate(study.law, p, torch.tensor(t, dtype=torch.float64))
        tempo = SPREAD(t) ** 2 * (rate.mu_t**2).sum(-1)
        total = rate.field.Sigma.diagonal(dim1=-2, dim2=-1).sum(-1)
        assert float((tempo / total).max()) < 0.3


@pytest.mark.parametrize(
    "wrong",
    [
        {"subjects": 0},
        {"noise": -1.0},
        {"test_subjects": -1},
        {"abnormal": -1},
        {"rings": 1},
        {"around": 2},
        {"visits": 0},
        {"missing": 1.0},
    ],
)
def test_impossible_wishes_are_refused(wrong: dict) -> None:
    with pytest.raises(QueryError, match=f"{next(iter(wrong))} must be"):
        tubes(**wrong)
