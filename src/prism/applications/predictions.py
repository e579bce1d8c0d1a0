"""What will this anatomy look like at a later age?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from prism import rules
from prism.cohort import Correspondence
from prism.errors import QueryError
from prism.intrinsic import mle_time
from prism.model import PRISM
from prism.typing import Cells, Shapes, Strings, Times

Rule = Literal["paper", "mean"]
RULES = ("paper", "mean")


@dataclass(frozen=True)
class Prediction:
    """Forecast shapes with 90% intervals, in the user's units.

    Attributes:
        points: (K, M, n) forecast shapes.
        lower, upper: (K, M, n) interval of every coordinate.
        subject: (K,) whose forecast it is.
        from_visit: (K,) the visit it starts from.
        t0, t1: (K,) the age it starts from and the age it is for.
        row0: (K,) row of the start visit in the cohort.
        row1: (K,) row of the visit forecast, or -1 where none was given.
        extrapolated: (K,) True where t1 lies outside the training ages.
        cells: Segments or triangles, if any.
    """

    points: Shapes
    lower: Shapes
    upper: Shapes
    subject: Strings
    from_visit: Strings
    t0: Times
    t1: Times
    row0: np.ndarray
    row1: np.ndarray
    extrapolated: np.ndarray
    cells: Cells | None


def predict_shape(
    model: PRISM,
    cohort: Correspondence,
    t1: float | Times | None = None,
    rule: Rule = "paper",
    level: float = 0.9,
) -> Prediction:
    """Forecast each subject from its earliest visit.

    Args:
        model: A trained model.
        cohort: Observed visits; those without an age cannot start a forecast.
        t1: Ages to forecast every subject for. Default: the ages of its own later visits.
        rule: "paper" keeps every point's temporal z-score; "mean" is the population mean at t1.
        level: Nominal share of the interval (0.5, 0.8, 0.9 or 0.95).
    """
    if rule not in RULES:
        raise QueryError(f"rule must be one of {RULES}. Got {rule!r}.", "Choose one of them.")
    start, later, ages = _pairs(cohort, t1)
    t0 = cohort.visits.t[start]
    tau1 = np.repeat(ages[:, None], len(model.template), axis=1)
    if rule == "paper":
        tau0 = mle_time(model.table, model.displacements(cohort)[start]).tau
        z = rules.temporal_z(tau0, t0, model.spread(t0))
        tau1 = rules.forecast_time(z, ages, model.spread(ages))
    points = model.mean_shapes(tau1)
    kind = "forecast" if rule == "paper" else "population"
    width = model.interval_factor(kind, level) * model.field_at(ages).std.numpy()
    return Prediction(
        points=points,
        lower=points - width,
        upper=points + width,
        subject=cohort.visits.subject[start],
        from_visit=cohort.visits.visit[start],
        t0=t0,
        t1=ages,
        row0=start,
        row1=later,
        extrapolated=model.outside_ages(ages),
        cells=model.cells,
    )


def _pairs(
    cohort: Correspondence, t1: float | Times | None
) -> tuple[np.ndarray, np.ndarray, Times]:
    """Start rows, target rows (-1 for none) and target ages."""
    t = cohort.visits.t
    if t1 is None:
        start, later = rules.first_to_later(cohort.visits.subject, t)
        if not len(start):
            raise QueryError(
                f"cohort {cohort.name!r} has no subject with a later visit to forecast.",
                "Say for which ages to forecast: t1=..., or --at 5,10 on the command line.",
            )
        return start, later, t[later]
    ages = np.atleast_1d(np.asarray(t1, dtype=np.float64))
    if not np.isfinite(ages).all():
        raise QueryError(f"ages must be finite numbers. Got {t1!r}.", "Give ages such as 5,10.")
    first = _first_visits(cohort)
    start = np.repeat(first, len(ages))
    return start, np.full(len(start), -1), np.tile(ages, len(first))


def _first_visits(cohort: Correspondence) -> np.ndarray:
    t, subject = cohort.visits.t, cohort.visits.subject
    rows = [
        min(np.flatnonzero((subject == name) & ~np.isnan(t)), key=lambda row: t[row], default=-1)
        for name in cohort.visits.subjects
    ]
    known = np.array([row for row in rows if row >= 0], dtype=int)
    if not len(known):
        raise QueryError(
            f"no visit of cohort {cohort.name!r} has an age to start from.",
            "Fill in the column t of visits.csv, or date the visits first with `prism time`.",
        )
    return known
