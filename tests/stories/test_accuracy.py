"""What the default preset must reach on clean Starman cohorts; minutes, so run by `make slow`."""

from __future__ import annotations

from typing import Any

import pytest

import prism


@pytest.fixture(scope="module", params=["global", "local"])
def found(request: pytest.FixtureRequest) -> dict[str, Any]:
    study = prism.simulate.starman(request.param, subjects=1000, test_subjects=200, seed=0)
    model = prism.PRISM.fit(study.of_split("train").correspondence, seed=0)
    test = study.of_split("test")
    return prism.evaluate(model, test.correspondence, test.truth, emd=False)


@pytest.mark.slow
def test_the_temporal_spread_is_found(found: dict[str, Any]) -> None:
    assert max(found["sigma_tau"].values()) <= 0.08


@pytest.mark.slow
def test_the_mean_trajectory_is_as_good_as_the_true_one(found: dict[str, Any]) -> None:
    assert found["trajectory"]["ratio_to_oracle"] <= 1.02


@pytest.mark.slow
def test_intrinsic_time_is_found(found: dict[str, Any]) -> None:
    times = found["time"]
    if "tau" in times:
        assert times["tau"]["mae"] <= 0.005
        assert times["tau"]["r"] >= 0.999
    assert times["at_arm"]["likelihood"]["mae"] <= 0.008
    assert times["at_leg"]["likelihood"]["mae"] <= 0.005


@pytest.mark.slow
def test_forecasts_are_personal(found: dict[str, Any]) -> None:
    assert found["prediction"]["paper"]["cd_x100"] <= 0.04


@pytest.mark.slow
def test_intervals_hold_what_they_promise(found: dict[str, Any]) -> None:
    assert 0.86 <= found["coverage"]["displacement"]["0.9"] <= 0.94
