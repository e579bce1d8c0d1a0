"""Detection metrics on scores small enough to count by hand."""

from __future__ import annotations

import numpy as np
import pytest

from prism.errors import QueryError
from prism.metrics import at_threshold, auc, auc_interval, youden

SCORE = np.array([0.1, 0.4, 0.4, 0.8, 0.9])
ABNORMAL = np.array([False, False, True, False, True])


def test_auc_counts_pairs_and_halves_ties() -> None:
    # Of 6 pairs, 0.9 wins 3; 0.4 wins one, ties one, loses one.
    assert auc(SCORE, ABNORMAL) == pytest.approx(4.5 / 6)


def test_auc_of_a_constant_score_is_chance() -> None:
    assert auc(np.zeros(5), ABNORMAL) == 0.5


def test_threshold_calls_its_own_value_abnormal() -> None:
    assert at_threshold(SCORE, ABNORMAL, 0.4) == pytest.approx((0.4, 1.0, 1 / 3, 3 / 5))
    assert at_threshold(SCORE, ABNORMAL, 0.41) == pytest.approx((0.41, 0.5, 2 / 3, 3 / 5))
    assert at_threshold(SCORE, ABNORMAL, np.inf).sensitivity == 0


def test_youden_finds_the_best_threshold() -> None:
    score, abnormal = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [0, 0, 1, 0, 1, 1]
    # At 3 and at 5: J = 2/3; the lower is the more sensitive.
    assert youden(score, abnormal) == pytest.approx((3.0, 1.0, 2 / 3, 5 / 6))
    assert youden(SCORE, ABNORMAL).threshold == pytest.approx(0.9)


def test_youden_of_a_reversed_score_calls_everyone_abnormal() -> None:
    point = youden([3.0, 2.0, 1.0], [False, False, True])
    assert (point.sensitivity, point.specificity) == (1.0, 0.0)
    assert point.accuracy == pytest.approx(1 / 3)


def test_interval_holds_the_area_and_narrows_with_the_level() -> None:
    rng = np.random.default_rng(0)
    abnormal = np.arange(168) < 31
    score = rng.standard_normal(168) + 1.6 * abnormal
    lower, upper = auc_interval(score, abnormal, seed=0, draws=500)
    inner, outer = auc_interval(score, abnormal, seed=0, draws=500, level=0.5)
    assert lower < inner < auc(score, abnormal) < outer < upper
    # Hanley and McNeil's standard error at A = 0.87, 31 against 137, is about 0.042.
    assert 2 * 0.02 < upper - lower < 5 * 0.042


def test_interval_is_stratified() -> None:
    # One abnormal case: a plain re-draw would lose it in every third sample and fail.
    lower, upper = auc_interval([1.0, 2.0, 3.0, 2.5], [0, 0, 0, 1], seed=0, draws=300)
    assert 0 <= lower < upper <= 1


def test_interval_follows_its_seed() -> None:
    score = np.random.default_rng(1).standard_normal(40)
    abnormal = np.arange(40) < 15
    first, again, other = (auc_interval(score, abnormal, s, draws=50) for s in (1, 1, 2))
    assert first == again != other


@pytest.mark.parametrize("metric", [auc, youden, lambda s, a: at_threshold(s, a, 0.0)])
@pytest.mark.parametrize(
    ("score", "abnormal", "what"),
    [
        (SCORE, np.zeros(5, bool), "one group is empty"),
        (SCORE, np.ones(5, bool), "one group is empty"),
        (SCORE[:4], ABNORMAL, "one length"),
        (SCORE, ["no"] * 5, "True and False"),
        (SCORE * [1, 1, 1, 1, np.nan], ABNORMAL, "1 of 5 scores are NaN"),
    ],
)
def test_bad_input_is_named(metric, score, abnormal, what: str) -> None:
    with pytest.raises(QueryError, match=what):
        metric(score, abnormal)


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda: auc_interval(SCORE, ABNORMAL, seed=0, draws=0), "draws must be at least 1"),
        (lambda: auc_interval(SCORE, ABNORMAL, seed=0, level=95), "level must be between"),
        (lambda: at_threshold(SCORE, ABNORMAL, np.nan), "threshold is NaN"),
    ],
)
def test_bad_settings_are_named(call, what: str) -> None:
    with pytest.raises(QueryError, match=what):
        call()
