from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from prism.cohort import Correspondence, Visits
from prism.population import PopulationConfig, Units
from prism.population.config import ENSEMBLES, PLAIN_SHARE
from prism.population.fit import mean_loss
from prism.population.lattice import TimeLattice
from prism.population.plain import ROWS, PlainCourse
from tests.problems.tiny import CONFIG
from tests.unit.population.test_losses import gradients, task

LEANING = replace(CONFIG, weight_plain=0.7)


def bent(t: np.ndarray) -> np.ndarray:
    """Three points of the plane that grow along a cubic, one of them not at all, (N, 3, 2)."""
    way = np.array([[1.0, 0.0], [0.0, 0.0], [-1.0, 2.0]])
    return (t + 0.1 * t**2 - 0.02 * t**3)[:, None, None] * way


def bent_cohort(count: int = 40) -> Correspondence:
    t = np.sort(np.random.default_rng(0).uniform(3, 9, count))
    visits = Visits(np.arange(count) // 2, np.arange(count), t)
    points = bent(t)
    points[::3, 0] = np.nan
    return Correspondence(points, visits, template=bent(np.array([4.0]))[0])


def test_growth_along_a_cubic_is_found_in_the_networks_units() -> None:
    cohort = bent_cohort()
    units = Units.of(cohort.template, cohort.displacements, cohort.visits.t)
    plain = PlainCourse.of(cohort, units)
    assert plain.table.shape == (ROWS, 3, 2)
    s = torch.linspace(0, 1, 23)
    found, counted = plain.at(s)
    t = units.t_first + units.t_range * s.numpy()
    expected = (bent(t) - cohort.template) / units.displacement
    np.testing.assert_allclose(found, expected, atol=3e-3)
    assert counted.all()


def test_nothing_is_claimed_outside_the_ages() -> None:
    plain = PlainCourse(torch.arange(3.0)[:, None, None].expand(-1, 2, 2))
    found, counted = plain.at(torch.tensor([-0.1, 0.0, 0.25, 1.0, 1.2]))
    np.testing.assert_allclose(found[:, 0, 0], [0, 0, 0.5, 2, 2])
    assert counted[:, 0].tolist() == [False, True, True, True, False]


@pytest.mark.parametrize("lattice", [0, 18])
def test_the_mean_is_held_against_the_course_and_the_spread_is_not(lattice: int) -> None:
    config = replace(LEANING, lattice=lattice, smoothness=0.0, mean_corner=0.0)
    leaning, free = task(config), task(replace(config, weight_plain=0.0))
    for warm in (10, 0):
        leaning.warm = free.warm = warm
        batch = leaning.batch(3)
        p, s, offset, plain = batch[0], batch[1], batch[4], batch[5]
        times = TimeLattice.over(s, offset, lattice)
        course = times.values(leaning.network.mean, p)
        expected, counted = PlainCourse(plain).at(times.times)
        gap = leaning.loss(3, *batch) - free.loss(3, *free.batch(3))
        assert float(gap) == pytest.approx(
            0.7 * float(mean_loss(expected, course, counted)), rel=1e-4
        )
        leaning.network.zero_grad(set_to_none=True)
        gap.backward()
        ours = [float(g.abs().max()) for g in gradients(leaning.network.cholesky)]
        free.network.zero_grad(set_to_none=True)
        free.loss(3, *free.batch(3)).backward()
        theirs = [float(g.abs().max()) for g in gradients(free.network.cholesky)]
        assert ours == pytest.approx(theirs)


def test_a_part_of_the_points_has_its_part_of_the_course() -> None:
    job = task(replace(LEANING, points=10))
    batch = job.batch(2)
    whole = {tuple(p.tolist()): job.plain[:, k] for k, p in enumerate(job.p)}
    for k, p in enumerate(batch[0]):
        assert torch.equal(batch[5][:, k], whole[tuple(p.tolist())])


def test_small_cohorts_lean_on_a_course_and_large_ones_do_not() -> None:
    default = PopulationConfig()
    most = max(most for most, _ in ENSEMBLES)
    assert default.settled(most, 900).weight_plain == PLAIN_SHARE
    assert default.settled(most + 1, 900).weight_plain == 0
    assert replace(default, members=1).settled(20, 20).weight_plain == 0
    assert replace(default, weight_plain=2.0).settled(5000, 5000).weight_plain == 2
