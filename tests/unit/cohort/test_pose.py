from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from prism.cohort import Correspondence, align
from prism.errors import QueryError
from tests.problems.tiny import cohort_in_space, tiny_cohort

NAN = np.nan


def rotations(count: int, n: int, seed: int = 0) -> np.ndarray:
    """Random rotations, (count, n, n)."""
    Q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(count, n, n)))
    Q[:, :, -1] *= np.linalg.det(Q)[:, None]
    return Q


def scattered(cohort: Correspondence, sizes: bool = False) -> Correspondence:
    """The same shapes as a scanner might give them: anywhere, turned, perhaps in other sizes."""
    rng = np.random.default_rng(1)
    R = rotations(len(cohort), cohort.dimension)
    shift = 1000 * rng.normal(size=(len(cohort), 1, cohort.dimension))
    scale = rng.uniform(0.1, 10, len(cohort)) if sizes else np.ones(len(cohort))
    points = scale[:, None, None] * cohort.points @ R.swapaxes(1, 2) + shift
    return replace(cohort, points=points, template=None)  # type: ignore[arg-type]


def distances(points: np.ndarray) -> np.ndarray:
    return np.linalg.norm(points[:, :, None] - points[:, None], axis=-1)


cohorts = pytest.mark.parametrize("make", [lambda: tiny_cohort().correspondence, cohort_in_space])


@cohorts
def test_turned_and_shifted_copies_come_to_lie_upon_one_another(make) -> None:  # type: ignore[no-untyped-def]
    cohort = make()
    same = replace(cohort, points=np.repeat(cohort.points[:1], len(cohort), axis=0))
    found = align(scattered(same))
    assert np.ptp(found.points, axis=0).max() < 1e-6
    np.testing.assert_allclose(found.template, found.points[0], atol=1e-6)


@cohorts
def test_distances_within_a_shape_stay_and_pose_does_not_matter(make) -> None:  # type: ignore[no-untyped-def]
    cohort = make()
    found, other = align(cohort), align(scattered(cohort))
    np.testing.assert_allclose(distances(found.points), distances(cohort.points), atol=1e-9)
    between = [np.linalg.norm(a.points[0] - a.points[-1]) for a in (found, other)]
    assert between[0] == pytest.approx(between[1], rel=1e-6)


def test_keeping_the_form_alone_takes_off_size() -> None:
    cohort = cohort_in_space()
    same = replace(cohort, points=np.repeat(cohort.points[:1], len(cohort), axis=0))
    found = align(scattered(same, sizes=True), keep="form")
    size = np.linalg.norm(found.points - found.points.mean(axis=1, keepdims=True), axis=(1, 2))
    np.testing.assert_allclose(size, size[0], rtol=1e-6)


def test_gaps_stay_and_do_not_pull() -> None:
    cohort = tiny_cohort().correspondence
    points = np.repeat(cohort.points[:1], len(cohort), axis=0)
    whole = scattered(replace(cohort, points=points))
    holes = whole.points.copy()
    holes[1, 3:9] = NAN
    holes[2, 11] = NAN
    found = align(replace(whole, points=holes))
    np.testing.assert_array_equal(np.isnan(found.points), np.isnan(holes))
    assert np.nanmax(np.abs(found.points - found.points[0])) < 1e-6


def test_an_unknown_wish_is_refused() -> None:
    with pytest.raises(QueryError, match="keep must be"):
        align(tiny_cohort().correspondence, keep="everything")  # type: ignore[arg-type]
