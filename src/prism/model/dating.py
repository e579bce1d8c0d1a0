"""By which modes people are dated: chosen on subjects not seen, against the calendar."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from prism.calibration import robust_scale
from prism.covariation import Covariation
from prism.intrinsic import joint_mle_time
from prism.metrics import coverage_table
from prism.model.age_rule import AgeRule, learn_age_rule
from prism.model.state import date
from prism.typing import Floats, Shapes, Strings, Times

if TYPE_CHECKING:
    from prism.model.calibrate import CrossFit
    from prism.model.core import PRISM

TRAIT_SHARE, AGE_SHARES = 0.1, (0.03, 0.1, 0.3, 1.0)  # of the modes, where they are believed
SLOWEST = 0.1  # least pace of an estimate that is counted


@dataclass(frozen=True)
class Dated:
    """Times of subjects not seen, with some share of the modes.

    Attributes:
        share: Of the modes.
        apart: (N,) distance from the calendar, see `calendar_error`; NaN where it cannot be told.
        u: (N,) tau - t over the claimed spread about the calendar.
        scale: Found over claimed spread.
    """

    share: float
    apart: Floats
    u: Floats
    scale: float = 1.0

    @property
    def coverage(self) -> dict[str, float]:
        """Nominal level -> share of times inside the scaled interval about the calendar."""
        u = self.u[np.isfinite(self.u)] / self.scale
        return {f"{level:g}": held for level, held in coverage_table(u).items()} if len(u) else {}


def choose_dating(model: PRISM, how: Covariation, cross: CrossFit) -> tuple[Dated, AgeRule]:
    """How developmental time and how calendar age are told from a shape.

    Points independent given tau is the simple answer, and modes must earn their place: whatever
    tempo is, an estimate that scatters less about the calendar has less error of its own. Of
    calendar age that holds for all of the modes. Of developmental time it holds for modes as far
    as they are not tempo: where regions have tempi of their own, the others would leave nothing
    but the region that differs least.

    New people will be dated by all members of the population together. They scatter more than
    those whom most members have seen, and less than by one member alone: half-way, by factors.
    """
    alone = _Trial.of(model, cross)
    judges = [(model.table, own) for _, own in cross.judges]
    together = _Trial.of(model, replace(cross, judges=judges))
    simple = alone.dated(0.0)
    tempo = earned(simple, [alone.dated(TRAIT_SHARE, traits=True)], cross.seen.subject)
    modes = [alone.dated(share) for share in AGE_SHARES]
    share = earned(simple, modes, cross.seen.subject).share
    tempo = between(tempo, together.dated(tempo.share, traits=True))
    clocks = [trial.times(share)[0] for trial in (alone, together)]
    return tempo, learn_age_rule(model, how, cross, clocks, share)


@dataclass(frozen=True)
class _Trial:
    """Visits (N,) to be dated by the judges, and first guesses."""

    cross: CrossFit
    shapes: Shapes
    start: Times

    @classmethod
    def of(cls, model: PRISM, cross: CrossFit) -> _Trial:
        shapes, start = cross.cohort.points - model.template, np.empty(len(cross.fold))
        for rows, table, _ in cross.parts():
            start[rows] = joint_mle_time(table, shapes[rows]).tau
        return cls(cross, shapes, start)

    def times(self, share: float, traits: bool = False) -> tuple[Times, Times]:
        """Times and claimed spreads with a share of the modes, or of what is not tempo in them."""
        tau, claimed = np.empty(len(self.start)), np.empty(len(self.start))
        for rows, table, how in self.cross.parts():
            modes = share * how.traits if traits else share
            found = date(how, table, self.shapes[rows], modes, self.start[rows])
            tau[rows], claimed[rows] = found.tau, found.spread
        return tau, claimed

    def dated(self, share: float, traits: bool = False) -> Dated:
        """The same, against the calendar."""
        t, (tau, claimed) = self.cross.seen.t, self.times(share, traits)
        known, apart, u = np.isfinite(tau), np.full(len(t), np.nan), (tau - t) / claimed
        if known.any():
            apart[known] = calendar_error(t[known], tau[known])
        return Dated(share, apart, u, robust_scale(u, self.cross.seen.subject))


def calendar_error(t: Times, tau: Times) -> Floats:
    """|tau - t| in calendar time: over the pace of tau, its slope on t, (N,).

    An estimate that is late near the last ages would be nearer for no merit.
    """
    pace = float(np.polyfit(t, tau, 1)[0]) if len(np.unique(t)) > 1 else 1.0
    return np.abs(tau - t) / max(pace, SLOWEST)


def earned(simple: Dated, others: list[Dated], subject: Strings) -> Dated:
    """The nearest to the calendar, or the simple one where that gains less than a standard error.

    Not by squares: of a few subjects one far from its age would decide alone.
    """
    best = min(others, key=lambda dated: float(np.nansum(dated.apart)))
    gain = simple.apart - best.apart
    known = np.isfinite(gain)
    _, owner = np.unique(subject[known], return_inverse=True)
    gain = np.bincount(owner, gain[known]) / np.bincount(owner)
    enough = len(gain) > 1 and gain.mean() > gain.std(ddof=1) / np.sqrt(len(gain))
    return best if enough else simple


def between(alone: Dated, together: Dated) -> Dated:
    """The first, at the geometric mean of the scales."""
    return replace(alone, scale=float(np.sqrt(alone.scale * together.scale)))
