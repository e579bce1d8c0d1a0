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
    bound = (found.tau <= tiny_model.table.first) | (found.tau >= tiny_model.table.last)
    assert bound.mean() < 0.05
    np.testing.assert_array_equal(np.isinf(found.tau_se), bound)
    for name in ("tau", "tau_mean", "tau_fisher", "tau_mle", "z"):
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


def test_a_unit_by_another_name_is_the_same(model_in_space: PRISM) -> None:
    cohort = cohort_in_space(seed=1)[:2]
    assert cohort.time_unit == "weeks"
    found = intrinsic_time(model_in_space, replace(cohort, time_unit="week"))
    np.testing.assert_array_equal(found.tau, intrinsic_time(model_in_space, cohort).tau)


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
    known = replace(tiny_model.calibration, clock=1e-8 * tiny_model.calibration.clock)
    sure = replace(tiny_model, calibration=known)
    np.testing.assert_allclose(clock_error(sure, found.tau), 1e-4 * clock)
    surer = intrinsic_time(sure, tiny_study.correspondence).tau_se < found.tau_se
    assert surer[np.isfinite(found.tau_se)].all()


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


def test_a_time_at_the_end_of_those_searched_is_a_bound(
    tiny_model: PRISM, tiny_study: Study
) -> None:
    cohort = tiny_study.correspondence[:2]
    points = cohort.points.copy()
    ends = np.repeat(np.array(tiny_model.ages)[:, None], len(tiny_model.template), axis=1)
    young, old = tiny_model.mean_shapes(ends)
    points[1] = old + 5 * (old - young)
    found = intrinsic_time(tiny_model, replace(cohort, points=points))
    assert np.isfinite(found.tau_se[0])
    assert found.tau[1] == tiny_model.table.last
    assert found.tau_se[1] == np.inf
    assert found.extrapolated[1]
