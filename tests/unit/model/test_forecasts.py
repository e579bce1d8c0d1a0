from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from prism.applications import predict_shape
from prism.model import PRISM
from prism.model.forecasts import blend, paper_residuals, pointwise_share
from prism.simulate.study import Study

PEOPLE, POINTS = 60, 5


def pairs(pooled_off: float, paper_off: float) -> tuple[np.ndarray, ...]:
    """What was found, and two forecasts of it with independent errors; one pair a subject."""
    rng = np.random.default_rng(0)
    found, a, b = rng.standard_normal((3, PEOPLE, POINTS, 2))
    subject = np.arange(PEOPLE).astype(np.str_)
    return found, found + pooled_off * a, found + paper_off * b, subject


@pytest.mark.parametrize(("pooled_off", "paper_off"), [(0.3, 0.3), (0.2, 0.4), (0.6, 0.2)])
def test_forecasts_are_weighed_by_what_they_are_worth(pooled_off: float, paper_off: float) -> None:
    best = pooled_off**2 / (pooled_off**2 + paper_off**2)  # of independent errors
    found = pointwise_share(*pairs(pooled_off, paper_off))
    assert found == pytest.approx(best, abs=0.08)


def test_a_rule_that_does_not_help_has_no_share() -> None:
    found, pooled, _, subject = pairs(0.2, 1.0)
    worse = pooled + 0.5 * (pooled - found)
    assert pointwise_share(found, pooled, worse, subject) == 0.0
    assert pointwise_share(found, pooled, np.full_like(pooled, np.nan), subject) == 0.0
    none = np.empty((0, POINTS, 2))
    assert pointwise_share(none, none, none, subject[:0]) == 0.0


def test_one_person_seen_often_does_not_decide() -> None:
    found, pooled, paper, subject = pairs(0.3, 0.3)
    paper[0] = pooled[0] - 3 * (found[0] - pooled[0])  # of this one the rule is far off
    often = np.concatenate([np.arange(PEOPLE), np.zeros(200, dtype=int)])
    once = pointwise_share(found, pooled, paper, subject)
    again = pointwise_share(*(v[often] for v in (found, pooled, paper, subject)))
    assert again == pytest.approx(once)


def test_gaps_take_no_part() -> None:
    found, pooled, paper, subject = pairs(0.3, 0.3)
    keep = pointwise_share(found[:, :3], pooled[:, :3], paper[:, :3], subject)
    found[:, 3], paper[:, 4] = np.nan, np.nan
    assert pointwise_share(found, pooled, paper, subject) == pytest.approx(keep)


def test_a_blend_lies_between_and_is_pooled_where_the_rule_is_silent() -> None:
    _, pooled, paper, _ = pairs(0.3, 0.3)
    paper[:, 2] = np.nan
    half = blend(pooled, paper, 0.5)
    np.testing.assert_allclose(half[:, :2], (pooled[:, :2] + paper[:, :2]) / 2)
    np.testing.assert_array_equal(half[:, 2], pooled[:, 2])
    np.testing.assert_array_equal(blend(pooled, paper, 0.0), pooled)


def test_forecasts_are_blended_as_the_calibration_says(
    tiny_model: PRISM, tiny_study: Study
) -> None:
    cohort = tiny_study.correspondence
    known = tiny_model.calibration

    def forecast(share: float) -> np.ndarray:
        model = replace(tiny_model, calibration=replace(known, pointwise=share))
        return predict_shape(model, cohort).points

    found = predict_shape(tiny_model, cohort, rule="paper")
    d, t0 = tiny_model.displacements(cohort)[found.row0], cohort.visits.t[found.row0]
    silent = np.isnan(paper_residuals(tiny_model, tiny_model.table, d, t0, found.t1))
    assert silent.any()
    assert not silent.all()
    alone, half = forecast(0.0), forecast(0.5)
    expected = np.where(silent, alone, (alone + found.points) / 2)
    np.testing.assert_allclose(half, expected, atol=1e-9)
