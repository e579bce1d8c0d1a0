"""Cohorts whose course, age or outlier is known exactly; no asserts."""

from __future__ import annotations

import numpy as np

from prism.cohort import Correspondence, Visits

POINTS, DIMENSION = 12, 3


def cohort(points: np.ndarray, t: np.ndarray, visits: int = 1) -> Correspondence:
    """Shapes (N, M, n) at t (N,), `visits` of them a subject."""
    owner = np.arange(len(t)) // visits
    names = np.array([f"s{i:03d}" for i in owner])
    template = np.random.default_rng(1).standard_normal(points.shape[1:])
    return Correspondence(points, Visits(names, [f"v{i}" for i in range(len(t))], t, {}), template)


def cubic(t: np.ndarray, rank: int = 3, seed: int = 0) -> np.ndarray:
    """A course (N, M, n) of this rank whose scores are cubic polynomials of t."""
    rng = np.random.default_rng(seed)
    start, fields = rng.standard_normal((2, rank, POINTS, DIMENSION))
    scores = np.polynomial.polynomial.polyval(t / 100, rng.standard_normal((4, rank)))  # (rank, N)
    return start.sum(axis=0) + np.einsum("kn,kmc->nmc", scores, fields)


def linear(t: np.ndarray) -> np.ndarray:
    """Straight growth (N, M, n)."""
    start, way = np.random.default_rng(3).standard_normal((2, POINTS, DIMENSION))
    return start + t[:, None, None] * way


def ages(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(1, 200, count)


def with_gaps(points: np.ndarray, share: float = 0.15, seed: int = 5) -> np.ndarray:
    """Points (N, M, n) of which a share is missing; the first point is always there."""
    gone = np.random.default_rng(seed).uniform(size=points.shape[:2]) < share
    gone[:, 0] = False
    return np.where(gone[..., None], np.nan, points)
