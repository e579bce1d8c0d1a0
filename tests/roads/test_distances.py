"""The same distance by two roads: KD-tree or transport here, all pairs or assignment there."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from prism.metrics import auc, chamfer, emd, emd_squared, hausdorff


def _pair(n: int, sizes: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n + sum(sizes))
    return rng.standard_normal((sizes[0], n)), rng.standard_normal((sizes[1], n)) + 0.3


def _all_pairs(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.sqrt(((a[:, None] - b[None]) ** 2).sum(axis=-1))


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("sizes", [(1, 1), (40, 70), (300, 200)])
def test_chamfer_against_brute_force(n: int, sizes: tuple[int, int]) -> None:
    a, b = _pair(n, sizes)
    squared = _all_pairs(a, b) ** 2
    expected = squared.min(axis=1).mean() + squared.min(axis=0).mean()
    assert chamfer(a, b) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("sizes", [(1, 1), (40, 70), (300, 200)])
def test_hausdorff_against_brute_force(n: int, sizes: tuple[int, int]) -> None:
    a, b = _pair(n, sizes)
    distance = _all_pairs(a, b)
    expected = max(distance.min(axis=1).max(), distance.min(axis=0).max())
    assert hausdorff(a, b) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize(("metric", "power"), [(emd, 1), (emd_squared, 2)])
def test_emd_against_the_hungarian_assignment(n: int, metric, power: int) -> None:
    a, b = _pair(n, (150, 150))
    cost = _all_pairs(a, b) ** power
    expected = cost[linear_sum_assignment(cost)].mean()
    assert metric(a, b) == pytest.approx(expected, rel=1e-9)


def test_auc_by_ranks_against_all_pairs() -> None:
    rng = np.random.default_rng(0)
    score, abnormal = rng.integers(0, 8, 90), rng.random(90) < 0.3
    gap = score[abnormal][:, None] - score[~abnormal][None]
    assert auc(score, abnormal) == pytest.approx(((np.sign(gap) + 1) / 2).mean(), rel=1e-12)
