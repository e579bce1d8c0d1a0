"""How good is a model on a cohort: every metric that the truth or the visits allow."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from prism import metrics
from prism.applications.anomalies import anomaly
from prism.applications.predictions import RULES, predict_shape
from prism.applications.times import TimeMap, intrinsic_time
from prism.applications.trajectories import trajectory
from prism.calibration import LEVELS
from prism.cohort import Advance, Correspondence, Progress, Truth, silent
from prism.errors import QueryError
from prism.model import PRISM
from prism.model.calibrate import standardised
from prism.typing import Shapes

AGAINST_AGE = "chronological age"
MOST_SHAPES = 400
MOST_ASSIGNMENTS = 50  # shapes whose earth mover's distance is computed: seconds each


def evaluate(
    model: PRISM,
    cohort: Correspondence,
    truth: Truth | None = None,
    emd: bool = True,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Measure a model on a cohort.

    Distances are x 100 in the cohort's length unit (CD squared), between shapes re-sampled as the
    paper does, over at most 400 evenly chosen shapes. The samples of a found and of a true surface
    are independent, so that a perfect answer scores the sampling floor, not zero. The earth mover's
    distance is over 50 shapes, and may be left out.

    Args:
        model: A trained model.
        cohort: Visits with known ages, best of subjects the model has not seen.
        truth: What a simulated cohort knows about itself.
        emd: Also compute the earth mover's distance (slow).
        progress: Receives a message after every shape that was compared.

    Raises:
        QueryError: No visit has a known age.
    """
    if np.isnan(cohort.visits.t).all():
        raise QueryError(
            f"no visit of cohort {cohort.name!r} has an age to measure the model by.",
            "Fill in the column t of visits.csv; `prism time` dates visits without an age.",
        )
    times = intrinsic_time(model, cohort)
    result: dict[str, Any] = {
        "cohort": cohort.name,
        "shapes": len(cohort),
        "subjects": len(cohort.visits.subjects),
        "unit": {"time": cohort.time_unit, "length": cohort.length_unit},
        "trajectory": _trajectory_metrics(model, cohort, truth, emd, progress),
        "time": _time_metrics(times, truth),
        "coverage": _coverage(model, cohort) | {"time": _held(times.z)},
        "prediction": _prediction_metrics(model, cohort, truth, emd, progress),
        "anomaly": _anomaly_metrics(model, cohort, truth),
    }
    if truth is not None:
        result |= _spread_metrics(model, truth)
    return {name: part for name, part in result.items() if part not in ({}, None)}


def _some(count: int, most: int = MOST_SHAPES) -> np.ndarray:
    return np.linspace(0, count - 1, min(count, most)).round().astype(int)


def _distances(
    found: Shapes,
    target: Shapes,
    cells: Any,
    emd: bool,
    phase: str = "shapes",
    progress: Progress = silent,
) -> dict[str, float]:
    """Mean CD, HD and EMD x 100 over pairs of shapes; failures are counted, not scored."""
    started = time.monotonic()
    rows: list[list[float]] = []
    costs: list[list[float]] = []
    failures = 0
    assigned = _some(len(found), MOST_ASSIGNMENTS) if emd else ()
    for k, (a, b) in enumerate(zip(found, target, strict=True)):
        left = (time.monotonic() - started) / max(k, 1) * (len(found) - k)
        progress(Advance(phase, k, len(found), left))
        seen = ~np.isnan(b[:, 0])
        try:
            x = metrics.sample_shape(np.where(seen[:, None], a, np.nan), cells)
            y = metrics.sample_shape(b, cells, seed=1)
        except QueryError:
            failures += 1
            continue
        rows.append([metrics.chamfer(x, y), metrics.hausdorff(x, y)])
        if k in assigned:
            few = x[: metrics.EMD_COUNT], y[: metrics.EMD_COUNT]
            costs.append([metrics.emd(*few), metrics.emd_squared(*few)])
    return {
        **_means(rows, ["cd_x100", "hd_x100"]),
        **_means(costs, ["emd_x100", "emd_squared_x100"]),
        "shapes": len(rows),
        "failures": failures,
    }


def _means(rows: list[list[float]], names: list[str]) -> dict[str, float]:
    means = 100 * np.mean(rows, axis=0) if rows else []
    return dict(zip(names, map(float, means), strict=False))


def _mean_at(truth: Truth, t: np.ndarray) -> Shapes:
    """True mean shape at times t by linear interpolation of its table."""
    place = np.interp(t, truth.t_grid, np.arange(len(truth.t_grid)))
    low = np.minimum(place.astype(int), len(truth.t_grid) - 2)
    share = (place - low)[:, None, None]
    return (1 - share) * truth.mean[low] + share * truth.mean[low + 1]


def _trajectory_metrics(
    model: PRISM,
    cohort: Correspondence,
    truth: Truth | None,
    emd: bool,
    progress: Progress,
) -> dict[str, Any]:
    rows = _some(len(cohort))
    rows = rows[~np.isnan(cohort.visits.t[rows])]
    target = cohort.points[rows] if truth is None else truth.clean[rows]
    t = cohort.visits.t[rows]
    found = model.mean_shapes(np.repeat(t[:, None], len(model.template), axis=1))
    result: dict[str, Any] = _distances(
        found, target, model.cells, emd, "shapes at the age", progress
    )
    if truth is not None and result["shapes"]:
        oracle = _distances(
            _mean_at(truth, t), target, model.cells, False, "true averages", progress
        )
        result["oracle_cd_x100"] = oracle["cd_x100"]
        result["ratio_to_oracle"] = result["cd_x100"] / oracle["cd_x100"]
    return result


def _time_metrics(times: TimeMap, truth: Truth | None) -> dict[str, Any]:
    names = ("tau", "tau_mean", "tau_fisher", "tau_mle")
    target = None if truth is None else truth.tau_global
    result: dict[str, Any] = {}
    if truth is None or target is not None:
        against = times.visits.t if target is None else target
        result = {name: metrics.time_metrics(getattr(times, name), against) for name in names}
        result["against"] = AGAINST_AGE if target is None else "true intrinsic time"
    if target is not None:
        result["tau"]["coverage"] = _held((times.tau - target) / times.tau_se)
    if truth is not None:
        for r, region in enumerate(truth.regions.tolist()):
            point, true = int(truth.landmarks[r]), truth.tau[:, r]
            result[f"at_{region}"] = _landmark_times(times, point, true)
    return result


def _landmark_times(times: TimeMap, point: int, true: np.ndarray) -> dict[str, Any]:
    """Pooled, likelihood and encoder times of one point against the truth."""
    found = {
        "pooled": times.point_tau,
        "likelihood": times.point_tau_mle,
        "encoder": times.point_tau_encoder,
    }
    result: dict[str, Any] = {
        name: metrics.time_metrics(tau[:, point], true) for name, tau in found.items()
    }
    off = (times.point_tau[:, point] - true) / times.point_se[:, point]
    return result | {"coverage": _held(off)}


def _held(u: np.ndarray) -> dict[str, float]:
    """Nominal level -> share of standardised errors inside the interval; empty if none is known."""
    if np.isnan(u).all():
        return {}
    return {f"{level:g}": share for level, share in metrics.coverage_table(u).items()}


def _coverage(model: PRISM, cohort: Correspondence) -> dict[str, Any]:
    """Share of observed coordinates inside the calibrated and inside the bare normal interval."""
    known = ~np.isnan(cohort.visits.t)
    u = standardised(model, cohort[known])
    inside = {
        f"{level:g}": metrics.coverage(
            -model.interval_factor("population", level) + 0 * u,
            model.interval_factor("population", level) + 0 * u,
            u,
        )
        for level in LEVELS
    }
    return {"displacement": inside, "displacement_uncalibrated": _held(u)}


def _spread_metrics(model: PRISM, truth: Truth) -> dict[str, dict[str, float]]:
    """Mean relative error of sigma_tau(t) over the training ages at each region's landmark.

    `sigma_tau` is the paper's bound, `sigma_tau_separated` the spread without the placing error.
    """
    inside = ~model.outside_ages(truth.t_grid)
    found = trajectory(model, truth.t_grid[inside])
    kinds = {"sigma_tau": found.sigma_tau_bound, "sigma_tau_separated": found.sigma_tau}
    return {
        kind: {
            region: _relative_error(spread[:, truth.landmarks[r]], truth.sigma_tau[inside, r])
            for r, region in enumerate(truth.regions.tolist())
        }
        for kind, spread in kinds.items()
    }


def _relative_error(found: np.ndarray, true: np.ndarray) -> float:
    """Mean relative error; NaN where time cannot be read at any age."""
    return metrics.relative_error(found, true) if np.isfinite(found).any() else float("nan")


def _prediction_metrics(
    model: PRISM,
    cohort: Correspondence,
    truth: Truth | None,
    emd: bool,
    progress: Progress,
) -> dict[str, Any]:
    try:
        forecasts = {rule: predict_shape(model, cohort, rule=rule) for rule in RULES}
    except QueryError:
        return {}
    target = cohort.points if truth is None else truth.clean
    result: dict[str, Any] = {}
    for rule, forecast in forecasts.items():
        rows = _some(len(forecast.row1))
        later = target[forecast.row1[rows]]
        result[rule] = _distances(
            forecast.points[rows], later, model.cells, emd, f"forecasts ({rule})", progress
        )
        result[rule]["coverage_0.9"] = metrics.coverage(
            forecast.lower, forecast.upper, cohort.points[forecast.row1]
        )
    return result


def _anomaly_metrics(model: PRISM, cohort: Correspondence, truth: Truth | None) -> dict[str, Any]:
    found = anomaly(model, cohort)
    abnormal = _abnormal(cohort, truth)
    normal = np.ones(len(cohort), dtype=bool) if abnormal is None else ~abnormal
    flagged = {
        f"flagged_at_0.1{kind}": float(np.mean(getattr(found, f"p_value{kind}")[normal] < 0.1))
        for kind in ("", "_growth", "_low_rank", "_mahalanobis", "_paper")
        if normal.any()
    }
    if abnormal is None or abnormal.all() or not abnormal.any():
        return flagged
    scores = {
        "score": found.score,
        "score_growth": found.score_growth,
        "score_low_rank": found.score_low_rank,
        "score_mahalanobis": found.score_mahalanobis,
        "score_paper": -found.score_paper,
    }
    return flagged | {
        name: {
            "auc": metrics.auc(score, abnormal),
            "auc_interval": metrics.auc_interval(score, abnormal, seed=0),
            "youden": metrics.youden(score, abnormal)._asdict(),
        }
        for name, score in scores.items()
    }


def _abnormal(cohort: Correspondence, truth: Truth | None) -> np.ndarray | None:
    """Who is abnormal, from the truth or from a column `group` other than normal."""
    if truth is not None and truth.abnormal is not None:
        return truth.abnormal.astype(bool)
    group = cohort.visits.columns.get("group")
    if group is None:
        return None
    return ~np.isin(np.char.lower(group), ["", "normal", "control", "healthy"])
