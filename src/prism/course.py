"""A course: many values that change smoothly with age, as cubic regression splines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import BSpline

from prism.typing import Floats, Strings, Times

DEGREE = 3
STIFFNESS = 1e-6  # pulls what the data leave open towards a constant, and nothing else
INNER_KNOTS = (0, 1, 2, 3, 5, 8)  # to choose from
FOLDS, MOST_COLUMNS = 5, 300  # of people, and of values, to choose by
WINDOW = 0.15  # of a Gaussian kernel over age, as a share of the age range
SURE = 1e-3  # least spread about an age that is believed, as a share of that at all ages


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
    def fit(cls, values: Floats, t: Times, inner: int = 0, weight: Floats | float = 1.0) -> Course:
        """Fit values (N, D), NaN where missing, at t (N,), with `inner` knots at quantiles of t.

        Rows count by the square of their weight (N,).
        """
        knots, weight = _knots(t, inner), np.reshape(weight, (-1, 1))
        return cls(knots, _least_squares(weight * _design(knots, t), weight * values))

    @classmethod
    def fit_smooth(cls, values: Floats, t: Times, choices: Sequence[int] = INNER_KNOTS) -> Course:
        """Fit with the number of inner knots that has the least generalised cross-validation."""
        courses = [cls.fit(values, t, inner) for inner in _usable(choices, len(t))]
        return min(courses, key=lambda course: course.cross_validation(values, t))

    @classmethod
    def fit_of_people(cls, values: Floats, t: Times, subject: Strings) -> Course:
        """Fit with the number of inner knots that best foretells people left out.

        Rows are weighed by how far people differ at their age. Visits of one person err together,
        and generalised cross-validation would take their common error for a bend.
        """
        weight = 1 / _spread_by_age(values - cls.fit(values, t)(t), t)
        some = np.linspace(0, values.shape[1] - 1, min(values.shape[1], MOST_COLUMNS)).astype(int)
        names, owner = np.unique(subject, return_inverse=True)
        fold = owner % FOLDS

        def missed(inner: int) -> float:
            total = 0.0
            for k in range(min(FOLDS, len(names))):
                new = fold == k
                course = cls.fit(values[~new][:, some], t[~new], inner, weight[~new])
                left = values[new][:, some] - course(t[new])
                total += float(np.nansum(np.square(weight[new, None] * left)))
            return total

        inner = min(_usable(INNER_KNOTS, len(names)), key=missed)
        return cls.fit(values, t, inner, weight)

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


def _usable(choices: Sequence[int], rows: int) -> list[int]:
    return [inner for inner in choices if inner + DEGREE + 1 < rows] or [0]


def local_mean(
    values: Floats, t: Times, t_grid: Times, prior: float = 1.0, window: float = WINDOW
) -> Floats:
    """Kernel mean (T, D) over age of values (N, D), NaN left out; positive values stay so.

    Each value's mean over all ages counts as `prior` more observations, at every age: where nobody
    was seen, it decides. Zero of what was never seen. The Gaussian kernel is `window` age ranges
    wide.
    """
    known = ~np.isnan(values)
    values = np.where(known, values, 0.0)
    overall = values.sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    width = window * np.ptp(t) or 1.0
    weight = np.exp(-(((t_grid[:, None] - t) / width) ** 2) / 2)  # (T, N)
    return (weight @ values + prior * overall) / (weight @ known + prior)


def _spread_by_age(left: Floats, t: Times) -> Floats:
    """Root mean square of what is left (N, D) of the rows near each row's age, (N,)."""
    square = np.nanmean(np.square(left), axis=1, keepdims=True)
    common = float(np.sqrt(square.mean())) or 1.0
    return np.maximum(np.sqrt(local_mean(square, t, t)[:, 0]), SURE * common)


def _knots(t: Times, inner: int) -> Floats:
    first, last = t.min(), t.max()
    last = last if last > first else first + 1.0  # one age: any interval will do
    middle = np.unique(np.quantile(t, np.linspace(0, 1, inner + 2)[1:-1]))
    middle = middle[(middle > first) & (middle < last)]  # a spline is nothing on an empty interval
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
