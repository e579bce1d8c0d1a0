"""Noise, gaps, small cohorts, lasting traits, lesions: the figures of docs/results.md.

    python experiments/trust.py [noise|small|lasting|lesions] [--seeds 0,1,2] [--device auto]

Prints one JSON line a fit; a table a kind at the end.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

import prism
from prism import metrics
from prism.baselines import PCARidge, PointwiseSpline, PPCAScore
from prism.simulate import starman, tubes
from prism.simulate.study import Study

Row = dict[str, Any]
RULES = ("pooled", "paper", "mean")


def fitted(study: Study, seed: int, device: str) -> tuple[prism.PRISM, Study]:
    """A default model of the training split, and the test split."""
    model = prism.PRISM.fit(study.of_split("train").correspondence, seed=seed, device=device)
    return model, study.of_split("test")


def forecast_rms(forecast: prism.Prediction, clean: np.ndarray) -> float:
    """Root mean square error of forecast points against shapes without noise."""
    return float(np.sqrt(np.mean((forecast.points - clean[forecast.row1]) ** 2)))


def noise(seed: int, device: str) -> Iterator[Row]:
    """Starman of both kinds at four noise levels, and with 30% of the points missing."""
    settings = [(k, n, 0.0) for n in (0.0, 0.003, 0.01, 0.03) for k in ("global", "local")]
    for kind, level, missing in [*settings, ("global", 0.003, 0.3)]:
        study = starman(kind, 1000, seed, level, missing, test_subjects=200)  # type: ignore[arg-type]
        model, test = fitted(study, seed, device)
        found = prism.evaluate(model, test.correspondence, test.truth, emd=False)
        row: Row = {"cohort": kind, "noise": level, "missing": missing, "seed": seed}
        row |= {f"cd {rule}": found["prediction"][rule]["cd_x100"] for rule in RULES}
        row["forecast coverage"] = found["prediction"]["pooled"]["coverage_0.9"]
        row["displacement coverage"] = found["coverage"]["displacement"]["0.9"]
        row["separated"] = max(found["sigma_tau_separated"].values())
        row["bound"] = max(found["sigma_tau"].values())
        row["flagged"] = found["anomaly"]["flagged_at_0.1"]
        if kind == "global":
            row["tau"] = found["time"]["tau"]["mae"]
            row["tau coverage"] = found["time"]["tau"]["coverage"]["0.9"]
        yield row


def small(seed: int, device: str) -> Iterator[Row]:
    """Age and mean shape beside PCA with ridge, at 18, 50 and 200 subjects."""
    for subjects in (18, 50, 200):
        for name in ("starman", "tubes"):
            if name == "starman":
                study = starman("global", subjects, seed, 0.01, test_subjects=100)
            else:
                study = tubes(subjects, seed, test_subjects=100)
            model, test = fitted(study, seed, device)
            plain = PCARidge.fit(study.of_split("train").correspondence)
            row: Row = {"cohort": name, "subjects": subjects, "seed": seed}
            yield row | _beside_pca(model, test, plain)


def _beside_pca(model: prism.PRISM, test: Study, plain: PCARidge) -> Row:
    t, grid = test.correspondence.visits.t, test.truth.t_grid
    grid = grid[~model.outside_ages(grid)]
    true = test.truth.mean[~model.outside_ages(test.truth.t_grid)]
    mean = model.mean_shapes(np.repeat(grid[:, None], len(model.template), axis=1))
    unknown = replace(test.correspondence.visits, t=np.full(len(t), np.nan))
    age = prism.intrinsic_time(model, replace(test.correspondence, visits=unknown)).age
    return {
        "mean": float(np.sqrt(np.mean((mean - true) ** 2))),
        "mean PCA": float(np.sqrt(np.mean((plain.mean_shapes(grid) - true) ** 2))),
        "age": float(np.abs(age.median - t).mean()),
        "age PCA": float(np.abs(plain.age(test.correspondence) - t).mean()),
    }


def lasting(seed: int, device: str) -> Iterator[Row]:
    """Traits that last, tempo that drifts, and neither: one visit against all earlier ones."""
    for name, options in {"plain": {}, "traits": {"traits": 0.05}, "drift": {"drift": 2.0}}.items():
        study = starman("global", 400, seed, 0.005, test_subjects=150, **options)  # type: ignore[arg-type]
        model, test = fitted(study, seed, device)
        cohort, clean = test.correspondence, test.truth.clean
        row: Row = {"cohort": name, "seed": seed}
        for rule in RULES:
            row[rule] = forecast_rms(prism.predict_shape(model, cohort, rule=rule), clean)  # type: ignore[arg-type]
        row["all visits"] = forecast_rms(prism.predict_shape(model, cohort, history="all"), clean)
        yield row


def lesions(seed: int, device: str) -> Iterator[Row]:
    """Narrowed tubes: area under the curve beside plain scores."""
    study = tubes(200, seed, test_subjects=100, abnormal=60)
    model, test = fitted(study, seed, device)
    train, cohort = study.of_split("train").correspondence, test.correspondence
    abnormal = np.asarray(test.truth.abnormal, dtype=bool)
    found = prism.anomaly(model, cohort)
    scores = {
        "PRISM": found.score,
        "low rank": found.score_low_rank,
        "paper": -found.score_paper,
        "PPCA": PPCAScore.fit(train).score(cohort),
        "top-k |z|": PointwiseSpline.fit(train).score(cohort),
    }
    row: Row = {"cohort": "tubes", "seed": seed}
    row |= {name: metrics.auc(score, abnormal) for name, score in scores.items()}
    yield row | {"flagged normals": float(np.mean(found.p_value[~abnormal] < 0.1))}


KINDS: dict[str, Callable[[int, str], Iterator[Row]]] = {
    "noise": noise,
    "small": small,
    "lasting": lasting,
    "lesions": lesions,
}


def _told(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def main() -> None:
    """Run what was asked for and print a table of each kind."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("kinds", nargs="*", default=list(KINDS), metavar="KIND")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--device", default="auto")
    asked = parser.parse_args()
    for kind in asked.kinds:
        rows = []
        for seed in map(int, asked.seeds.split(",")):
            for row in KINDS[kind](seed, asked.device):
                print(json.dumps(row), flush=True)
                rows.append(row)
        names = list(rows[0])
        print("| " + " | ".join(names) + " |\n|" + "---|" * len(names))
        for row in rows:
            print("| " + " | ".join(_told(row.get(name, "")) for name in names) + " |")


if __name__ == "__main__":
    main()
