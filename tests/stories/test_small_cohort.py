"""Story: eighteen rats, eight landmarks, eight ages, and every question a user would ask."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from prism.applications import anomaly, intrinsic_time, predict_shape, trajectory
from prism.cohort import Correspondence
from prism.model import PRISM
from prism.population import PRESETS
from tests.problems.small_cohort import AGES, deformed, mean_shape, small_cohort


@pytest.fixture(scope="module")
def rats() -> Correspondence:
    return small_cohort(seed=0).correspondence


@pytest.fixture(scope="module")
def model(rats: Correspondence) -> PRISM:
    config = replace(PRESETS["fast"], steps=400, members=3)  # an ensemble, as small cohorts get
    return PRISM.fit(rats, "fast", config=config, seed=0, device="cpu")


def test_the_mean_follows_the_true_growth(model: PRISM) -> None:
    ages = np.linspace(10, 145, 20)
    found = trajectory(model, ages)
    error = np.linalg.norm(found.points - mean_shape(ages), axis=-1)
    assert error.mean() < 3  # of about 100 by which the landmarks move; subjects differ by 3
    assert np.median(found.sigma_tau[0]) < 5  # days; the truth is about 2


def test_time_can_be_read_at_most_landmarks(model: PRISM) -> None:
    found = trajectory(model, AGES)
    assert np.isfinite(found.sigma_tau).mean() > 0.9
    assert (np.median(found.sigma_tau[:5], axis=1) < 15).all()  # days, up to the age of 40


def test_new_rats_look_about_as_old_as_they_are(model: PRISM) -> None:
    new = small_cohort(seed=1, subjects=10, first=50)
    found = intrinsic_time(model, new.correspondence)
    assert np.corrcoef(found.tau, new.correspondence.visits.t)[0, 1] > 0.9
    assert np.abs(found.tau - new.tau).mean() < 15
    visits = replace(new.correspondence.visits, t=np.full(len(new.tau), np.nan))
    undated = intrinsic_time(model, replace(new.correspondence, visits=visits))
    np.testing.assert_array_equal(undated.tau, found.tau)


def test_forecasts_are_no_worse_than_the_average_rat(model: PRISM) -> None:
    new = small_cohort(seed=2, subjects=12, first=70).correspondence
    late = new[new.visits.t >= 40]
    error = {}
    for rule in ("pooled", "paper", "mean"):
        found = predict_shape(model, late, rule=rule)
        error[rule] = np.linalg.norm(found.points - late.points[found.row1], axis=-1).mean()
        inside = (found.lower <= late.points[found.row1]) & (late.points[found.row1] <= found.upper)
        assert 0.75 < inside.mean() <= 1
    assert error["paper"] < 1.3 * error["mean"]
    assert error["pooled"] < 0.9 * error["mean"]  # size and tempo are personal, and last


def test_normal_rats_pass_and_a_deformed_one_does_not(model: PRISM) -> None:
    new = small_cohort(seed=3, subjects=8, first=90).correspondence
    normal = anomaly(model, new)
    assert np.median(normal.p_value) > 0.2
    assert np.mean(normal.p_value < 0.1) < 0.4
    broken = anomaly(model, deformed(new, row=20, landmark=3, by=60.0))
    assert broken.p_value[20] == broken.p_value.min() < 0.05
    assert broken.score[20] == broken.score.max()
    assert broken.worst[20] == 3
