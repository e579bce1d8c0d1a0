from __future__ import annotations

import numpy as np
import pytest
import torch

from prism.errors import QueryError
from prism.simulate import starman
from prism.simulate.clock import LogisticSpread, draw_visits, drifting, intrinsic_time
from prism.simulate.starman import (
    _TIPS,
    SPREADS,
    StarmanLaw,
    growth_directions,
    outline,
    trait_fields,
)


def test_each_tip_moves_at_unit_speed_along_its_own_direction() -> None:
    w = np.asarray(growth_directions(_TIPS))  # (4 tips, 2 regions, 2)
    expected = np.zeros((4, 2, 2))
    expected[[0, 1], 0, 1] = 1.0
    expected[2, 1, 0], expected[3, 1, 0] = 1.0, -1.0
    np.testing.assert_allclose(w, expected, atol=1e-3)  # limbs hardly feel each other


def test_growth_is_the_same_for_arrays_and_tensors() -> None:
    p = outline(30)
    np.testing.assert_allclose(growth_directions(torch.as_tensor(p)), growth_directions(p))


def test_the_outline_is_uniform_in_arc_length_and_of_known_size() -> None:
    p = outline(2000)
    step = np.linalg.norm(np.roll(p, -1, axis=0) - p, axis=1)
    assert step.max() / step.min() < 1.01
    assert np.abs(p).max(axis=0) == pytest.approx([1.65, 1.79], abs=0.03)
    np.testing.assert_allclose(np.sort(p[:, 0]), np.sort(-p[:, 0]), atol=0.01)  # mirrored


def test_logistic_spread_rises_between_its_levels() -> None:
    spread = LogisticSpread(0.01, 0.2, 0.88, 0.12)
    assert spread(np.array(0.88)) == pytest.approx(0.105)
    assert spread(np.array(1.0)) == pytest.approx(0.01 + 0.19 / (1 + np.exp(-1)))  # one width on
    assert spread(np.array(-50.0)) == pytest.approx(0.01)
    assert spread(np.array(50.0)) == pytest.approx(0.2)
    t = torch.linspace(0, 1, 5, dtype=torch.float64)
    np.testing.assert_allclose(spread(t), spread(t.numpy()))


def test_tempo_is_age_plus_z_spreads() -> None:
    spread, t = SPREADS["global"][0], np.array([0.1, 0.9])
    np.testing.assert_allclose(intrinsic_time(t, 2.0, spread), t + 2 * np.asarray(spread(t)))


def test_visits_are_one_to_most_and_rise_within_a_subject() -> None:
    owner, t, z = draw_visits(500, 9, np.random.default_rng(0))
    counts = np.bincount(owner)
    assert (counts.min(), counts.max()) == (1, 9)
    assert (np.diff(t)[np.diff(owner) == 0] > 0).all()
    assert all(len(set(z[owner == i])) == 1 for i in range(500))
    assert 0 <= t.min() < t.max() <= 1


def test_same_seed_same_cohort_other_seed_another() -> None:
    a, b, c = (starman(subjects=5, seed=s, noise=0.01, missing=0.1) for s in (1, 1, 2))
    np.testing.assert_array_equal(a.correspondence.points, b.correspondence.points)
    np.testing.assert_array_equal(a.correspondence.visits.t, b.correspondence.visits.t)
    assert len(a) != len(c) or not np.array_equal(a.correspondence.points, c.correspondence.points)


@pytest.mark.parametrize("kind", ["global", "local"])
def test_each_subject_keeps_its_z_at_every_visit_and_region(kind) -> None:
    study = starman(kind, subjects=40, seed=3)
    visits = study.correspondence.visits
    paces = np.stack([np.asarray(s(visits.t)) for s in SPREADS[kind]], axis=-1)
    z = (study.truth.tau - visits.t[:, None]) / paces
    for subject in visits.subjects:
        mine = z[visits.subject == subject]
        np.testing.assert_allclose(mine, mine[0, 0], atol=1e-9)
    assert np.std(z) == pytest.approx(1, abs=0.3)
    assert (study.truth.tau_global is None) == (kind == "local")


def test_noise_and_gaps_are_as_asked() -> None:
    study = starman(subjects=60, seed=0, noise=0.05, missing=0.2)
    cohort, clean = study.correspondence, study.truth.clean
    assert (~cohort.observed).sum(axis=1).tolist() == [20] * len(cohort)
    starts = cohort.observed & ~np.roll(cohort.observed, -1, axis=1)
    assert (starts.sum(axis=1) == 1).all()  # one run a shape
    assert np.nanstd(cohort.points - clean) == pytest.approx(0.05, rel=0.02)
    assert np.isfinite(clean).all()


def test_the_truth_is_the_law() -> None:
    study = starman(subjects=2000, seed=0, noise=0.02, visits=1, resolution=16)
    p = torch.as_tensor(study.correspondence.template)
    law = study.law(p, torch.as_tensor(study.correspondence.visits.t)[:, None])
    white = law.whiten(torch.as_tensor(study.correspondence.displacements))
    assert float(white.mean()) == pytest.approx(0, abs=0.05)
    assert float(white.var()) == pytest.approx(1, abs=0.05)
    grid = torch.as_tensor(study.truth.t_grid)[:, None]
    np.testing.assert_allclose(study.truth.mean, p + study.law(p, grid).mu, atol=1e-12)


def test_the_law_broadcasts_points_and_times() -> None:
    p = torch.as_tensor(outline(16))
    field = StarmanLaw("local", 0.01)(p[:, None], torch.rand(1, 3, dtype=torch.float64))
    assert field.mu.shape == (16, 3, 2)
    assert field.L.shape == (16, 3, 3)


def test_splits_hold_the_subjects_asked_for() -> None:
    study = starman(subjects=7, test_subjects=3, seed=0)
    parts = [study.of_split(name).correspondence.visits.subjects for name in ("train", "test")]
    assert [len(part) for part in parts] == [7, 3]
    assert not set(parts[0]) & set(parts[1])
    assert len(study.of_split("test").truth.tau) == len(study.of_split("test"))


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "both"},
        {"subjects": 0},
        {"noise": -1.0},
        {"missing": 1.0},
        {"resolution": 3},
        {"traits": -0.1},
        {"traits": np.inf},
        {"drift": -1.0},
        {"drift": np.nan},
    ],
)
def test_impossible_wishes_are_refused(wrong: dict) -> None:
    with pytest.raises(QueryError, match=f"{next(iter(wrong))} must be"):
        starman(**wrong)


def test_trait_fields_have_unit_variance_everywhere_and_are_smooth() -> None:
    p = outline(200)
    fields = trait_fields(p)
    np.testing.assert_allclose(
        np.einsum("mjk,mjl->mkl", fields, fields),
        np.broadcast_to(np.eye(2), (200, 2, 2)),
        atol=1e-12,
    )
    step = np.linalg.norm(np.diff(p, axis=0), axis=1)
    slope = np.linalg.norm(np.diff(fields, axis=0), axis=(1, 2)) / step
    assert slope.max() < 4  # of the order of 2 pi / wavelength


def test_traits_last_over_visits_and_leave_age_alone() -> None:
    plain, with_traits = (starman(subjects=300, seed=4, noise=0.01, traits=x) for x in (0.0, 0.2))
    visits = with_traits.correspondence.visits
    np.testing.assert_array_equal(visits.t, plain.correspondence.visits.t)
    np.testing.assert_array_equal(with_traits.truth.tau, plain.truth.tau)
    np.testing.assert_array_equal(with_traits.truth.mean, plain.truth.mean)
    extra = with_traits.truth.clean - plain.truth.clean
    seen = with_traits.correspondence.points - plain.correspondence.points
    np.testing.assert_allclose(seen, extra, atol=1e-12)
    first = np.array([np.flatnonzero(visits.subject == name)[0] for name in visits.subjects])
    assert extra[first].std() == pytest.approx(0.2, rel=0.1)
    for name, row in zip(visits.subjects, first, strict=True):
        mine = extra[visits.subject == name]
        np.testing.assert_allclose(mine, mine * 0 + extra[row], atol=1e-12)


def test_the_truth_is_the_law_with_traits_and_drift() -> None:
    study = starman(
        "local", subjects=4000, seed=0, noise=0.02, visits=2, resolution=16, traits=0.1, drift=2.0
    )
    p = torch.as_tensor(study.correspondence.template)
    law = study.law(p, torch.as_tensor(study.correspondence.visits.t)[:, None])
    white = law.whiten(torch.as_tensor(study.correspondence.displacements))
    np.testing.assert_allclose(white.mean(0), 0, atol=0.06)
    np.testing.assert_allclose(white.var(0), 1, atol=0.1)


@pytest.mark.parametrize("more", [{}, {"traits": 0.2, "drift": 3.0}])
def test_further_options_leave_the_other_draws_as_they_are(more: dict) -> None:
    study = starman(subjects=8, seed=6, noise=0.1, **more)
    rng = np.random.default_rng(6)
    _, t, z = draw_visits(8, 9, rng)
    np.testing.assert_array_equal(study.correspondence.visits.t, t)
    noise = rng.standard_normal(study.truth.clean.shape)
    np.testing.assert_array_equal(study.correspondence.points, study.truth.clean + 0.1 * noise)
    if not more:
        w = np.asarray(growth_directions(outline(100)))
        tau = np.stack([intrinsic_time(t, z, spread) for spread in SPREADS["global"]], axis=-1)
        clean = outline(100) + np.einsum("nr,mrk->nmk", tau, w)
        np.testing.assert_array_equal(study.truth.clean, clean)


def test_a_tempo_without_drift_stays_as_it_is() -> None:
    rng = np.random.default_rng(0)
    owner, t, z = draw_visits(50, 9, rng)
    np.testing.assert_array_equal(drifting(owner, t, z, 0.0, rng), z)


def test_drifting_tempo_correlates_by_the_exponential_of_the_gap() -> None:
    count, gaps, drift = 40_000, np.array([0.0, 0.1, 0.4]), 3.0
    rng = np.random.default_rng(0)
    owner, t = np.repeat(np.arange(count), 3), np.tile(0.2 + gaps, count)
    start = np.repeat(rng.standard_normal(count), 3)
    z = drifting(owner, t, start, drift, rng).reshape(count, 3)
    np.testing.assert_array_equal(z[:, 0], start[::3])
    expected = np.exp(-drift * np.abs(gaps[:, None] - gaps))
    np.testing.assert_allclose(np.cov(z.T), expected, atol=0.025)


def test_drift_moves_tau_and_nothing_else() -> None:
    plain, drifted = (starman(subjects=40, seed=5, traits=0.1, drift=x) for x in (0.0, 4.0))
    np.testing.assert_array_equal(plain.correspondence.visits.t, drifted.correspondence.visits.t)
    visits, w = plain.correspondence.visits, np.asarray(growth_directions(outline(100)))
    first = np.array([np.flatnonzero(visits.subject == name)[0] for name in visits.subjects])
    np.testing.assert_allclose(plain.truth.tau[first], drifted.truth.tau[first])
    assert not np.allclose(plain.truth.tau, drifted.truth.tau)
    moved = np.einsum("nr,mrk->nmk", drifted.truth.tau - plain.truth.tau, w)
    np.testing.assert_allclose(drifted.truth.clean - plain.truth.clean, moved, atol=1e-12)
