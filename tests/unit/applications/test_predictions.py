from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from prism.applications import predict_shape
from prism.errors import QueryError
from prism.model import PRISM
from prism.simulate.study import Study
from tests.problems.tiny import cohort_in_space, tiny_cohort


def test_later_visits_are_forecast_from_the_first(tiny_model: PRISM, tiny_study: Study) -> None:
    cohort = tiny_study.correspondence
    found = predict_shape(tiny_model, cohort)
    assert (found.t1 > found.t0).all()
    np.testing.assert_array_equal(found.t1, cohort.visits.t[found.row1])
    np.testing.assert_array_equal(found.subject, cohort.visits.subject[found.row1])
    np.testing.assert_array_equal(found.from_visit, cohort.visits.visit[found.row0])
    assert len(found.points) == len(cohort) - len(cohort.visits.subjects)
    assert (found.lower < found.points).all()
    assert (found.points < found.upper).all()


def test_the_rule_mean_is_the_mean_shape_for_everyone(tiny_model: PRISM, tiny_study: Study) -> None:
    found = predict_shape(tiny_model, tiny_study.correspondence, t1=0.7, rule="mean")
    expected = tiny_model.mean_shapes(np.full((1, 24), 0.7))
    np.testing.assert_allclose(found.points, np.broadcast_to(expected, found.points.shape))
    assert (found.row1 == -1).all()


def test_forecasting_today_returns_the_dated_shape(tiny_model: PRISM, tiny_study: Study) -> None:
    from prism.intrinsic import mle_time

    visit = tiny_study.correspondence[5]
    t = float(visit.visits.t[0])
    found = predict_shape(tiny_model, visit, t1=t)
    tau = mle_time(tiny_model.table, tiny_model.displacements(visit)).tau
    readable = np.isfinite(tiny_model.spread(np.array([t])))
    dated = tiny_model.mean_shapes(np.where(readable, tau, t))
    np.testing.assert_allclose(found.points, dated, atol=1e-9)


def test_an_average_shape_stays_average(tiny_model: PRISM, tiny_study: Study) -> None:
    visit = tiny_study.correspondence[0]
    t = visit.visits.t
    average = replace(visit, points=tiny_model.mean_shapes(np.full((1, 24), t[0])))
    paper, mean = (predict_shape(tiny_model, average, 0.9, rule) for rule in ("paper", "mean"))
    np.testing.assert_allclose(paper.points, mean.points, atol=1e-4)


def test_missing_points_are_forecast_at_the_average(tiny_model: PRISM) -> None:
    cohort = tiny_cohort(seed=1, missing=0.3).correspondence
    paper, mean = (predict_shape(tiny_model, cohort, rule=rule) for rule in ("paper", "mean"))
    gone = ~cohort.observed[paper.row0]
    np.testing.assert_array_equal(paper.points[gone], mean.points[gone])
    assert np.isfinite(paper.points).all()


def test_ages_asked_for_are_given_to_every_subject(tiny_model: PRISM, tiny_study: Study) -> None:
    ages = np.array([0.5, 3.0])
    found = predict_shape(tiny_model, tiny_study.correspondence, t1=ages)
    assert len(found.points) == 2 * 12
    np.testing.assert_array_equal(found.t1, np.tile(ages, 12))
    np.testing.assert_array_equal(found.extrapolated, found.t1 == 3.0)
    visits = tiny_study.correspondence.visits
    earliest = [visits.t[visits.subject == name].min() for name in found.subject]
    np.testing.assert_array_equal(found.t0, earliest)


def test_visits_without_an_age_start_no_forecast(tiny_model: PRISM, tiny_study: Study) -> None:
    cohort = tiny_study.correspondence
    t = cohort.visits.t.copy()
    t[cohort.visits.subject == "s0000"] = np.nan
    some = replace(cohort, visits=replace(cohort.visits, t=t))
    assert "s0000" not in predict_shape(tiny_model, some, t1=0.5).subject
    none = replace(cohort, visits=replace(cohort.visits, t=np.full(len(t), np.nan)))
    with pytest.raises(QueryError, match="has an age to start from"):
        predict_shape(tiny_model, none, t1=0.5)


def test_questions_without_an_answer_are_refused(tiny_model: PRISM, tiny_study: Study) -> None:
    alone = tiny_study.correspondence[0]
    with pytest.raises(QueryError, match="no subject with a later visit"):
        predict_shape(tiny_model, alone)
    with pytest.raises(QueryError, match="rule must be one of"):
        predict_shape(tiny_model, alone, 0.5, rule="median")  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="finite numbers"):
        predict_shape(tiny_model, alone, np.nan)
    with pytest.raises(QueryError, match="level must be one of"):
        predict_shape(tiny_model, alone, 0.5, level=0.42)


def test_shapes_in_space_are_forecast_too(model_in_space: PRISM) -> None:
    cohort = cohort_in_space(seed=1)
    found = predict_shape(model_in_space, cohort)
    assert found.points.shape == (20, 16, 3)
    error = np.linalg.norm(found.points - cohort.points[found.row1], axis=-1)
    assert error.mean() < 0.2  # cm, of a tube 3 to 5 cm long
