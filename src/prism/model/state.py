"""Residuals of a cohort from a population, and what follows from them for one person."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from prism.cohort import Correspondence
from prism.covariation import Covariation, Forecast, GlobalTimes, condition, date_shapes
from prism.gaussian import covariance_of
from prism.intrinsic import TimeTable, joint_mle_time
from prism.typing import Floats, Points, Shapes, Strings, Times

BLOCK_VALUES = 4_000_000


@dataclass(frozen=True)
class Residuals:
    """Visits against the population at their own ages.

    Attributes:
        r: (N, M, n) d - mu; NaN where missing.
        mu, mu_t: (N, M, n); Sigma: (N, M, n, n).
        subject, t: (N,) whose they are and when.
    """

    r: Shapes
    mu: Shapes
    Sigma: Floats
    mu_t: Shapes
    subject: Strings
    t: Times

    def __getitem__(self, rows: Any) -> Residuals:
        """Select visits."""
        return Residuals(*(getattr(self, name)[rows] for name in vars(self)))

    @classmethod
    def of(cls, table: TimeTable, template: Points, cohort: Correspondence) -> Residuals:
        """Residuals of a cohort in correspondence with the template; every age known."""
        found = cls.of_shapes(table, cohort.points - template, cohort.visits.t)
        return replace(found, subject=cohort.visits.subject)

    @classmethod
    def of_shapes(cls, table: TimeTable, d: Shapes, t: Times) -> Residuals:
        """Residuals of displacements (N, M, n) at ages (N,), each taken for a person of its own."""
        mu, Sigma, mu_t = TableReading(table)(t)
        return cls(d - mu, mu, Sigma, mu_t, np.arange(len(t)).astype(np.str_), t)

    @classmethod
    def join(cls, parts: list[Residuals]) -> Residuals:
        """All parts, one after another."""
        return cls(*(np.concatenate([getattr(p, name) for p in parts]) for name in vars(parts[0])))


@dataclass(frozen=True)
class TableReading:
    """The tabulated population at one time a shape."""

    table: TimeTable

    def __call__(self, tau: Times) -> tuple[Shapes, Floats, Shapes]:
        """Mu (N, M, n), Sigma (N, M, n, n) and mu_t (N, M, n) at times tau (N,)."""
        mu, L, mu_t = self._read(tau)
        return mu, covariance_of(L, mu.shape[-1]), mu_t

    def mean(self, tau: Times) -> Shapes:
        """Mu (N, M, n) at times tau (N,)."""
        return self._read(tau)[0]

    def _read(self, tau: Times) -> tuple[Shapes, Floats, Shapes]:
        times = np.repeat(np.asarray(tau, dtype=np.float64)[:, None], self.table.points, axis=1)
        return self.table.read(np.arange(self.table.points), times)


def forecast_residuals(
    how: Covariation, table: TimeTable, seen: Residuals, past: list[np.ndarray], t1: Times
) -> Forecast:
    """Residuals expected at ages t1 (P,) given rows past[i] of `seen`; arrays (P, 1, M, ...)."""
    found: dict[int, Forecast] = {}
    order: list[np.ndarray] = []
    counts = np.array([len(rows) for rows in past])
    for count in np.unique(counts):
        which = np.flatnonzero(counts == count)
        found[int(count)] = _forecast(
            how, table, seen, np.stack([past[i] for i in which]), t1[which]
        )
        order.append(which)
    back = np.argsort(np.concatenate(order), kind="stable")
    parts = list(found.values())
    return Forecast(*(np.concatenate([getattr(f, k) for f in parts])[back] for k in vars(parts[0])))


def _forecast(
    how: Covariation, table: TimeTable, seen: Residuals, rows: np.ndarray, t1: Times
) -> Forecast:
    """The same for rows (P, V), in blocks."""
    size = max(1, BLOCK_VALUES // (seen.r[0].size * (rows.shape[1] + 1) * seen.r.shape[-1]))
    read, parts = TableReading(table), []
    for b in range(0, len(rows), size):
        part, ages = rows[b : b + size], t1[b : b + size]
        x = how.visible(seen.r[part], seen.Sigma[part])
        Sigma1 = read(ages)[1][:, None]
        target = how.visible(np.zeros(Sigma1.shape[:-1]), Sigma1)
        parts.append(condition(how, x, seen.t[part], target, ages[:, None]))
    return Forecast(*(np.concatenate([getattr(f, k) for f in parts]) for k in vars(parts[0])))


def date(
    how: Covariation, table: TimeTable, d: Shapes, modes: float | Floats,
    start: Times | None = None,
) -> GlobalTimes:  # fmt: skip
    """One intrinsic time a shape, points co-varying; in blocks of shapes.

    Starts at times `start` (N,), by default those of points independent given tau.
    """
    span = table.first, table.last
    if start is None:
        start = joint_mle_time(table, d).tau
    size = max(1, BLOCK_VALUES // (d[0].size * max(how.factors.rank, 4)))
    parts = []
    for b in range(0, max(len(d), 1), size):
        part, first = d[b : b + size], start[b : b + size]
        parts.append(date_shapes(how, part, TableReading(table), first, span, modes))
    return GlobalTimes(*(np.concatenate([getattr(g, k) for g in parts]) for k in vars(parts[0])))
