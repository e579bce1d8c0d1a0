"""Two public data sets end to end: skulls of marsupials by landmarks, and the infant cranium.

    python experiments/real.py [skulls|cranium] --data DIR --out DIR [--device auto]

Writes the cohorts and the model as folders, for `prism time`, `predict`, `anomaly` and `chart`, and
prints a JSON line of figures. Skulls are dated by their size in percent of the adult's. The cranium
comes as mean courses alone: how people differ is added here, and known.
"""

from __future__ import annotations

import argparse
import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import prism
from prism import Cohort, Correspondence, Visits, metrics
from prism.baselines import PCARidge, PPCAScore

Row = dict[str, Any]
SYNOSTOSES = ("metopic", "sagittal", "left_coronal", "right_coronal")


def skulls(data: Path) -> tuple[Correspondence, Correspondence]:
    """Marsupials of six species, one specimen a subject; every fifth is kept for testing."""
    folder = data / "mammal_cranial_dev"
    with (folder / "specimens.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    with (folder / "LM_list.csv").open(encoding="utf-8-sig", newline="") as file:
        bones = [row["Bone"] for row in csv.DictReader(file)]
    stored = np.load(folder / "landmarks.npz", allow_pickle=False)
    which = np.array([i for i, row in enumerate(rows) if row["Major_clades"] == "Marsupialia"])
    name = np.array([rows[i]["Specimen_name"] for i in which])
    species = np.array([rows[i]["Species"] for i in which])
    visits = Visits(
        name,
        np.full(len(which), "only"),
        stored["cs_percent_adult"][which],
        columns={"species": species},
    )
    regions = {bone: np.flatnonzero(np.array(bones) == bone) for bone in dict.fromkeys(bones)}
    cohort = Correspondence(
        stored["X"][which], visits, time_unit="percent", length_unit="mm", name="skulls",
        regions=regions,
    )  # fmt: skip
    cohort = prism.align(cohort)
    test = np.arange(len(which)) % 5 == 2
    return cohort[~test], cohort[test]


class Cranium:
    """People around the published mean courses: tempo, smooth traits of their own, noise."""

    def __init__(self, data: Path) -> None:
        """Read the courses."""
        self.stored = np.load(data / "cranial_growth" / "cranial_growth.npz", allow_pickle=False)
        self.ages = self.stored["ages_years"]

    def course(self, kind: str, t: np.ndarray) -> np.ndarray:
        """Mean shapes at ages t, (N, M, 3)."""
        table = self.stored[kind]
        t = np.clip(t, self.ages[0], self.ages[-1])
        k = np.clip(np.searchsorted(self.ages, t) - 1, 0, len(self.ages) - 2)
        w = ((t - self.ages[k]) / (self.ages[k + 1] - self.ages[k]))[:, None, None]
        return (1 - w) * table[k] + w * table[k + 1]

    def people(
        self, kind: str, count: int, most: int, span: tuple[float, float], seed: int
    ) -> tuple[Correspondence, np.ndarray]:
        """People of one kind and their shapes without noise."""
        rng = np.random.default_rng(seed)
        owner = np.repeat(np.arange(count), rng.integers(1, most + 1, count))
        t = rng.uniform(*span, len(owner))
        tau = t + rng.normal(size=count)[owner] * (0.03 + 0.08 * t)
        clean = self.course(kind, tau)
        places = self.stored["normal"][len(self.ages) // 2]
        centres = places[np.random.default_rng(0).choice(len(places), 12, replace=False)]
        near = np.exp(-((places[:, None] - centres) ** 2).sum(-1) / (2 * 35.0**2))
        own = rng.normal(size=(count, 12, 3))  # mm at each centre, lasting
        clean = clean + np.einsum("mk,vkc->vmc", near, own[owner])
        middle = clean.mean(axis=1, keepdims=True)
        clean = middle + (1 + 0.02 * rng.normal(size=count))[owner, None, None] * (clean - middle)
        visits = Visits(
            np.array([f"{kind}-{seed}-{i}" for i in owner]),
            np.array([f"v{j}" for j in range(len(owner))]),
            t,
        )
        noisy = clean + 0.3 * rng.normal(size=clean.shape)
        return Correspondence(
            noisy, visits, cells=self.stored["faces"], time_unit="years", length_unit="mm",
            name="cranium",
        ), clean  # fmt: skip


def dated(model: prism.PRISM, plain: PCARidge, test: Correspondence) -> Row:
    """Error of the calendar age read off shapes, beside PCA, and the coverage of its interval."""
    t = test.visits.t
    blind = replace(test, visits=replace(test.visits, t=np.full(len(t), np.nan)))
    age = prism.intrinsic_time(model, blind).age
    return {
        "age": float(np.abs(age.median - t).mean()),
        "age pca": float(np.abs(plain.age(test) - t).mean()),
        "age coverage": float(((age.lower <= t) & (t <= age.upper)).mean()),
    }


def run_skulls(data: Path, out: Path, device: str) -> Row:
    """Fit the marsupials; how well are others dated, and is anyone strange?"""
    train, test = skulls(data)
    model = prism.PRISM.fit(train, device=device)
    keep(out, model, train, test)
    found = prism.anomaly(model, test)
    gaps = float(np.isnan(train.points[..., 0]).mean())
    return {
        "specimens": len(train), "missing": gaps, **dated(model, PCARidge.fit(train), test),
        "flagged": float((found.p_value < 0.1).mean()),
        "strangest": str(test.visits.subject[found.score.argmax()]),
        "where": found.where[int(found.score.argmax())],
    }  # fmt: skip


def run_cranium(data: Path, out: Path, device: str) -> Row:
    """Fit normal crania; date, forecast and judge others, normal and not."""
    world = Cranium(data)
    train, _ = world.people("normal", 150, 3, (0.0, 10.0), 1)
    test, clean = world.people("normal", 80, 3, (0.1, 6.0), 2)
    model = prism.PRISM.fit(train, device=device)
    keep(out, model, train, test)
    ages = np.linspace(*model.ages, 40)
    mean = model.mean_shapes(np.repeat(ages[:, None], len(model.template), axis=1))
    row: Row = {"mean shape mm": rms(mean - world.course("normal", ages))}
    plain = PCARidge.fit(train)
    row["mean shape pca"] = rms(plain.mean_shapes(ages) - world.course("normal", ages))
    row |= dated(model, plain, test)
    for rule in ("pooled", "paper", "mean"):
        ahead = prism.predict_shape(model, test, rule=rule)  # type: ignore[arg-type]
        row[f"forecast {rule}"] = rms(ahead.points - clean[ahead.row1])
        inside = (ahead.lower <= test.points[ahead.row1]) & (test.points[ahead.row1] <= ahead.upper)
        row[f"coverage {rule}"] = float(inside.mean())
    normal, ppca = prism.anomaly(model, test), PPCAScore.fit(train)
    row["flagged"] = float((normal.p_value < 0.1).mean())
    for i, kind in enumerate(SYNOSTOSES):
        sick, _ = world.people(kind, 40, 1, (0.1, 2.0), 10 + i)
        keep(out / kind, None, sick, None)
        found = prism.anomaly(model, sick)
        abnormal = np.repeat([False, True], [len(test), len(sick)])
        score = np.concatenate([normal.score, found.score])
        row[f"auc {kind}"] = metrics.auc(score, abnormal)
        other = np.concatenate([ppca.score(test), ppca.score(sick)])
        row[f"auc ppca {kind}"] = metrics.auc(other, abnormal)
        row[f"flagged {kind}"] = float((found.p_value < 0.1).mean())
    return row


def rms(error: np.ndarray) -> float:
    """Root mean square."""
    return float(np.sqrt(np.mean(error**2)))


def keep(
    out: Path, model: prism.PRISM | None, train: Correspondence, test: Correspondence | None
) -> None:
    """Write model and cohorts as folders."""
    if model is not None:
        model.save(out / "model")
    for name, cohort in (("train", train), ("test", test)):
        if cohort is not None:
            Cohort.from_correspondence(cohort).write(out / name)


def main() -> None:
    """Run one of the two, or both."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("which", nargs="?", choices=("skulls", "cranium"))
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="auto")
    given = parser.parse_args()
    for name, run in (("skulls", run_skulls), ("cranium", run_cranium)):
        if given.which in (None, name):
            print(json.dumps({"data": name} | run(given.data, given.out / name, given.device)))


if __name__ == "__main__":
    main()
