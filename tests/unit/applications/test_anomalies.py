from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.stats import spearmanr

from prism.applications import anomaly
from prism.model import PRISM
from prism.simulate.study import Study
from tests.problems.tiny import cohort_in_space, tiny_cohort


def test_a_gross_deformity_is_found_and_placed(tiny_model: PRISM, tiny_study: Study) -> None:
    cohort = tiny_study.correspondence
    points = cohort.points.copy()
    points[4, 9] += 1.0
    found = anomaly(tiny_model, replace(cohort, points=points))
    assert found.score.argmax() == 4
    assert found.p_value[4] == found.p_value.min()
    assert found.worst[4] == 9
    assert found.where[4].startswith("leg, point 9 at (")
    assert found.point_p[4, 9] == found.point_p[:, 9].min()


def test_scores_have_their_signs_and_p_values_their_range(
    tiny_model: PRISM, tiny_study: Study
) -> None:
    found = anomaly(tiny_model, tiny_study.correspondence)
    assert np.isfinite(found.score).all()
    assert (found.score_paper <= 0).all()
    for p in (found.p_value, found.p_value_low_rank, found.p_value_mahalanobis):
        assert ((p > 0) & (p <= 1)).all()
    for p in (found.p_value_paper, found.point_p, found.point_q):
        assert ((p > 0) & (p <= 1)).all()
    assert not found.age_assumed.any()


def test_p_values_order_as_scores_do(tiny_model: PRISM, tiny_study: Study) -> None:
    found = anomaly(tiny_model, tiny_study.correspondence)
    assert spearmanr(found.score, found.p_value).statistic < -0.9  # several judges, one average
    assert (np.diff(found.p_value_paper[np.argsort(found.score_paper)]) >= 0).all()


def test_without_an_age_the_intrinsic_time_stands_in(tiny_model: PRISM, tiny_study: Study) -> None:
    cohort = tiny_study.correspondence
    t = cohort.visits.t.copy()
    t[::2] = np.nan
    found = anomaly(tiny_model, replace(cohort, visits=replace(cohort.visits, t=t)))
    np.testing.assert_array_equal(found.age_assumed, np.isnan(t))
    assert np.isfinite(found.score).all()
    known = anomaly(tiny_model, cohort)
    np.testing.assert_array_equal(found.score[1::2], known.score[1::2])


def test_missing_points_are_not_judged(tiny_model: PRISM) -> None:
    cohort = tiny_cohort(seed=1, missing=0.3).correspondence
    found = anomaly(tiny_model, cohort)
    gone = ~cohort.observed
    assert np.isnan(found.point_z[gone]).all()
    assert np.isnan(found.point_p[gone]).all()
    assert np.isnan(found.point_q[gone]).all()
    assert np.isfinite(found.point_z[~gone]).all()
    for score in (found.score, found.score_low_rank, found.score_mahalanobis, found.score_paper):
        assert np.isfinite(score).all()


def test_shapes_in_space_are_judged_too(model_in_space: PRISM) -> None:
    found = anomaly(model_in_space, cohort_in_space(seed=1))
    assert found.point_z.shape == (30, 16)
    assert found.where[0].count(",") == 2
    assert "cm" in found.where[0]


def test_controlling_false_discoveries_never_lowers_a_p_value(
    tiny_model: PRISM, tiny_study: Study
) -> None:
    found = anomaly(tiny_model, tiny_study.correspondence)
    assert (found.point_q >= found.point_p - 1e-12).all()
    assert (found.point_q > found.point_p + 0.01).any()
    assert (found.point_q <= 1).all()


def test_a_partial_shape_is_judged_where_it_was_seen(tiny_model: PRISM, tiny_study: Study) -> None:
    cohort = tiny_study.correspondence
    points = cohort.points.copy()
    points[3, 12:] = np.nan
    points[4, 12:] = np.nan
    points[4, 5] += 1.0
    found = anomaly(tiny_model, replace(cohort, points=points))
    for part in (found.point_z, found.point_p, found.point_q):
        assert np.isnan(part[3:5, 12:]).all()
        assert np.isfinite(part[3:5, :12]).all()
    assert np.isfinite(found.score).all()
    assert found.p_value[4] == found.p_value.min()
    away = np.linalg.norm(cohort.template - cohort.template[found.worst[4]], axis=1)
    assert 5 in np.argsort(away)[:6]  # in a patch around the worst point


def test_scores_do_not_depend_on_the_company(tiny_model: PRISM, tiny_study: Study) -> None:
    together = anomaly(tiny_model, tiny_study.correspondence)
    alone = anomaly(tiny_model, tiny_study.correspondence[7])
    for name in ("score", "score_low_rank", "score_mahalanobis", "point_z", "point_q"):
        np.testing.assert_allclose(getattr(alone, name)[0], getattr(together, name)[7], rtol=1e-6)


def test_visits_outside_the_training_ages_are_marked(tiny_model: PRISM, tiny_study: Study) -> None:
    cohort = tiny_study.correspondence[:3]
    t = cohort.visits.t.copy()
    t[1] = tiny_model.ages[1] + 1
    found = anomaly(tiny_model, replace(cohort, visits=replace(cohort.visits, t=t)))
    assert found.extrapolated.tolist() == [False, True, False]
