"""Noise, gaps, small cohorts, lasting traits, lesions: the figures of docs/results.md.

    python experiments/trust.py [noise|clock|small|tubes|lasting|repeat|oracle ...]
        [--seeds 0-2] [--device auto] [--workers 1]

Prints one JSON line a fit as it ends, and a table a kind. `clock` asks of many cohorts what one
cannot tell: all its people share the error of its clock; `oracle`, what the best of clocks does.
With several workers a GPU is shared best under NVIDIA's multi-process service.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from typing import Any

import numpy as np

import prism
from prism import metrics
from prism.applications.times import tempo_spread
from prism.baselines import PCARidge, PointwiseSpline, PPCAScore
from prism.intrinsic import TimeTable
from prism.model.state import date
from prism.simulate import starman, tubes
from prism.simulate.study import Study

Row = dict[str, Any]
Measure = Callable[..., Row]
RULES = ("pooled", "paper", "mean")
SMALL_NOISE = 0.01  # of the small Starman cohorts that stand beside PCA
SEVERAL = 3  # earlier visits from which the gain of a history is told


def fitted(study: Study, seed: int, device: str) -> tuple[prism.PRISM, Study]:
    """A default model of the training split, and the test split."""
    model = prism.PRISM.fit(study.of_split("train").correspondence, seed=seed, device=device)
    return model, study.of_split("test")


def rms(error: np.ndarray) -> float:
    """Root mean square."""
    return float(np.sqrt(np.mean(error**2)))


def noise(cohort: str, noise: float, missing: float, seed: int, device: str) -> Row:
    """Every figure of one Starman cohort of 1000 people."""
    study = starman(cohort, 1000, seed, noise, missing, test_subjects=200)  # type: ignore[arg-type]
    model, test = fitted(study, seed, device)
    found = prism.evaluate(model, test.correspondence, test.truth, emd=False)
    row = {f"cd {rule}": found["prediction"][rule]["cd_x100"] for rule in RULES}
    row["forecast coverage"] = found["prediction"]["pooled"]["coverage_0.9"]
    row["displacement coverage"] = found["coverage"]["displacement"]["0.9"]
    row["separated"] = max(found["sigma_tau_separated"].values())
    row["bound"] = max(found["sigma_tau"].values())
    row["cd ratio"] = found["trajectory"]["ratio_to_oracle"]
    row["flagged"] = found["anomaly"]["flagged_at_0.1"]
    return row | _clock(model, test)


def clock(cohort: str, noise: float, seed: int, device: str) -> Row:
    """Developmental time alone of one Starman cohort of 1000 people."""
    study = starman(cohort, 1000, seed, noise, test_subjects=150)  # type: ignore[arg-type]
    return _clock(*fitted(study, seed, device))


def _clock(model: prism.PRISM, test: Study) -> Row:
    """Error of tau, from the mean of the regions' times, and its 90% intervals.

    `looks` is the share that holds how old the anatomy looks: its shape without noise, dated in
    the same way by the law it was drawn from. `regions` is the share of 90% intervals at the
    regions' landmarks that hold the regions' own times. `about the age` is the share of people
    whose tau lies in the interval that the model gives for their age, `truly` that of true times.
    """
    times = prism.intrinsic_time(model, test.correspondence)
    truth = np.reshape(test.truth.tau, (len(test), -1)).mean(axis=1)
    u, t = (times.tau - truth) / times.tau_se, test.correspondence.visits.t
    point = test.truth.landmarks
    local = (times.point_tau[:, point] - test.truth.tau) / times.point_se[:, point]
    return {
        "tau": float(np.abs(times.tau - truth).mean()),
        "tau coverage": held(u),
        "about the age": held(times.z),
        "truly": held((truth - t) / tempo_spread(model, t)),
        "u2": float(np.mean(u**2)),
        "looks": held((times.tau - looks(model, test)) / times.tau_se),
        "regions": held(local),
        "modes": model.calibration.modes,
        "doubt": model.calibration.doubt,
    }


def oracle(seed: int, device: str) -> Row:
    """What a clock holds that knows the law but for the mean tempo, which 1000 people show it.

    Without noise that mean is all there is to learn, and no clock can know it better.
    """
    train = starman("global", 1000, seed, test_subjects=200).of_split("train")  # as in `noise`
    t, truth = train.correspondence.visits.t, train.truth
    tempo = (truth.tau[:, 0] - t) / np.interp(t, truth.t_grid, truth.sigma_tau[:, 0])
    _, first = np.unique(train.correspondence.visits.subject, return_index=True)
    luck = float(tempo[first].mean() * np.sqrt(len(first)))
    return {"luck": luck, "tau coverage": held(np.array([luck]))}


def held(u: np.ndarray) -> float:
    """Share of standardised errors inside the 90% interval."""
    return metrics.coverage_table(u)[0.9]


def looks(model: prism.PRISM, test: Study) -> np.ndarray:
    """How old shapes without noise look by the law they were drawn from, points weighed alike."""
    how, span = model.covariation, (model.table.first, model.table.last)
    law = TimeTable.of(test.law, model.template, span)
    clean = test.truth.clean - model.template
    return date(how, law, clean, model.calibration.modes * how.traits).tau


def small(cohort: str, subjects: int, seed: int, device: str) -> Row:
    """A small Starman cohort beside PCA with ridge."""
    study = starman(cohort, subjects, seed, SMALL_NOISE, test_subjects=100)  # type: ignore[arg-type]
    model, test = fitted(study, seed, device)
    plain = PCARidge.fit(study.of_split("train").correspondence)
    return _beside_pca(model, test, plain) | _clock(model, test) | _forecasts(model, test)


def repeat(cohort: str, subjects: int, noise: float, seed: int, device: str) -> Row:
    """Forecasts of small cohorts with repeat visits."""
    if cohort == "tubes":
        study = tubes(subjects, seed, noise, test_subjects=100, visits=4)
    else:
        study = starman(cohort, subjects, seed, noise, test_subjects=100)  # type: ignore[arg-type]
    model, test = fitted(study, seed, device)
    return _forecasts(model, test) | _clock(model, test)


def _forecasts(model: prism.PRISM, test: Study) -> Row:
    """Forecast errors by rule against shapes without noise, and what the 90% intervals hold."""
    seen, clean = test.correspondence, test.truth.clean
    row: Row = {"pointwise": model.calibration.pointwise}
    for rule in RULES:
        forecast = prism.predict_shape(model, seen, rule=rule)  # type: ignore[arg-type]
        row[f"by {rule}"] = rms(forecast.points - clean[forecast.row1])
        if rule == "pooled":
            later = seen.points[forecast.row1]
            row["forecast coverage"] = metrics.coverage(forecast.lower, forecast.upper, later)
    return row | {"over better": row["by pooled"] / min(row["by paper"], row["by mean"])}


def tubes_of(subjects: int, seed: int, device: str) -> Row:
    """Tubes beside PCA with ridge, and narrowed ones beside plain scores."""
    study = tubes(subjects, seed, test_subjects=100, abnormal=60)
    model, test = fitted(study, seed, device)
    train, cohort = study.of_split("train").correspondence, test.correspondence
    abnormal = np.asarray(test.truth.abnormal, dtype=bool)
    normal = test[~abnormal]
    found = prism.anomaly(model, cohort)
    scores = {
        "PRISM": found.score,
        "low rank": found.score_low_rank,
        "paper": -found.score_paper,
        "PPCA": PPCAScore.fit(train).score(cohort),
        "top-k |z|": PointwiseSpline.fit(train).score(cohort),
    }
    row: Row = {name: metrics.auc(score, abnormal) for name, score in scores.items()}
    row["flagged"] = float(np.mean(found.p_value[~abnormal] < 0.1))
    return row | _beside_pca(model, normal, PCARidge.fit(train)) | _clock(model, normal)


def _beside_pca(model: prism.PRISM, test: Study, plain: PCARidge) -> Row:
    t, inside = test.correspondence.visits.t, ~model.outside_ages(test.truth.t_grid)
    grid, true = test.truth.t_grid[inside], test.truth.mean[inside]
    mean = model.mean_shapes(np.repeat(grid[:, None], len(model.template), axis=1))
    unknown = replace(test.correspondence.visits, t=np.full(len(t), np.nan))
    age = prism.intrinsic_time(model, replace(test.correspondence, visits=unknown)).age
    row = {
        "mean": rms(mean - true),
        "mean PCA": rms(plain.mean_shapes(grid) - true),
        "age": float(np.abs(age.median - t).mean()),
        "age PCA": float(np.abs(plain.age(test.correspondence) - t).mean()),
        "age coverage": metrics.coverage(age.lower, age.upper, t),
    }
    return row | {f"{name} ratio": row[name] / row[f"{name} PCA"] for name in ("mean", "age")}


def lasting(cohort: str, traits: float, drift: float, seed: int, device: str) -> Row:
    """Traits that last, tempo that drifts, or neither: one visit against all earlier ones."""
    study = starman(
        "global", 400, seed, 0.005, test_subjects=150, traits=traits, drift=drift
    )  # fmt: skip
    model, test = fitted(study, seed, device)
    seen, clean = test.correspondence, test.truth.clean
    row = _forecasts(model, test)
    for history in ("first", "all"):
        forecast = prism.predict_shape(model, seen, history=history)  # type: ignore[arg-type]
        several = _earlier(seen.visits, forecast.row1) >= SEVERAL
        row[f"{history} of several"] = rms((forecast.points - clean[forecast.row1])[several])
    return row


def _earlier(visits: prism.Visits, rows: np.ndarray) -> np.ndarray:
    """How many visits of the same subject lie before each of `rows`."""
    same = visits.subject[rows, None] == visits.subject[None]
    return (same & (visits.t[None] < visits.t[rows, None])).sum(axis=1)


LEVELS = (0.0, 0.003, 0.01, 0.03)
KINDS: dict[str, tuple[Measure, list[Row]]] = {
    "noise": (
        noise,
        [{"cohort": k, "noise": n, "missing": 0.0} for n in LEVELS for k in ("global", "local")]
        + [{"cohort": "global", "noise": 0.003, "missing": 0.3}],
    ),
    "clock": (clock, [{"cohort": k, "noise": n} for n in LEVELS for k in ("global", "local")]),
    "small": (
        small,
        [{"cohort": k, "subjects": n} for n in (200, 50, 18) for k in ("global", "local")],
    ),
    "tubes": (tubes_of, [{"subjects": n} for n in (200, 50, 18)]),
    "repeat": (
        repeat,
        [{"cohort": "tubes", "subjects": n, "noise": 0.2} for n in (200, 50, 18)]
        + [
            {"cohort": k, "subjects": n, "noise": x}
            for n in (200, 50, 18)
            for x in LEVELS
            if x != SMALL_NOISE
            for k in ("global", "local")
        ],
    ),
    "oracle": (oracle, [{}]),
    "lasting": (
        lasting,
        [
            {"cohort": "plain", "traits": 0.0, "drift": 0.0},
            {"cohort": "traits", "traits": 0.05, "drift": 0.0},
            {"cohort": "drift", "traits": 0.0, "drift": 2.0},
        ],
    ),
}


def measured(measure: Measure, setting: Row, device: str) -> Row:
    """One row: what was asked for, what came out, and the seconds it took."""
    start = time.perf_counter()
    found = measure(**setting, device=device)
    return setting | found | {"seconds": time.perf_counter() - start}


def _seeds(text: str) -> list[int]:
    ends = [part.partition("-") for part in text.split(",")]
    return [seed for a, _, b in ends for seed in range(int(a), int(b or a) + 1)]


def _told(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _table(rows: list[Row]) -> str:
    names = list(rows[0])
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    lines += ["| " + " | ".join(_told(row[name]) for name in names) + " |" for row in rows]
    return "\n".join(lines)


def main() -> None:
    """Run what was asked for and print a table of each kind."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("kinds", nargs="*", default=list(KINDS), choices=[*KINDS, []])
    parser.add_argument("--seeds", type=_seeds, default=_seeds("0-2"), metavar="0-2,5")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--workers", type=int, default=1, help="fits at a time")
    asked = parser.parse_args()
    if asked.workers > 1:
        share = (os.cpu_count() or 1) // asked.workers
        os.environ.setdefault("OMP_NUM_THREADS", str(max(share, 1)))
    rows: dict[str, list[Row]] = {kind: [] for kind in asked.kinds}
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(asked.workers, mp_context=fresh) as pool:
        jobs = {
            pool.submit(measured, KINDS[kind][0], setting | {"seed": seed}, asked.device): kind
            for kind in asked.kinds
            for setting in KINDS[kind][1]
            for seed in asked.seeds
        }
        for job in as_completed(jobs):
            rows[jobs[job]].append(job.result())
            print(json.dumps({"kind": jobs[job]} | job.result()), flush=True)
    for kind in asked.kinds:
        print(f"\n{kind}\n" + _table(rows[kind]), flush=True)


if __name__ == "__main__":
    main()
