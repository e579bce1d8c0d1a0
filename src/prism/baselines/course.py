"""A course: many values that change smoothly with age, as cubic regression splines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import BSpline

from prism.typing import Floats, Times

DEGREE = 3
STIFFNESS = 1e-6  # pulls what the data leave open towards a constant, and nothing else


@dataclass(frozen=True)
class Course:
    """Least-squares cubic splines in t with shared knots; beyond their ends, the tangents.

    Attributes:
        knots: (q + 4,) knots, the first and last repeated; q = 4 is one cubic polynomial.
        coefficients: (q, D) of every value.
    """

    knots: Floats
    coefficients: Floats

    @classmethod
    def fit(cls, values: Floats, t: Times, inner: int = 0) -> Course:
        """Fit values (N, D), NaN where missing, at t (N,), with `inner` knots at quantiles of t."""
        knots = _knots(t, inner)
        return cls(knots, _least_squares(_design(knots, t), values))

    @classmethod
    def fit_smooth(cls, values: Floats, t: Times, choices: Iterable[int]) -> Course:
        """Fit with the number of inner knots that has the least generalised cross-validation."""
        usable = [inner for inner in choices if inner + DEGREE + 1 < len(t)] or [0]
        courses = [cls.fit(values, t, inner) for inner in usable]
        return min(courses, key=lambda course: course.cross_validation(values, t))

    def __call__(self, t: Times) -> Floats:
        """Values at t (N,), (N, D)."""
        return _design(self.knots, np.asarray(t, dtype=np.float64)) @ self.coefficients

    def cross_validation(self, values: Floats, t: Times) -> float:
        """GCV = sum over values of n |r|^2 / (n - q)^2, n the rows where the value is known."""
        count = (~np.isnan(values)).sum(axis=0)
        free = np.maximum(count - len(self.coefficients), 1)
        return float((count * np.nansum((values - self(t)) ** 2, axis=0) / free**2).sum())

    def fill(self, values: Floats, t: Times) -> Floats:
        """Values (N, D) with the course at t (N,) where they are NaN."""
        return np.where(np.isnan(values), self(t), values)


def _knots(t: Times, inner: int) -> Floats:
    first, last = t.min(), t.max()
    last = last if last > first else first + 1.0  # one age: any interval will do
    middle = np.quantile(t, np.linspace(0, 1, inner + 2)[1:-1])
    return np.concatenate([np.full(DEGREE + 1, first), middle, np.full(DEGREE + 1, last)])


def _design(knots: Floats, t: Times) -> Floats:
    """B-splines at t (N,), continued by their tangents beyond the ends, (N, q)."""
    splines = BSpline(knots, np.eye(len(knots) - DEGREE - 1), DEGREE)
    inside = np.clip(t, knots[0], knots[-1])
    return splines(inside) + (t - inside)[:, None] * splines(inside, nu=1)


def _least_squares(design: Floats, values: Floats) -> Floats:
    """(q, D) coefficients, from the rows where each value is known; design (N, q)."""
    stiff = STIFFNESS * np.diff(np.eye(design.shape[1]), axis=0)
    known = ~np.isnan(values)
    patterns, member = np.unique(known, axis=1, return_inverse=True)
    coefficients = np.empty((design.shape[1], values.shape[1]))
    for i, rows in enumerate(patterns.T):
        columns = np.flatnonzero(member.reshape(-1) == i)
        target = np.zeros((rows.sum() + len(stiff), len(columns)))
        target[: rows.sum()] = values[np.ix_(rows, columns)]
        system = np.concatenate([design[rows], stiff])
        coefficients[:, columns] = np.linalg.lstsq(system, target, rcond=None)[0]
    return coefficients
