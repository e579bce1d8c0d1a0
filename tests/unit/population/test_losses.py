from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from prism.gaussian import GaussianField
from prism.population import PRESETS, PopulationConfig, Units
from prism.population.field import CovariateNetwork, FieldNetworks
from prism.population.fit import (
    CURVATURE_LATTICE,
    CURVATURE_UNIT,
    PopulationTask,
    covariance_loss,
    curvature_penalty,
    mean_loss,
    noise_floor,
    residual_spread,
    rounded_mean_loss,
)
from prism.population.lattice import TimeLattice
from tests.problems.tiny import CONFIG, tiny_cohort


def task(config: PopulationConfig = CONFIG, **options: object) -> PopulationTask:
    """A training task on the tiny cohort; its networks are as drawn."""
    cohort = tiny_cohort(**options).correspondence
    units = Units.of(cohort.template, cohort.displacements, cohort.visits.t)
    torch.manual_seed(0)
    networks = FieldNetworks(2, config, 0.01)
    networks.start_at(torch.zeros(2), 1.0)
    return PopulationTask(networks, units, config, cohort, cohort, 0, torch.device("cpu"))


def gradients(branch: torch.nn.Module) -> list[torch.Tensor]:
    return [w.grad for w in branch.parameters() if w.grad is not None]


def test_the_mean_loss_is_the_mean_absolute_sum() -> None:
    d = torch.tensor([[1.0, -2.0], [0.5, 0.0]])
    seen = torch.tensor([True, True])
    assert float(mean_loss(d, torch.zeros(2, 2), seen)) == pytest.approx((3 + 0.5) / 2)


def test_the_covariance_loss_teaches_the_mean_branch_nothing() -> None:
    job = task()
    p, s, d, seen = job.batch(0)[:4]
    mu, L = job.network.mean(p, s[:, None]), job.network.factor(p, s[:, None])
    covariance_loss(d, mu, L, seen).backward()
    assert gradients(job.network.mean) == []
    assert any(g.abs().max() > 0 for g in gradients(job.network.cholesky))


def test_the_mean_loss_teaches_the_covariance_branch_nothing() -> None:
    job = task()
    p, s, d, seen = job.batch(0)[:4]
    mean_loss(d, job.network.mean(p, s[:, None]), seen).backward()
    assert gradients(job.network.cholesky) == []
    assert any(g.abs().max() > 0 for g in gradients(job.network.mean))


def test_the_mean_learns_the_same_in_both_stages() -> None:
    job = task(replace(CONFIG, mean_corner=0.0))  # the paper's loss
    batch = job.batch(3)
    stages = []
    for warm in (10, 0):
        job.warm = warm
        job.network.zero_grad()
        job.loss(3, *batch).backward()
        stages.append([g.clone() for g in gradients(job.network.mean)])
        assert job.stage(3) == (1 if warm else 2)
        assert bool(gradients(job.network.cholesky)) == (warm == 0)
        job.network.zero_grad(set_to_none=True)
    assert all(torch.equal(a, b) for a, b in zip(*stages, strict=True))


def test_the_rounded_corner_is_quadratic_near_and_absolute_far() -> None:
    mu, seen, one = torch.zeros(1, 2), torch.tensor([True]), torch.ones(1, 2)
    d = torch.tensor([[3.0, -4.0]])
    expected = (9 + 1) ** 0.5 - 1 + (16 + 4) ** 0.5 - 2
    corner = torch.tensor([[1.0, 2.0]])
    assert float(rounded_mean_loss(d, mu, corner, seen)) == pytest.approx(expected)
    near, far = 1e-2 * one, 1e4 * one
    assert float(rounded_mean_loss(near, mu, one, seen)) == pytest.approx(2 * 1e-4 / 2, rel=1e-2)
    outlier = float(rounded_mean_loss(far, mu, one, seen))
    assert outlier == pytest.approx(float(mean_loss(far, mu, seen)) - 2, rel=1e-6)
    sharp = rounded_mean_loss(d, mu, 0 * corner, seen)
    torch.testing.assert_close(sharp, mean_loss(d, mu, seen))


def test_a_rounded_corner_averages_where_the_median_would_not() -> None:
    d = torch.tensor([[0.0], [0.0], [0.3]], dtype=torch.float64)
    seen, corner = torch.ones(3, dtype=torch.bool), torch.ones(3, 1, dtype=torch.float64)
    grid = torch.linspace(-0.1, 0.4, 501, dtype=torch.float64)
    best = [
        float(grid[int(torch.stack([loss(m.expand(3, 1)) for m in grid]).argmin())])
        for loss in (
            lambda m: rounded_mean_loss(d, m, corner, seen),
            lambda m: mean_loss(d, m, seen),
        )
    ]
    assert best[0] == pytest.approx(0.1, abs=0.005)
    assert best[1] == pytest.approx(0.0, abs=1e-9)


def test_the_rounded_loss_teaches_the_covariance_nothing() -> None:
    mean, both = {}, {}
    for corner, grads in ((0.5, both), (0.0, mean)):
        job = task(
            replace(CONFIG, mean_corner=corner, weight_covariance=0.0, smoothness_spread=0.0)
        )
        job.warm = 0
        job.loss(3, *job.batch(3)).backward()
        grads["mean"] = torch.cat([g.flatten() for g in gradients(job.network.mean)])
        rest = [g for g in gradients(job.network.cholesky) if g.abs().max() > 0]
        assert rest == []
    assert not torch.equal(mean["mean"], both["mean"])


def test_what_stands_in_a_gap_changes_no_loss() -> None:
    job = task()
    p, s, d, seen = job.batch(0)[:4]
    seen = torch.rand(seen.shape, generator=torch.Generator().manual_seed(0)) > 0.3
    other = torch.where(seen[..., None], d, 1e6)
    mu, L = job.network.mean(p, s[:, None]), job.network.factor(p, s[:, None])
    assert torch.equal(mean_loss(d, mu, seen), mean_loss(other, mu, seen))
    assert torch.equal(covariance_loss(d, mu, L, seen), covariance_loss(other, mu, L, seen))
    rounded = [rounded_mean_loss(shape, mu, torch.ones_like(mu), seen) for shape in (d, other)]
    assert torch.equal(*rounded)


def test_missing_points_are_marked_and_no_nan_enters() -> None:
    job = task(missing=0.2)
    d, seen = job.batch(0)[2:4]
    assert 0.15 < 1 - float(seen.double().mean()) < 0.25
    assert torch.isfinite(d).all()
    assert torch.isfinite(job.loss(0, *job.batch(0)))


def test_the_same_step_draws_the_same_batch() -> None:
    job = task()
    same, other = [job.batch(step) for step in (5, 5)], job.batch(6)
    assert all(torch.equal(a, b) for a, b in zip(*same, strict=True))
    assert not torch.equal(same[0][1], other[1])


def test_large_templates_are_read_in_parts() -> None:
    job = task(replace(CONFIG, points=10))
    p, s, d, seen = job.batch(0)[:4]
    assert p.shape == (10, 2)
    assert d.shape[:2] == seen.shape == (len(s), 10)


def penalty(course: Callable[[torch.Tensor], torch.Tensor], spans: int = 28) -> float:
    """The prior on a course in time that is the same at 7 points, in 2 coordinates."""
    s = torch.linspace(0, 1, spans + 1, dtype=torch.float64)
    return float(curvature_penalty(course(s)[:, None, None].expand(-1, 7, 2), 1 / spans))


def test_a_straight_course_has_the_least_curvature() -> None:
    straight = penalty(lambda s: 4 * s - 3)
    assert straight == pytest.approx(np.log(CURVATURE_UNIT))
    assert straight < penalty(lambda s: s**2) < penalty(lambda s: 3 * s**2)


@pytest.mark.parametrize("spans", [2, 14, 28, 100])
def test_the_prior_measures_the_second_derivative(spans: int) -> None:
    # mu = 5/2 s^2 in two coordinates: |mu_tt|^2 = 2 * 5^2.
    assert penalty(lambda s: 2.5 * s**2, spans) == pytest.approx(np.log(CURVATURE_UNIT + 50))


def test_the_prior_looks_over_the_same_time_on_any_lattice() -> None:
    wiggly = [penalty(lambda s: torch.sin(40 * s), spans) for spans in (14, 28, 42, 140)]
    assert wiggly == pytest.approx([wiggly[0]] * 4, abs=0.15)


def test_the_prior_grows_as_a_logarithm_so_that_true_bends_survive() -> None:
    gain = penalty(lambda s: 1000 * s**2) - penalty(lambda s: 100 * s**2)
    assert gain == pytest.approx(np.log(100), rel=1e-4)


def prior_on(
    job: PopulationTask, part: CovariateNetwork, batch: tuple[torch.Tensor, ...]
) -> torch.Tensor:
    """The prior on a part's curvature, on a lattice where the shapes themselves need none."""
    size = job.lattice or CURVATURE_LATTICE
    times = TimeLattice.over(batch[1], batch[4] if job.lattice else torch.zeros(()), size)
    return curvature_penalty(times.values(part.f, batch[0]), times.spacing)


@pytest.mark.parametrize("lattice", [0, 18, 32])
def test_the_prior_fades_with_the_subjects_and_can_be_switched_off(lattice: int) -> None:
    config = replace(CONFIG, lattice=lattice)
    with_prior, without = (task(replace(config, smoothness=k)) for k in (6.0, 0.0))
    batch = with_prior.batch(0)
    prior = prior_on(with_prior, with_prior.network.mean, batch)
    gap = with_prior.loss(0, *batch) - without.loss(0, *batch)
    torch.testing.assert_close(gap, 6 / 12**0.5 * prior, rtol=1e-4, atol=0)


def test_the_prior_on_the_spread_fades_with_the_square_of_the_visits() -> None:
    with_prior, without = (task(replace(CONFIG, smoothness_spread=k)) for k in (1e5, 0.0))
    batch, visits = with_prior.batch(0), len(with_prior.data[0])
    prior = prior_on(with_prior, with_prior.network.cholesky, batch)
    later = with_prior.warm + 1  # while the mean is learned alone, the spread has no loss
    gap = with_prior.loss(later, *batch) - without.loss(later, *batch)
    torch.testing.assert_close(gap, 1e5 / visits**2 * prior, rtol=1e-4, atol=0)


def test_the_held_out_score_waits_for_the_covariance() -> None:
    job = task()
    assert job.validate(job.warm) is None
    score = job.validate(job.warm + 1)
    assert score is not None
    assert np.isfinite(score)


def test_the_noise_floor_is_given_or_a_share_of_the_size() -> None:
    cohort = tiny_cohort().correspondence
    centred = cohort.template - cohort.template.mean(axis=0)
    radius = np.sqrt((centred**2).sum(-1).mean())
    assert noise_floor(cohort, CONFIG, spread=1e9) == pytest.approx(0.005 * radius)
    assert noise_floor(cohort, CONFIG, spread=0.001) == pytest.approx(0.00025)
    assert noise_floor(cohort, CONFIG, spread=0.0) == pytest.approx(0.005 * radius)
    assert noise_floor(cohort, replace(CONFIG, noise_floor=0.7), spread=0.001) == 0.7


def test_the_floor_follows_the_length_unit() -> None:
    cohort = tiny_cohort().correspondence
    big = replace(cohort, points=10 * cohort.points, template=10 * cohort.template)
    spread = residual_spread(cohort)
    assert residual_spread(big) == pytest.approx(10 * spread)
    floors = noise_floor(big, CONFIG, 10 * spread), noise_floor(cohort, CONFIG, spread)
    assert floors[0] == pytest.approx(10 * floors[1])


def test_residual_spread_forgets_a_cubic_course_and_a_point_nobody_has() -> None:
    cohort = tiny_cohort().correspondence
    t = cohort.visits.t
    noise = 0.03 * np.random.default_rng(0).standard_normal(cohort.points.shape)
    moved = cohort.template + (t**3 - 2 * t)[:, None, None] + noise
    moved[:, 4] = np.nan
    found = residual_spread(replace(cohort, points=moved))
    assert found == pytest.approx(0.03, rel=0.1)


@pytest.mark.parametrize("n", [2, 3])
def test_the_floor_lends_no_spread_to_other_directions(n: int) -> None:
    """People who differ along one axis alone, and the floor far above what they do across it."""
    torch.manual_seed(0)
    along = torch.full((n,), 1e-3)
    along[-1] = 1.0
    d = torch.randn(4096, 1) * along
    networks = FieldNetworks(n, CONFIG, 0.1)
    raw = networks.diagonal.float().clone().requires_grad_()
    fall = torch.optim.Adam([raw], lr=0.02)
    for _ in range(1500):
        fall.zero_grad()
        L = networks.shape_factor(raw).expand(len(d), -1)
        covariance_loss(d, torch.zeros(n), L, torch.ones(len(d), dtype=torch.bool)).backward()
        fall.step()
    std = GaussianField(torch.zeros(n), networks.shape_factor(raw)).std.detach()
    torch.testing.assert_close(std[:-1], torch.full((n - 1,), 0.1), rtol=0.02, atol=0)
    torch.testing.assert_close(std[-1], torch.tensor(1.0), rtol=0.05, atol=0)


@pytest.mark.parametrize(("subjects", "omega"), [(3, 2.0), (64, 2.0), (400, 5.0), (5000, 8.0)])
def test_time_is_resolved_as_finely_as_subjects_allow(subjects: int, omega: float) -> None:
    assert PopulationConfig().settled(subjects, subjects).omega_time == omega
    assert PopulationConfig(omega_time=3.0).settled(subjects, subjects).omega_time == 3.0


@pytest.mark.parametrize(("subjects", "lattice"), [(3, 18), (400, 25), (5000, 32)])
def test_the_lattice_is_as_fine_as_time_is_resolved(subjects: int, lattice: int) -> None:
    assert PopulationConfig().settled(subjects, subjects).lattice == lattice
    assert PopulationConfig(lattice=9).settled(subjects, subjects).lattice == 9
    assert PRESETS["paper"].settled(subjects, subjects).lattice == 0


@pytest.mark.parametrize(
    ("subjects", "shapes", "steps"),
    [
        (9, 9, 300), (18, 18, 360), (18, 90, 1000), (50, 50, 1000), (50, 250, 1000),
        (60, 300, 1200), (150, 300, 2000), (1000, 5000, 2000),
    ],
)  # fmt: skip
def test_few_shapes_are_not_learned_by_heart(subjects: int, shapes: int, steps: int) -> None:
    assert PopulationConfig().settled(subjects, shapes).steps == steps
    assert PopulationConfig(steps=7).settled(subjects, shapes).steps == 7
