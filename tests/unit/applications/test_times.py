from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from prism.applications import intrinsic_time
from prism.errors import ModelError
from prism.model import PRISM
from prism.model.clock import clock_error
from prism.simulate.study import Study
from tests.problems.tiny import cohort_in_space, tiny_cohort


def without_ages(cohort):
    return replace(cohort, visits=replace(cohort.visits, t=np.full(len(cohort), np.nan)))


def test_times_are_near_the_truth(tiny_model: PRISM, tiny_study: Study) -> None:
    found = intrinsic_time(tiny_model, tiny_study.correspondence)
    truth = tiny_study.truth.tau_global
    assert np.abs(found.tau - truth).mean() < 0.05
    assert np.corrcoef(found.tau_mle, truth)[0, 1] > 0.9
    assert (found.tau_se > 0).all()
    for name in ("tau", "tau_se", "tau_mean", "tau_fisher", "tau_mle", "z"):
        assert getattr(found, name).shape == (len(tiny_study),)
        assert np.isfinite(getattr(found, name)).all()


def test_unknown_ages_change_only_what_needs_an_age(tiny_model: PRISM, tiny_study: Study) -> None:
    known = intrinsic_time(tiny_model, tiny_study.correspondence)
    unknown = intrinsic_time(tiny_model, without_ages(tiny_study.correspondence))
    for name in ("tau", "tau_se", "tau_mean", "tau_mle", "point_tau_mle", "point_tau_encoder"):
        np.testing.assert_array_equal(getattr(unknown, name), getattr(known, name))
    assert np.isnan(unknown.z).all()
    assert np.isfinite(unknown.tau_fisher).all()
    itself = replace(tiny_study.correspondence.visits, t=known.tau)  # the age it looks stands in
    looked = intrinsic_time(tiny_model, replace(tiny_study.correspondence, visits=itself))
    np.testing.assert_array_equal(unknown.point_tau, looked.point_tau)


def test_missing_points_are_dated_by_the_rest_of_the_shape_alone(tiny_model: PRISM) -> None:
    study = tiny_cohort(seed=1, missing=0.3)
    found = intrinsic_time(tiny_model, study.correspondence)
    gone = ~study.correspondence.observed
    assert np.isnan(found.point_tau_mle[gone]).all()
    assert np.isnan(found.point_tau_encoder[gone]).all()
    whole = intrinsic_time(tiny_model, tiny_cohort(seed=1).correspondence)
    both = np.isfinite(found.point_se) & np.isfinite(whole.point_se)
    assert np.median(found.point_se[gone & both] / whole.point_se[gone & both]) > 1.01
    assert np.isfinite(found.tau).all()
    assert np.abs(found.tau - study.truth.tau_global).mean() < 0.1


def test_unreadable_points_say_so_in_both_columns(tiny_model: PRISM, tiny_study: Study) -> None:
    found = intrinsic_time(tiny_model, tiny_study.correspondence)
    assert np.array_equal(np.isnan(found.point_tau), np.isinf(found.point_se))
    assert np.isnan(found.point_tau).any()  # Starman's crown hardly moves


def test_a_shape_older_than_all_is_flagged_not_clipped(tiny_model: PRISM) -> None:
    cohort = tiny_cohort().correspondence[0]
    older = tiny_model.mean_shapes(np.full((1, 24), tiny_model.ages[1] + 0.2))
    found = intrinsic_time(tiny_model, replace(cohort, points=older))
    assert found.tau[0] == pytest.approx(tiny_model.ages[1] + 0.2, abs=0.02)
    assert found.extrapolated.tolist() == [True]


def test_one_visit_alone_gets_the_answer_it_gets_in_company(
    tiny_model: PRISM, tiny_study: Study
) -> None:
    together = intrinsic_time(tiny_model, tiny_study.correspondence)
    alone = intrinsic_time(tiny_model, tiny_study.correspondence[3])
    np.testing.assert_allclose(alone.tau, together.tau[3:4], atol=1e-6)
    np.testing.assert_allclose(alone.tau_mean, together.tau_mean[3:4], atol=1e-5)


def test_shapes_in_space_are_dated_too(model_in_space: PRISM) -> None:
    cohort = cohort_in_space(seed=1)
    found = intrinsic_time(model_in_space, cohort)
    assert np.abs(found.tau - cohort.visits.t).mean() < 5  # weeks, of 50


def test_a_cohort_that_does_not_fit_is_refused(tiny_model: PRISM, tiny_study: Study) -> None:
    flat = tiny_study.correspondence
    with pytest.raises(ModelError, match="is 3D, the model is 2D"):
        intrinsic_time(tiny_model, cohort_in_space())
    with pytest.raises(ModelError, match="measures time in years"):
        intrinsic_time(tiny_model, replace(flat, time_unit="years"))
    with pytest.raises(ModelError, match="measures length in mm"):
        intrinsic_time(tiny_model, replace(flat, length_unit="mm"))
    some = {"points": flat.points[:, :20], "template": flat.template[:20]}
    fewer = replace(flat, **some, cells=None, regions={})
    with pytest.raises(ModelError, match="20 points a shape, the model 24"):
        intrinsic_time(tiny_model, fewer)


def test_the_clock_itself_is_known_only_from_its_subjects(
    tiny_model: PRISM, tiny_study: Study
) -> None:
    found = intrinsic_time(tiny_model, tiny_study.correspondence)
    clock = clock_error(tiny_model, found.tau)
    assert (clock > 0).all()
    assert (found.tau_se >= clock).all()
    known = replace(tiny_model.calibration, clock=1e8 * tiny_model.calibration.clock)
    sure = replace(tiny_model, calibration=known)
    np.testing.assert_allclose(clock_error(sure, found.tau), 1e-4 * clock)
    assert (intrinsic_time(sure, tiny_study.correspondence).tau_se < found.tau_se).all()


def test_where_modes_count_errors_are_as_large_as_was_found(
    tiny_model: PRISM, tiny_study: Study
) -> None:
    def errors(**known: float) -> np.ndarray:
        model = replace(tiny_model, calibration=replace(tiny_model.calibration, **known))
        return intrinsic_time(model, tiny_study.correspondence).tau_se

    plain, sure = errors(modes=0.1, spread_scale=1.0), errors(modes=0.1, spread_scale=0.5)
    np.testing.assert_allclose(errors(modes=0.1, spread_scale=3.0), 3 * plain)
    np.testing.assert_array_equal(sure, plain)
    alone = errors(modes=0.0, spread_scale=1.0)
    np.testing.assert_array_equal(errors(modes=0.0, spread_scale=3.0), alone)


def test_a_clock_that_nobody_has_shown_is_not_known(tiny_model: PRISM) -> None:
    nothing = replace(tiny_model.calibration, clock=0 * tiny_model.calibration.clock)
    error = clock_error(replace(tiny_model, calibration=nothing), np.array(tiny_model.ages))
    assert (error > 1000 * np.ptp(tiny_model.ages)).all()


def test_the_clock_counts_the_subjects_it_was_learned_from(
    tiny_model: PRISM, tiny_study: Study
) -> None:
    from prism.model.clock import clock_people
    from prism.model.core import _held_out

    cohort = tiny_study.correspondence
    (names,) = _held_out(cohort, tiny_model.population.config, tiny_model.provenance["seed"])
    assert names
    learned = cohort[~np.isin(cohort.visits.subject, names)]
    people = tiny_model.calibration.clock_people
    np.testing.assert_array_equal(people, clock_people(tiny_model, learned))


def test_people_seen_often_are_worth_fewer_for_the_clock(
    tiny_model: PRISM, tiny_study: Study
) -> None:
    """The mean of tempi, each counted as often as seen, has the variance of so many."""
    from prism.model.clock import clock_people

    cohort = tiny_study.correspondence
    once = np.unique(cohort.visits.subject, return_index=True)[1]
    often = np.flatnonzero(cohort.visits.subject == cohort.visits.subjects[0])
    assert clock_people(tiny_model, cohort[once]).sum() == pytest.approx(len(once))
    uneven = cohort[np.union1d(once, often)]
    _, visits = np.unique(uneven.visits.subject, return_counts=True)
    weight = visits / visits.sum()
    people = clock_people(tiny_model, uneven).sum()
    assert people == pytest.approx(1 / np.square(weight).sum())
    assert people < len(once)


def test_the_clock_is_a_bending_line_fitted_to_the_subjects(
    tiny_model: PRISM, tiny_study: Study
) -> None:
    from prism.applications.times import tempo_spread
    from prism.model.clock import (
        CLOCK_BENDS,
        clock_ages,
        clock_bend,
        clock_information,
        clock_people,
    )

    visits = tiny_study.correspondence.visits
    once = tiny_study.correspondence[np.unique(visits.subject, return_index=True)[1]]
    first, last = tiny_model.ages
    s = (once.visits.t - first) / (last - first)
    spread = tempo_spread(tiny_model, once.visits.t) / tiny_model.calibration.spread_scale
    ages = clock_ages(tiny_model)
    bend = clock_bend(tiny_model, ages)

    fine = np.linspace(0, 1, 8001)
    box = (fine[:, None] * CLOCK_BENDS // 1).clip(0, CLOCK_BENDS - 1) == np.arange(CLOCK_BENDS)
    curves = np.cumsum(np.cumsum(box, axis=0), axis=0) * (fine[1] - fine[0]) ** 2  # c'' = 1 in it

    def lines(s: np.ndarray) -> np.ndarray:
        bends = [np.interp(s, fine, curve) for curve in curves.T]
        return np.stack([np.ones_like(s), s, *bends], axis=1)

    straight = np.eye(2 + CLOCK_BENDS)[2:] / bend  # straight growth, straight clock
    design = np.vstack([lines(s) / spread[:, None], straight])
    cov = np.linalg.inv(design.T @ design)  # of weighted least squares

    spread = tempo_spread(tiny_model, ages) / tiny_model.calibration.spread_scale
    clock = clock_information(tiny_model, clock_people(tiny_model, once), spread)
    one = replace(tiny_model, calibration=replace(tiny_model.calibration, clock=clock))
    basis = lines(np.array([0.0, 0.4, 1.0]))
    expected = np.sqrt(np.einsum("ti,ij,tj->t", basis, cov, basis))
    times = np.array([first, first + 0.4 * (last - first), last])
    np.testing.assert_allclose(clock_error(one, times), expected, rtol=2e-2)
    np.testing.assert_allclose(
        clock_error(one, times[[0, 2]] + [-1, 1]), expected[[0, 2]], rtol=2e-2
    )


def test_the_clock_may_bend_as_far_as_growth_does() -> None:
    from prism.model.clock import clock_bend

    class Parabola:
        ages, template = (2.0, 6.0), np.ones((3, 2))

        def mean_shapes(self, tau: np.ndarray) -> np.ndarray:
            return (tau + 0.1 * tau**2)[..., None] * self.template

    # mu_ss = 0.2 * 4^2, mu_t = 1 + 0.2 tau
    pace = np.sqrt(np.mean((1 + 0.2 * np.linspace(2, 6, 4001)) ** 2))
    found = clock_bend(Parabola(), np.linspace(2, 6, 65))  # type: ignore[arg-type]
    assert found == pytest.approx(0.2 * 16 / pace, rel=1e-3)
