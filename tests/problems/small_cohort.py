"""A small longitudinal cohort of landmarks, as a zoologist would bring it, with known truth."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from prism.cohort import Correspondence, Visits

AGES = np.array([7.0, 14.0, 21.0, 30.0, 40.0, 60.0, 90.0, 150.0])  # days
SUBJECTS, LANDMARKS, CENTRE = 18, 8, 1000.0


@dataclass(frozen=True)
class SmallCohort:
    """Visits of every subject at every age, and the intrinsic time each visit truly had."""

    correspondence: Correspondence
    tau: np.ndarray  # (N,)


def mean_shape(tau: np.ndarray) -> np.ndarray:
    """Growth that slows down: an oval around (1000, 1000) whose ends grow most, (N, 8, 2)."""
    angle = 2 * np.pi * np.arange(LANDMARKS) / LANDMARKS
    oval = np.stack([300 * np.cos(angle), 180 * np.sin(angle)], axis=-1)
    gain = 0.3 + 0.3 * np.cos(angle) ** 2
    grown = 1 - np.exp(-np.asarray(tau) / 70)
    return CENTRE + (1 + grown[:, None, None] * gain[:, None]) * oval


def small_cohort(seed: int = 0, subjects: int = SUBJECTS, first: int = 0) -> SmallCohort:
    """Subjects differ in tempo (6%), in size (0.6%) and by 1.5 units at every landmark."""
    rng = np.random.default_rng(seed)
    tempo, size = rng.normal(1, 0.06, (subjects, 1)), rng.normal(1, 0.006, (subjects, 1))
    tau = (tempo * AGES).ravel()
    shapes = CENTRE + np.repeat(size, len(AGES))[:, None, None] * (mean_shape(tau) - CENTRE)
    shapes = shapes + 1.5 * rng.standard_normal(shapes.shape)
    visits = Visits(
        np.repeat([f"rat{first + i:02d}" for i in range(subjects)], len(AGES)),
        np.tile([f"day{age:g}" for age in AGES], subjects),
        np.tile(AGES, subjects),
    )
    return SmallCohort(
        Correspondence(shapes, visits, time_unit="days", length_unit="px", name="rats"), tau
    )


def deformed(cohort: Correspondence, row: int, landmark: int, by: float) -> Correspondence:
    """The cohort with one landmark of one shape pushed aside."""
    points = cohort.points.copy()
    points[row, landmark] += by
    return replace(cohort, points=points)
