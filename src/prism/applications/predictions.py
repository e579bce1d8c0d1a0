"""What will this anatomy look like at a later age?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from prism import rules
from prism.applications.trajectories import as_ages
from prism.cohort import Correspondence
from prism.errors import QueryError
from prism.model import PRISM
from prism.model.forecasts import blend, paper_residuals
from prism.model.state import Residuals, forecast_residuals
from prism.typing import Cells, Shapes, Strings, Times

Rule = Literal["pooled", "paper", "mean"]
BLOCK_VALUES = 4_000_000
RULES = ("pooled", "paper", "mean")
History = Literal["first", "all"]
HISTORIES = ("first", "all")


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
    rule: Rule = "pooled",
    level: float = 0.9,
    history: History | None = None,
) -> Prediction:
    """Forecast each subject from its earlier visits.

    Args:
        model: A trained model.
        cohort: Observed visits; those without an age cannot start a forecast.
        t1: Ages to forecast every subject for. Default: the ages of its own later visits.
        rule: "pooled" conditions the subject's whole shape on what was seen, as points and visits
            co-vary, and follows the paper's rule as far as that helped people not seen; "paper"
            keeps every point's temporal z-score; "mean" is the population mean.
        level: Nominal share of the interval (0.5, 0.8, 0.9 or 0.95).
        history: "first" looks at the earliest visit alone, "all" at every visit before the age
            wanted; the other rules know one visit, and "all" is refused with them. Default:
            "first" for a subject's own later visits, "all" for ages asked for.
    """
    _check_choice("rule", rule, RULES)
    if history == "all" and rule != "pooled":
        raise QueryError(
            f"history 'all' cannot be had with rule {rule!r}, which looks at one visit.",
            "Leave history out, or choose the rule 'pooled'.",
        )
    history = history or ("first" if t1 is None else "all")
    _check_choice("history", history, HISTORIES)
    model.displacements(cohort)  # refuses a cohort that does not fit
    start, later, ages = _pairs(cohort, t1)
    mean = model.mean_shapes(np.repeat(ages[:, None], len(model.template), axis=1))
    if rule == "pooled":
        past = [_earlier(cohort, row, age) for row, age in zip(start, ages, strict=True)]
        past = past if history == "all" else [rows[:1] for rows in past]
        start = np.array([rows[-1] for rows in past], dtype=int)
        moved, width = _pooled(model, cohort, past, ages, level)
        points = mean + moved
    else:
        moved = 0.0 if rule == "mean" else np.nan_to_num(_pointwise(model, cohort, start, ages))
        points = mean + moved
        kind = "population" if rule == "mean" else "forecast_paper"
        width = model.interval_factor(kind, level) * model.field_at(ages).std.numpy()
    return Prediction(
        points=points,
        lower=points - width,
        upper=points + width,
        subject=cohort.visits.subject[start],
        from_visit=cohort.visits.visit[start],
        t0=cohort.visits.t[start],
        t1=ages,
        row0=start,
        row1=later,
        extrapolated=model.outside_ages(ages),
        cells=model.cells,
    )


def left_out(cohort: Correspondence, found: Prediction) -> dict[str, int]:
    """How many visits and subjects of a cohort have no share in its forecasts, by the reason."""
    visits = cohort.visits
    dated = set(visits.subject[~np.isnan(visits.t)].tolist())
    forecast = set(found.subject.tolist())
    return {
        "visits without an age": int(np.isnan(visits.t).sum()),
        "subjects without an age": len(set(visits.subjects) - dated),
        "subjects without a later visit": len(dated - forecast),
    }


def _check_choice(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise QueryError(f"{name} must be one of {allowed}. Got {value!r}.", "Choose one of them.")


def _earlier(cohort: Correspondence, row: int, age: float) -> np.ndarray:
    """Rows of the same subject before an age, earliest first; the row itself at least."""
    t = cohort.visits.t
    same = np.flatnonzero((cohort.visits.subject == cohort.visits.subject[row]) & (t < age))
    rows = same[np.argsort(t[same], kind="stable")]
    return rows if len(rows) else np.array([row])


def _pooled(
    model: PRISM, cohort: Correspondence, past: list[np.ndarray], ages: Times, level: float
) -> tuple[Shapes, Shapes]:
    """Expected residuals and half-widths of their intervals, (K, M, n) each, a block at a time."""
    size = max(1, BLOCK_VALUES // model.template.size)
    moved, width = [], []
    factor = model.interval_factor("forecast", level)
    for k in range(0, len(past), size):
        rows = np.unique(np.concatenate(past[k : k + size]))
        seen = Residuals.of(model.table, model.template, cohort[rows])
        here = [np.searchsorted(rows, part) for part in past[k : k + size]]
        ahead = forecast_residuals(model.covariation, model.table, seen, here, ages[k : k + size])
        moved.append(ahead.mean[:, 0])
        sd = np.sqrt(np.diagonal(ahead.cov[:, 0], axis1=-2, axis2=-1))
        width.append(factor * sd)
    pooled, share = np.concatenate(moved), model.calibration.pointwise
    if share > 0:
        last = np.array([rows[-1] for rows in past], dtype=int)
        pooled = blend(pooled, _pointwise(model, cohort, last, ages), share)
    return pooled, np.concatenate(width)


def _pointwise(model: PRISM, cohort: Correspondence, start: np.ndarray, ages: Times) -> Shapes:
    """Residuals by the paper's rule from rows `start` to these ages; NaN where it is silent."""
    d = model.displacements(cohort)[start]
    return paper_residuals(model, model.table, d, cohort.visits.t[start], ages)


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
    ages = as_ages(t1)
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
