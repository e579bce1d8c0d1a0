from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from prism.applications.times import tempo_spread
from prism.cohort import Correspondence
from prism.model import PRISM
from prism.model.calibrated import Calibration
from prism.model.clock import (
    CLOCK_BENDS,
    clock_ages,
    clock_bend,
    clock_covariance,
    clock_error,
    clock_visits,
    clock_weight,
    point_clock_error,
)
from prism.model.core import _held_out
from prism.simulate.study import Study


def test_a_clock_that_nobody_has_shown_is_not_known(tiny_model: PRISM) -> None:
    nothing = replace(tiny_model, calibration=Calibration.none(tiny_model.template))
    ages = np.array(tiny_model.ages)
    assert np.isinf(clock_error(nothing, ages)).all()
    assert np.isinf(point_clock_error(nothing, ages)).all()


def test_the_clock_counts_the_subjects_it_was_learned_from(
    tiny_model: PRISM, tiny_study: Study
) -> None:
    cohort = tiny_study.correspondence
    (names,) = _held_out(cohort, tiny_model.population.config, tiny_model.provenance["seed"])
    assert names
    visits, pairs = clock_visits(tiny_model, cohort[~np.isin(cohort.visits.subject, names)])
    np.testing.assert_array_equal(tiny_model.calibration.clock_visits, visits)
    np.testing.assert_array_equal(tiny_model.calibration.clock_pairs, pairs)


def test_visits_of_a_subject_are_paired_for_the_clock(tiny_model: PRISM, tiny_study: Study) -> None:
    cohort = tiny_study.correspondence
    t, (_, count) = cohort.visits.t, np.unique(cohort.visits.subject, return_counts=True)
    visits, pairs = clock_visits(tiny_model, cohort)
    assert visits.sum() == pytest.approx(len(t))
    assert visits @ clock_ages(tiny_model) == pytest.approx(t.sum())
    assert pairs.sum() == pytest.approx(np.square(count).sum())


def _clock_problem(
    model: PRISM, cohort: Correspondence
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Curves (N, C) at the visits, (3, C) at three times, weights and spreads (N,) of visits."""
    fine = np.linspace(0, 1, 8001)
    box = (fine[:, None] * CLOCK_BENDS // 1).clip(0, CLOCK_BENDS - 1) == np.arange(CLOCK_BENDS)
    curves = np.cumsum(np.cumsum(box, axis=0), axis=0) * (fine[1] - fine[0]) ** 2  # c'' = 1 in it

    def lines(s: np.ndarray) -> np.ndarray:
        bends = [np.interp(s, fine, curve) for curve in curves.T]
        return np.stack([np.ones_like(s), s, *bends], axis=1)

    first, last = model.ages
    t = cohort.visits.t
    spread = tempo_spread(model, t) / model.calibration.spread_scale
    weight = np.interp(t, clock_ages(model), clock_weight(model).sum(axis=1))
    return lines((t - first) / (last - first)), lines(np.array([0.0, 0.4, 1.0])), weight, spread


def _clock_claim(model: PRISM, cohort: Correspondence, best: bool = False) -> np.ndarray:
    """Error at the first age, 0.4 of the way and the last age, by training's or best weights."""
    spread = tempo_spread(model, clock_ages(model)) / model.calibration.spread_scale
    weight = spread**-2 if best else clock_weight(model).sum(axis=1)
    clock = clock_covariance(model, *clock_visits(model, cohort), weight, spread)
    one = replace(model, calibration=replace(model.calibration, clock=clock))
    first, last = model.ages
    times = np.array([first, first + 0.4 * (last - first), last])
    error = clock_error(one, times)
    np.testing.assert_allclose(clock_error(one, times[[0, 2]] + [-1, 1]), error[[0, 2]])
    return error


def test_the_clock_is_a_bending_line_fitted_to_the_subjects(
    tiny_model: PRISM, tiny_study: Study
) -> None:
    """Draw tempi and bends many times and fit them as training does: they err as claimed."""
    cohort = tiny_study.correspondence
    curves, at, weight, spread = _clock_problem(tiny_model, cohort)
    _, owner = np.unique(cohort.visits.subject, return_inverse=True)
    count = np.bincount(owner)
    weight = weight * count.sum() / np.square(count).sum() * (spread**-2.0).sum() / weight.sum()
    bend = clock_bend(tiny_model, clock_ages(tiny_model))
    prior = np.diag([0.0, 0.0, *[bend**-2.0] * CLOCK_BENDS])

    rng, draws = np.random.default_rng(0), 20_000
    true = np.zeros((draws, 2 + CLOCK_BENDS))
    true[:, 2:] = bend * rng.standard_normal((draws, CLOCK_BENDS))
    ahead = true @ curves.T + rng.standard_normal((draws, len(count)))[:, owner] * spread
    heard = (curves * weight[:, None]).T
    found = np.linalg.solve(heard @ curves + prior, heard @ ahead.T).T
    error = np.sqrt(np.square((found - true) @ at.T).mean(axis=0))
    np.testing.assert_allclose(_clock_claim(tiny_model, cohort), error, rtol=3e-2)


def test_the_clock_is_best_known_when_visits_weigh_by_their_spread(
    tiny_model: PRISM, tiny_study: Study
) -> None:
    """One visit a subject, weights spread^-2: the posterior of weighted least squares."""
    visits = tiny_study.correspondence.visits
    once = tiny_study.correspondence[np.unique(visits.subject, return_index=True)[1]]
    curves, at, _, spread = _clock_problem(tiny_model, once)
    straight = np.eye(2 + CLOCK_BENDS)[2:] / clock_bend(tiny_model, clock_ages(tiny_model))
    design = np.vstack([curves / spread[:, None], straight])
    expected = np.sqrt(np.einsum("ti,ij,tj->t", at, np.linalg.inv(design.T @ design), at))
    best = _clock_claim(tiny_model, once, best=True)
    np.testing.assert_allclose(best, expected, rtol=2e-2)
    assert (_clock_claim(tiny_model, once) >= 0.99 * best).all()


def test_a_point_has_a_clock_of_its_own(tiny_model: PRISM, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where tau is the time of a point alone, its clock is that of the whole; in any runs."""
    monkeypatch.setattr("prism.model.clock.MOST_POINTS", 5)
    known, t = tiny_model.calibration, np.array([0.3, 0.7])
    spread, weight = tiny_model.spread(clock_ages(tiny_model)), clock_weight(tiny_model)
    found = point_clock_error(tiny_model, t)
    for p in (0, 7):
        sure = known.clock_visits, known.clock_pairs, weight[:, p], spread[:, p]
        one = replace(known, clock=clock_covariance(tiny_model, *sure))
        alone = clock_error(replace(tiny_model, calibration=one), t)
        np.testing.assert_allclose(found[:, p], alone)


def test_the_clock_may_bend_as_far_as_growth_does() -> None:
    class Parabola:
        ages, template = (2.0, 6.0), np.ones((3, 2))

        def mean_shapes(self, tau: np.ndarray) -> np.ndarray:
            return (tau + 0.1 * tau**2)[..., None] * self.template

    # mu_ss = 0.2 * 4^2, mu_t = 1 + 0.2 tau
    pace = np.sqrt(np.mean((1 + 0.2 * np.linspace(2, 6, 4001)) ** 2))
    found = clock_bend(Parabola(), np.linspace(2, 6, 65))  # type: ignore[arg-type]
    assert found == pytest.approx(0.2 * 16 / pace, rel=1e-3)
