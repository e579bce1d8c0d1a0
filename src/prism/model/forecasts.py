"""Forecasts of one person: pooled, by the paper's rule, and how far the second corrects the first.

Pooled forecasts take how points and visits co-vary, and the population's spread at two ages, for
known. The paper's rule knows growth alone and keeps what every point shows by itself. Where the
cohort is small and measured without noise the second can be nearer; subjects not seen tell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from prism import rules
from prism.calibration import people_alike
from prism.covariation import Covariation
from prism.intrinsic import TimeTable, mle_time
from prism.model.state import Residuals, forecast_residuals
from prism.typing import Floats, Shapes, Strings, Times

if TYPE_CHECKING:
    from prism.model.calibrate import CrossFit
    from prism.model.core import PRISM

FEWEST_PAIRS = 20  # of visits that decide anything about forecasts


def paper_residuals(model: PRISM, table: TimeTable, d: Shapes, t0: Times, t1: Times) -> Shapes:
    """What the paper's rule adds to the mean at ages t1 (P,) for displacements d (P, M, n) at t0.

    NaN where a point was not seen or its time cannot be read.
    """
    tau0, spread = mle_time(table, d).tau, model.spread(t0, table)
    z = rules.temporal_z(tau0, t0, spread)
    tau1 = rules.forecast_time(z, t1, model.spread(t1, table))
    point, same = np.arange(table.points), np.repeat(t1[:, None], table.points, axis=1)
    moved = table.read(point, tau1)[0] - table.read(point, same)[0]
    readable = np.isfinite(spread) & ~np.isnan(tau0)
    return np.where(readable[..., None], moved, np.nan)


def blend(pooled: Shapes, paper: Shapes, pointwise: float) -> Shapes:
    """[Eq. blend] (1 - b) pooled + b paper, (P, M, n); pooled where the paper's rule is silent."""
    return np.where(np.isnan(paper), pooled, pooled + pointwise * (paper - pooled))


def pointwise_share(found: Shapes, pooled: Shapes, paper: Shapes, subject: Strings) -> float:
    """Share b of the paper's rule in a forecast, by least squares over people not seen.

    People count alike, however often they came.

    Args:
        found: (P, M, n) residuals seen at the later visits.
        pooled: (P, M, n) those forecast.
        paper: (P, M, n) those of the paper's rule.
        subject: (P,) whose they are.
    """
    towards = np.nan_to_num(paper - pooled)
    towards[np.isnan(found)] = 0.0
    off = np.nan_to_num(found - pooled)
    weight = people_alike(subject)
    along, square = (np.einsum("pmi,pmi->p", towards, v) for v in (off, towards))
    return float(np.clip(weight @ along / max(weight @ square, 1e-300), 0.0, 1.0))


@dataclass(frozen=True)
class _Pairs:
    """First visits and later ones of people not seen, (P, M, n) each.

    Attributes:
        found: Residuals seen later.
        pooled, paper: Those forecast.
        pooled_sd, paper_sd: How far off the forecasts claim to be.
        subject: (P,) whose they are.
    """

    found: Shapes
    pooled: Shapes
    paper: Shapes
    pooled_sd: Floats
    paper_sd: Floats
    subject: Strings

    @classmethod
    def of(cls, model: PRISM, table: TimeTable, how: Covariation, seen: Residuals) -> _Pairs:
        start, later = rules.first_to_later(seen.subject, seen.t)
        t0, t1 = seen.t[start], seen.t[later]
        if not len(start):
            none = np.empty((0, *seen.r.shape[1:]))
            return cls(none, none, none, none, none, seen.subject[start])
        ahead = forecast_residuals(how, table, seen, list(start[:, None]), t1)
        paper = paper_residuals(model, table, (seen.r + seen.mu)[start], t0, t1)
        pooled_sd, paper_sd = (_deviations(C) for C in (ahead.cov[:, 0], seen.Sigma[later]))
        return cls(
            seen.r[later], ahead.mean[:, 0], paper, pooled_sd, paper_sd, seen.subject[later]
        )  # fmt: skip

    @classmethod
    def join(cls, parts: list[_Pairs]) -> _Pairs:
        return cls(*(np.concatenate([getattr(p, name) for p in parts]) for name in vars(parts[0])))


def _deviations(cov: Floats) -> Floats:
    return np.sqrt(np.diagonal(cov, axis1=-2, axis2=-1))


class ForecastErrors(NamedTuple):
    """Standardised errors (P, M, n) of forecasts from first visits to later ones."""

    pooled: Floats
    paper: Floats
    subject: Strings  # (P,) of whom
    pointwise: float  # share of the paper's rule in the pooled forecasts


def forecast_errors(
    model: PRISM, cross: CrossFit, pointwise: float | None = None
) -> ForecastErrors:
    """Forecast people not seen, and choose how far the paper's rule counts unless that is given."""
    pairs = _Pairs.join([
        _Pairs.of(model, table, how, cross.seen[rows]) for rows, table, how in cross.parts()
    ])  # fmt: skip
    share = pointwise or 0.0
    if pointwise is None and len(pairs.subject) >= FEWEST_PAIRS:
        share = pointwise_share(pairs.found, pairs.pooled, pairs.paper, pairs.subject)
    pooled = blend(pairs.pooled, pairs.paper, share)
    return ForecastErrors(
        pooled=(pairs.found - pooled) / pairs.pooled_sd,
        paper=(pairs.found - np.nan_to_num(pairs.paper)) / pairs.paper_sd,
        subject=pairs.subject,
        pointwise=share,
    )
