"""How well a score tells abnormal cases from normal ones; a high score means abnormal."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from prism.errors import QueryError
from prism.metrics._door import level_inside, positive_count, two_groups
from prism.typing import Floats


class OperatingPoint(NamedTuple):
    """What a threshold does: cases with score >= threshold are called abnormal.

    Attributes:
        threshold: In the unit of the score.
        sensitivity: Share of the abnormal cases called abnormal.
        specificity: Share of the normal cases called normal.
        accuracy: Share of all cases called rightly.
    """

    threshold: float
    sensitivity: float
    specificity: float
    accuracy: float


def auc(score: ArrayLike, abnormal: ArrayLike) -> float:
    """Area under the ROC curve: chance that an abnormal case outscores a normal one, ties half.

    Args:
        score: (N,) scores, high = abnormal.
        abnormal: (N,) True where the case is abnormal.

    Returns:
        The area, between 0 and 1; 0.5 is chance.
    """
    score, abnormal = two_groups(score, abnormal)
    return _auc(score[abnormal], score[~abnormal])


def auc_interval(
    score: ArrayLike, abnormal: ArrayLike, seed: int, draws: int = 2000, level: float = 0.95
) -> tuple[float, float]:
    """Percentile bootstrap interval of `auc`, each group re-drawn within itself (stratified).

    Of no width when the groups do not overlap: the bootstrap cannot see beyond the sample.

    Args:
        score: (N,) scores, high = abnormal.
        abnormal: (N,) True where the case is abnormal.
        seed: Seed of the re-draws.
        draws: Number of re-draws.
        level: Nominal level of the interval.

    Returns:
        Lower and upper end.
    """
    score, abnormal = two_groups(score, abnormal)
    tail = (1 - level_inside(level)) / 2
    high, low = score[abnormal], score[~abnormal]
    rng = np.random.default_rng(seed)
    redraws = range(positive_count(draws, "draws"))
    areas = [_auc(rng.choice(high, len(high)), rng.choice(low, len(low))) for _ in redraws]
    lower, upper = np.quantile(areas, (tail, 1 - tail))
    return float(lower), float(upper)


def youden(score: ArrayLike, abnormal: ArrayLike) -> OperatingPoint:
    """Operating point that maximises sensitivity + specificity - 1 (Youden's J).

    The threshold is one of the scores; of equally good ones the lowest, the most sensitive. It is
    chosen on the cases it is judged on, hence optimistic: state `at_threshold` as well.

    Args:
        score: (N,) scores, high = abnormal.
        abnormal: (N,) True where the case is abnormal.

    Returns:
        The operating point.
    """
    score, abnormal = two_groups(score, abnormal)
    high, low = score[abnormal], score[~abnormal]
    thresholds = np.unique(score)
    # J ∝ hits · #normal − false alarms · #abnormal, in integers so that ties are exact
    hits, alarms = _at_least(thresholds, high), _at_least(thresholds, low)
    best = np.argmax(hits * len(low) - alarms * len(high))
    return _operate(high, low, float(thresholds[best]))


def at_threshold(score: ArrayLike, abnormal: ArrayLike, threshold: float) -> OperatingPoint:
    """Operating point of a threshold fixed beforehand, e.g. on held-out normal cases.

    Args:
        score: (N,) scores, high = abnormal.
        abnormal: (N,) True where the case is abnormal.
        threshold: Cases that score this or more are called abnormal.

    Returns:
        The operating point.
    """
    score, abnormal = two_groups(score, abnormal)
    if np.isnan(threshold):
        raise QueryError("threshold is NaN.", "Fix the threshold on scores that are finite.")
    return _operate(score[abnormal], score[~abnormal], float(threshold))


def _auc(high: Floats, low: Floats) -> float:
    """Mann-Whitney statistic over its maximum, from ranks: O(N log N)."""
    low = np.sort(low)
    # AUC = mean over abnormal of (#normal below + ½ #normal equal) / #normal
    below, up_to = (np.searchsorted(low, high, side=side) for side in ("left", "right"))
    return float((below + up_to).mean() / (2 * len(low)))


def _at_least(thresholds: Floats, score: Floats) -> np.ndarray:
    """Number of scores that reach each threshold."""
    return len(score) - np.searchsorted(np.sort(score), thresholds, side="left")


def _operate(high: Floats, low: Floats, threshold: float) -> OperatingPoint:
    hits, rejections = int((high >= threshold).sum()), int((low < threshold).sum())
    total = len(high) + len(low)
    return OperatingPoint(
        threshold, hits / len(high), rejections / len(low), (hits + rejections) / total
    )
