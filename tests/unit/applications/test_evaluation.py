from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from prism.applications import evaluate, intrinsic_time
from prism.applications.evaluation import _distances
from prism.cohort import Advance
from prism.errors import QueryError
from prism.metrics import SURFACE_COUNT
from prism.model import PRISM
from prism.simulate.study import Study
from tests.problems.solids import SOLIDS, sphere
from tests.problems.tiny import cohort_in_space, tiny_cohort


def test_with_a_truth_everything_is_measured(tiny_model: PRISM, tiny_study: Study) -> None:
    found = evaluate(tiny_model, tiny_study.correspondence, tiny_study.truth, emd=False)
    assert (found["shapes"], found["subjects"]) == (len(tiny_study), 12)
    assert found["trajectory"]["failures"] == 0
    assert found["trajectory"]["ratio_to_oracle"] > 0
    assert found["time"]["against"] == "true intrinsic time"
    tau = intrinsic_time(tiny_model, tiny_study.correspondence).tau
    error = np.abs(tau - tiny_study.truth.tau_global).mean()
    assert found["time"]["tau"]["mae"] == pytest.approx(error)
    assert set(found["sigma_tau"]) == {"arm", "leg"}
    arm, truth = tiny_study.truth.landmarks[0], tiny_study.truth.tau[:, 0]
    times = intrinsic_time(tiny_model, tiny_study.correspondence)
    held = np.abs(times.point_tau[:, arm] - truth) <= 1.6448536 * times.point_se[:, arm]
    told = np.isfinite(times.point_tau[:, arm])  # where it is no bound
    assert found["time"]["at_arm"]["coverage"]["0.9"] == pytest.approx(held[told].mean())
    assert found["prediction"]["paper"]["cd_x100"] > 0
    assert 0 <= found["anomaly"]["flagged_at_0.1"] <= 1


def test_without_a_truth_age_is_the_yardstick(tiny_model: PRISM, tiny_study: Study) -> None:
    found = evaluate(tiny_model, tiny_study.correspondence, emd=False)
    assert found["time"]["against"] == "chronological age"
    visits = tiny_study.correspondence.visits
    tau = intrinsic_time(tiny_model, tiny_study.correspondence).tau
    assert found["time"]["tau"]["mae"] == pytest.approx(np.abs(tau - visits.t).mean())
    assert "sigma_tau" not in found
    shares = found["coverage"]["displacement"]
    assert list(shares.values()) == sorted(shares.values())
    assert shares["0.9"] == pytest.approx(0.9, abs=0.08)
    z = intrinsic_time(tiny_model, tiny_study.correspondence).z
    assert found["coverage"]["time"]["0.9"] == pytest.approx((np.abs(z) <= 1.6448536).mean())


def test_a_perfect_mean_has_no_distance(tiny_model: PRISM, tiny_study: Study) -> None:
    cohort = tiny_study.correspondence
    t = np.repeat(cohort.visits.t[:, None], 24, axis=1)
    perfect = replace(cohort, points=tiny_model.mean_shapes(t))
    found = evaluate(tiny_model, perfect, emd=False)
    assert found["trajectory"]["cd_x100"] < 1e-9
    assert found["coverage"]["displacement"]["0.5"] == 1.0


def test_earth_movers_distance_on_demand(tiny_model: PRISM, tiny_study: Study) -> None:
    few = tiny_study.correspondence[:2]
    assert evaluate(tiny_model, few)["trajectory"]["emd_x100"] > 0
    assert "emd_x100" not in evaluate(tiny_model, few, emd=False)["trajectory"]


def test_groups_give_an_auc(tiny_model: PRISM, tiny_study: Study) -> None:
    cohort = tiny_study.correspondence
    points, ill = cohort.points.copy(), np.arange(len(cohort)) < 8
    points[ill, 7] += 1.0
    columns = {"group": np.where(ill, "stenosis", "normal")}
    marked = replace(cohort, points=points, visits=replace(cohort.visits, columns=columns))
    found = evaluate(tiny_model, marked, emd=False)["anomaly"]
    assert found["score"]["auc"] == 1.0
    assert 0 <= found["score_paper"]["auc"] <= 1


def test_missing_points_and_unknown_ages_do_not_stop_it(tiny_model: PRISM) -> None:
    cohort = tiny_cohort(seed=1, missing=0.2).correspondence
    t = cohort.visits.t.copy()
    t[::3] = np.nan
    found = evaluate(tiny_model, replace(cohort, visits=replace(cohort.visits, t=t)), emd=False)
    assert found["trajectory"]["shapes"] == np.isfinite(t).sum()
    assert found["trajectory"]["failures"] == 0


def test_one_visit_a_subject_has_no_forecast(tiny_model: PRISM) -> None:
    found = evaluate(tiny_model, tiny_cohort(visits=1).correspondence, emd=False)
    assert "prediction" not in found


def test_shapes_in_space_are_measured_too(model_in_space: PRISM) -> None:
    found = evaluate(model_in_space, cohort_in_space(seed=1)[:4], emd=False)
    assert found["trajectory"]["cd_x100"] > 0
    assert found["unit"] == {"time": "weeks", "length": "cm"}


def test_a_perfect_surface_scores_the_sampling_floor_and_not_zero() -> None:
    solid = sphere(detail=8)
    shapes = np.stack([solid.points, 2 * solid.points])
    found = _distances(shapes, shapes, solid.cells, emd=False)
    # Two samples of N points on an area A: twice the mean square nearest distance A / (pi N).
    areas = 4 * np.pi * np.array([1.0, 4.0])
    floor = 100 * np.mean(2 * areas / (np.pi * SURFACE_COUNT))
    assert found["cd_x100"] == pytest.approx(floor, rel=0.1)
    assert "emd_x100" not in found


def test_a_perfect_contour_scores_zero_and_costs_nothing_to_move() -> None:
    solid = SOLIDS["circle"]
    shapes = np.repeat(solid.points[None], 3, axis=0)
    found = _distances(shapes, shapes, solid.cells, emd=True)
    assert (found["cd_x100"], found["emd_x100"], found["shapes"]) == (0.0, 0.0, 3)


def test_progress_counts_every_shape_that_is_compared(tiny_model: PRISM, tiny_study: Study) -> None:
    told: list[Advance] = []
    cohort = tiny_study.correspondence[:6]
    evaluate(tiny_model, cohort, None, False, told.append)
    ages = [advance for advance in told if advance.phase == "shapes at the age"]
    assert [(advance.step, advance.steps) for advance in ages] == [(k, 6) for k in range(6)]
    assert {"forecasts (pooled)", "forecasts (paper)"} <= {advance.phase for advance in told}
    assert all(advance.seconds_left >= 0 for advance in told)


@pytest.mark.parametrize("truth", [True, False])
def test_without_any_age_nothing_is_measured(
    tiny_model: PRISM, tiny_study: Study, truth: bool
) -> None:
    cohort = tiny_study.correspondence
    undated = replace(cohort, visits=replace(cohort.visits, t=np.full(len(cohort), np.nan)))
    with pytest.raises(QueryError, match="has an age to measure the model by"):
        evaluate(tiny_model, undated, tiny_study.truth if truth else None, emd=False)
