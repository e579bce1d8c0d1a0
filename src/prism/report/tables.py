"""Tables of a report: numbers that were computed elsewhere, made readable."""

from __future__ import annotations

from typing import Any

import numpy as np

from prism.model import PRISM
from prism.report.plates import Findings
from prism.report.style import age_decimals, bare_age, correlation, real_unit

MOST_ROWS = 200
LARGEST_WHOLE = 1e7  # larger numbers are written with a power of ten
NONE = "\u2013"  # a dash, where there is no number
Row = tuple[str, str, str]  # measure, value, how to read it


def number(value: float, digits: int = 3) -> str:
    """A number as people write it; a dash where there is none."""
    if not np.isfinite(value):
        return NONE
    whole = 10.0**digits <= abs(value) < LARGEST_WHOLE
    return f"{value:,.0f}" if whole else f"{value:.{digits}g}"


def fixed(value: float, digits: int) -> str:
    """A number with so many decimals; a small one is said to be small, not zero."""
    least = 10.0**-digits
    if not np.isfinite(value):
        return NONE
    return (
        f"{value:.{digits}f}" if value == 0 or abs(value) >= least / 2 else f"< {least:.{digits}f}"
    )


def percent(share: float) -> str:
    """A share of one, as a percentage."""
    return f"{100 * share:.1f}%" if np.isfinite(share) else NONE


def with_unit(text: str, unit: str) -> str:
    """A written number and its unit, if it has one."""
    return f"{text} {real_unit(unit)}".strip()


def key_numbers(found: Findings) -> list[tuple[str, str]]:
    """The figures a reader looks for first: (value, what it is)."""
    model, facts = found.model, found.model.provenance
    first, last = (bare_age(model, t) for t in model.ages)
    coverage = model.calibration.coverage.get("0.9", np.nan)
    return [
        (with_unit(f"{first} to {last}", model.time_unit), "ages covered"),
        (_count(facts.get("subjects")), "subjects learned from"),
        (_count(facts.get("shapes")), "shapes learned from"),
        (f"{len(model.template):,}", f"template points, {model.dimension}D"),
        (with_unit(number(model.population.floor), model.length_unit), "noise floor"),
        (percent(coverage), "of held-out shape inside the 90% interval"),
    ]


def _count(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else NONE


def visit_rows(found: Findings) -> list[dict[str, str]]:
    """One row a visit, in the cohort's order; of more than 200 the most unusual."""
    digits = age_decimals(found.model) + 2
    times, flags, visits = found.times, found.anomaly, found.cohort.visits
    shown = np.sort(np.argsort(flags.p_value, kind="stable")[:MOST_ROWS])  # NaN goes last
    return [
        {
            "subject": str(visits.subject[i]),
            "visit": str(visits.visit[i]),
            "t": fixed(visits.t[i], digits),
            "tau": f"{fixed(times.tau[i], digits)} ± {fixed(times.tau_se[i], digits)}",
            "z": f"{times.z[i]:+.2f}" if np.isfinite(times.z[i]) else NONE,
            "p_value": number(flags.p_value[i], 2),
            "flagged": "yes" if flags.p_value[i] <= 0.05 else "",
            "where": flags.where[i],
        }
        for i in map(int, shown)
    ]


def evaluation_rows(scores: dict[str, Any], model: PRISM) -> list[Row]:
    """The evaluation's dictionary, measure by measure."""
    rows = [
        *_time_rows(scores.get("time", {}), model.time_unit),
        *_distance_rows("Average shape at the age", scores.get("trajectory", {})),
        *_held_rows("Intrinsic time about the age", scores.get("coverage", {}).get("time", {})),
        *_spread_rows("Temporal spread", scores.get("sigma_tau_separated", {})),
        *_spread_rows("Temporal spread (paper's bound)", scores.get("sigma_tau", {})),
        *_prediction_rows(scores.get("prediction", {})),
        *_coverage_rows(scores.get("coverage", {}).get("displacement", {})),
        *_anomaly_rows(scores.get("anomaly", {})),
    ]
    return [row for row in rows if row[1] != NONE]


def _time_rows(part: dict[str, Any], unit: str) -> list[Row]:
    rows: list[Row] = []
    if "tau" in part:
        rows += _time_of("Intrinsic time", part["tau"], unit, f"against {part['against']}")
        rows += _held_rows("Intrinsic time", part["tau"].get("coverage", {}))
    for name, value in part.items():
        if name.startswith("at_"):
            place = name.removeprefix("at_")
            note = f"at the {place} alone, against the truth"
            rows += _time_of(f"Intrinsic time, {place}", value["pooled"], unit, note)
            rows += _held_rows(f"Intrinsic time, {place}", value["coverage"])
    return rows


def _held_rows(name: str, part: dict[str, float]) -> list[Row]:
    return [(f"{name}: inside the 90% interval", percent(part.get("0.9", np.nan)), "90% is right")]


def _time_of(name: str, score: dict[str, float], unit: str, note: str) -> list[Row]:
    return [
        (f"{name}: mean absolute error", with_unit(number(score["mae"]), unit), note),
        (f"{name}: correlation r", correlation(score["r"]).removeprefix("= "), note),
    ]


def _distance_rows(name: str, part: dict[str, Any]) -> list[Row]:
    squared = "mean squared nearest-neighbour distance, both ways; smaller is better"
    rows = [
        (f"{name}: Chamfer x 100", number(part.get("cd_x100", np.nan)), squared),
        (
            f"{name}: Hausdorff x 100",
            number(part.get("hd_x100", np.nan)),
            "largest nearest-neighbour distance; smaller is better",
        ),
        (
            f"{name}: ratio to the true average",
            number(part.get("ratio_to_oracle", np.nan), 4),
            "1 is the best any average can do",
        ),
    ]
    if part.get("failures"):
        note = "they could not be re-sampled: no cells, or too few points"
        rows.append((f"{name}: shapes left out", str(part["failures"]), note))
    return rows


def _spread_rows(name: str, part: dict[str, float]) -> list[Row]:
    note = "mean over the training ages; smaller is better"
    return [(f"{name}, {k}: relative error", percent(v), note) for k, v in part.items()]


def _prediction_rows(part: dict[str, Any]) -> list[Row]:
    names = {
        "pooled": "Forecast (pooled)",
        "paper": "Forecast (paper's rule)",
        "mean": "Population average",
    }
    rows: list[Row] = []
    for rule, scores in part.items():
        name = f"{names.get(rule, rule)} at later visits"
        rows += _distance_rows(name, scores)
        rows += _held_rows(name, {"0.9": scores.get("coverage_0.9", np.nan)})
    return rows


def _coverage_rows(part: dict[str, float]) -> list[Row]:
    return [
        (
            f"Shape of known age: inside the {100 * float(level):g}% interval",
            percent(share),
            f"{100 * float(level):g}% is right",
        )
        for level, share in part.items()
    ]


def _anomaly_rows(part: dict[str, Any]) -> list[Row]:
    flagged = percent(part.get("flagged_at_0.1", np.nan))
    rows = [("Visits with p < 0.1", flagged, "10% is expected where all are normal")]
    if "score" in part:
        low, high = part["score"]["auc_interval"]
        note = f"95% interval {low:.3f} to {high:.3f}; 1 tells all abnormal visits apart"
        rows.append(("Abnormal against normal visits: AUC", f"{part['score']['auc']:.3f}", note))
    return rows
