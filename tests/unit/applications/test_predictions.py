from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from prism.applications import left_out, predict_shape
from prism.applications.predictions import Rule
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
    found = predict_shape(tiny_model, visit, t1=t, rule="paper")
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
    own = [visits.t[visits.subject == name] for name in found.subject]
    last = [
        max([t0 for t0 in t if t0 < t1], default=t.min())
        for t, t1 in zip(own, found.t1, strict=True)
    ]
    np.testing.assert_array_equal(found.t0, last)
    first = predict_shape(tiny_model, tiny_study.correspondence, t1=ages, history="first")
    np.testing.assert_array_equal(first.t0, [t.min() for t in own])


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


def test_all_visits_are_the_first_where_there_is_no_other(
    tiny_model: PRISM, tiny_study: Study
) -> None:
    cohort = tiny_study.correspondence
    t = cohort.visits.t
    twice = [
        rows[np.argsort(t[rows])][:2]
        for rows in (np.flatnonzero(cohort.visits.subject == s) for s in cohort.visits.subjects)
        if len(rows) > 1
    ]
    pairs = cohort[np.sort(np.concatenate(twice))]
    first, every = (predict_shape(tiny_model, pairs, history=h) for h in ("first", "all"))
    for name in ("points", "lower", "upper", "t0", "row0", "row1"):
        np.testing.assert_array_equal(getattr(every, name), getattr(first, name))


def test_more_visits_make_surer_forecasts(tiny_model: PRISM, tiny_study: Study) -> None:
    cohort = tiny_study.correspondence
    first, every = (predict_shape(tiny_model, cohort, history=h) for h in ("first", "all"))
    more = every.row0 != first.row0
    assert more.any()
    widths = [np.mean(found.upper - found.lower, axis=(1, 2)) for found in (first, every)]
    assert (widths[1][more] < widths[0][more]).all()
    np.testing.assert_allclose(widths[1][~more], widths[0][~more])
    assert (every.t0 < every.t1).all()


def test_the_order_of_visits_does_not_matter(tiny_model: PRISM, tiny_study: Study) -> None:
    cohort = tiny_study.correspondence
    order = np.random.default_rng(0).permutation(len(cohort))
    found = predict_shape(tiny_model, cohort, history="all")
    turned = predict_shape(tiny_model, cohort[order], history="all")
    back = {int(order[row]): k for k, row in enumerate(turned.row1)}
    same = [back[int(row)] for row in found.row1]
    np.testing.assert_allclose(turned.points[same], found.points, atol=1e-9)
    np.testing.assert_array_equal(order[turned.row0[same]], found.row0)


def test_a_pooled_forecast_of_today_is_the_shape_cleared_of_noise(
    tiny_model: PRISM, tiny_study: Study
) -> None:
    visit = tiny_study.correspondence[5]
    t = float(visit.visits.t[0])
    found, mean = (predict_shape(tiny_model, visit, t, rule) for rule in ("pooled", "mean"))
    away = [np.linalg.norm(shape - visit.points) for shape in (found.points, mean.points)]
    assert away[0] < 0.6 * away[1]


def test_pooled_forecasts_fill_gaps_and_are_finite(tiny_model: PRISM) -> None:
    cohort = tiny_cohort(seed=1, missing=0.3).correspondence
    for history in ("first", "all"):
        found = predict_shape(tiny_model, cohort, history=history)  # type: ignore[arg-type]
        for shape in (found.points, found.lower, found.upper):
            assert np.isfinite(shape).all()
        assert (found.lower < found.upper).all()


def test_a_history_that_is_none_is_refused(tiny_model: PRISM, tiny_study: Study) -> None:
    with pytest.raises(QueryError, match="history must be one of"):
        predict_shape(tiny_model, tiny_study.correspondence, history="last")  # type: ignore[arg-type]


@pytest.mark.parametrize("rule", ["paper", "mean"])
def test_a_rule_of_one_visit_has_no_history(
    tiny_model: PRISM, tiny_study: Study, rule: Rule
) -> None:
    cohort = tiny_study.correspondence
    with pytest.raises(QueryError, match="history 'all' cannot be had with rule"):
        predict_shape(tiny_model, cohort, rule=rule, history="all")
    known = predict_shape(tiny_model, cohort, rule=rule, history="first")
    np.testing.assert_array_equal(known.points, predict_shape(tiny_model, cohort, rule=rule).points)


@pytest.mark.parametrize("t1", [[], [[0.5, 0.6], [0.7, 0.8]], "soon"])
def test_ages_that_are_none_are_refused(tiny_model: PRISM, tiny_study: Study, t1: object) -> None:
    with pytest.raises(QueryError, match="ages must be finite numbers"):
        predict_shape(tiny_model, tiny_study.correspondence, t1=t1)  # type: ignore[arg-type]


def test_who_has_no_share_is_counted_by_the_reason(tiny_model: PRISM, tiny_study: Study) -> None:
    cohort = tiny_study.correspondence
    subject = cohort.visits.subject
    names = [n for n in cohort.visits.subjects if (subject == n).sum() > 1][:3]
    t = cohort.visits.t.copy()
    t[subject == names[0]] = np.nan
    t[np.flatnonzero(subject == names[1])[1:]] = np.nan
    few = replace(cohort, visits=replace(cohort.visits, t=t)).of_subjects(names)
    gone = int(np.isnan(few.visits.t).sum())
    found = left_out(few, predict_shape(tiny_model, few))
    assert list(found.values()) == [gone, 1, 1]
    assert list(left_out(few, predict_shape(tiny_model, few, t1=0.5)).values()) == [gone, 1, 0]
