"""A population tabulated in time at fixed points, for answers in microseconds.

The analysed points are the template's, so all that varies is one number a point: its time.
Tabulating mu, L and their time derivatives once on a grid of knots and interpolating by cubic
Hermite splines replaces every further pass through the networks; the interpolation error is of
fourth order in the distance of the knots.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from prism.errors import QueryError
from prism.fisher import field_and_rate
from prism.gaussian import GaussianField, Population, forward_substitution
from prism.typing import Floats, Points

KNOTS = 65
CHUNK = 65_536  # evaluations at once
MOST_DOUBLE = 20_000  # points tabulated in double precision; more take single


@dataclass(frozen=True)
class TimeTable:
    """mu, L and their rates at M points and K equidistant times.

    Attributes:
        first: First knot, in the time unit.
        spacing: Distance of two knots.
        knots: (M, K, n) mu at the knots.
        cubics: (M (K - 1), 4, n + k) coefficients of mu and packed L in every interval, lowest
            power first, in units of the spacing.
    """

    first: float
    spacing: float
    knots: Floats
    cubics: np.ndarray

    @classmethod
    def of(
        cls, population: Population, p: Points, span: tuple[float, float], knots: int = KNOTS
    ) -> TimeTable:
        """Tabulate a population at points p (M, n) over a span of times."""
        if not span[1] > span[0]:
            raise QueryError(f"the span {span} is empty.", "Give a later end than beginning.")
        device = getattr(population, "device", torch.device("cpu"))
        points = torch.as_tensor(np.asarray(p), dtype=torch.float64, device=device)
        times = torch.linspace(*span, knots, dtype=torch.float64, device=device)
        values, rates = [], []
        with torch.no_grad():
            for part in points.split(max(1, CHUNK // knots)):
                moving = field_and_rate(population, part[:, None], times[None])
                values.append(torch.cat([moving.field.mu, moving.field.L], dim=-1).cpu())
                rates.append(torch.cat([moving.mu_t, moving.L_t], dim=-1).cpu())
        spacing = (span[1] - span[0]) / (knots - 1)
        value, rate = torch.cat(values).numpy(), spacing * torch.cat(rates).numpy()
        return cls(span[0], spacing, value[..., : points.shape[-1]], _hermite(value, rate))

    @classmethod
    def average(cls, tables: Sequence[TimeTable]) -> TimeTable:
        """Table of the average field of several populations: theirs, averaged at every knot."""
        first = tables[0]
        if len(tables) == 1:
            return first
        knots = np.mean([table.knots for table in tables], axis=0)
        cubics = np.mean([table.cubics for table in tables], axis=0)
        return cls(first.first, first.spacing, knots, cubics)

    @property
    def last(self) -> float:
        """Last knot."""
        return self.first + self.spacing * (self.knots.shape[1] - 1)

    @property
    def points(self) -> int:
        """Count tabulated points."""
        return len(self.knots)

    def at(self, t: Tensor) -> tuple[GaussianField, Tensor]:
        """Field and mu_t at times t (N, M), one a shape and point; clamped to the span.

        An unknown time (NaN) gives an unknown answer.
        """
        mu, L, mu_t = self.read(np.arange(self.points), t.numpy())
        return GaussianField(torch.from_numpy(mu), torch.from_numpy(L)), torch.from_numpy(mu_t)

    def read(self, point: np.ndarray, t: Floats) -> tuple[Floats, Floats, Floats]:
        """mu, packed L and mu_t at given points (...) and times (...), clamped to the span.

        Many shapes at once (N, M) are worked through in runs, so that memory stays small.
        """
        if t.ndim == 2 and t.size > CHUNK and len(t) > 1:
            size = max(1, CHUNK // t.shape[1])
            parts = [self.read(point, t[row : row + size]) for row in range(0, len(t), size)]
            mu, L, mu_t = (np.concatenate(kind) for kind in zip(*parts, strict=True))
            return mu, L, mu_t
        last = self.knots.shape[1] - 1
        place = np.clip((t - self.first) / self.spacing, 0, last)
        knot = np.where(place < last, place, last - 1).astype(np.intp)
        u = (place - knot)[..., None]
        cubic = self.cubics[point * last + knot]
        a, b, c, d = (cubic[..., power, :] for power in range(4))
        n = self.knots.shape[-1]
        here = a + u * (b + u * (c + u * d))
        slope = b[..., :n] + u * (2 * c[..., :n] + 3 * u * d[..., :n])
        return here[..., :n], here[..., n:], slope / self.spacing

    def nearest_knot(self, d: Floats) -> Floats:
        """Time of the knot whose mean lies nearest to displacement d (N, M, n), (N, M)."""
        half = 0.5 * np.square(self.knots).sum(-1)
        best = np.empty(d.shape[:2], dtype=np.intp)
        rows = max(1, 4_000_000 // half.size)
        for start in range(0, len(d), rows):
            part = slice(start, start + rows)
            best[part] = (half - (self.knots @ d[part, ..., None])[..., 0]).argmin(-1)
        return np.asarray(self.first + self.spacing * best, dtype=np.float64)

    def information(self, t: Floats) -> Floats:
        """I_mu at times t (N, M), as an array."""
        _, L, mu_t = self.read(np.arange(self.points), t)
        return sum(column**2 for column in forward_substitution(L, mu_t))  # type: ignore[return-value]


def _hermite(value: Floats, rate: Floats) -> np.ndarray:
    """Cubics (M (K - 1), 4, c) through values and rates (M, K, c) at the ends of each interval.

    H(u) = a + u da + u^2 (3 (b - a) - 2 da - db) + u^3 (2 (a - b) + da + db)
    """
    a, b, da, db = value[:, :-1], value[:, 1:], rate[:, :-1], rate[:, 1:]
    powers = [a, da, 3 * (b - a) - 2 * da - db, 2 * (a - b) + da + db]
    cubics = np.stack(powers, axis=-2).reshape(-1, 4, value.shape[-1])
    return cubics if len(value) <= MOST_DOUBLE else cubics.astype(np.float32)
