"""Bodies of the ANNY cohort: intrinsic time, forecast and mean course on unseen subjects.

    python -m experiments.bodies [FOLDER] [--networks modulated] [--seed 0] [--device auto]

The first row is of the true correspondence. FOLDER is what `register_anny.py train --out` wrote:
its registered shapes make the further rows. Needs the extra [anny].

CD is x 100, squared, two-sided, in square metres: between 10,000 points of a found surface and
10,000 others of the true body's. "Floor" is that of two samples of the true bodies, "oracle" that
of the true mean body at the age of each visit.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

import prism
from experiments.register_anny import kept
from prism import metrics
from prism.cohort import Correspondence
from prism.simulate import Study, anny
from prism.typing import Cells, Shapes

RULES = ("pooled", "paper", "mean")
Row = dict[str, Any]


def chamfer(found: Shapes, cells: Cells, true: Shapes, true_cells: Cells) -> float:
    """Mean CD x 100 of found and true surfaces."""
    pairs = [
        (metrics.sample_shape(a, cells), metrics.sample_shape(b, true_cells, seed=1))
        for a, b in zip(found, true, strict=True)
    ]
    return 100 * float(np.mean([metrics.chamfer(x, y) for x, y in pairs]))


def registered(path: Path, train: Correspondence, test: Correspondence) -> list[Correspondence]:
    """Both splits with the points that a registration found."""
    found, unseen = kept(path)
    return [
        found.correspondence(maps, part.visits, part.time_unit, part.name)
        for maps, part in zip((found.maps, unseen), (train, test), strict=True)
    ]


def measured(train: Correspondence, test: Correspondence, study: Study, wishes: Any) -> Row:
    """Fit, then date, forecast and average the unseen subjects."""
    start = time.perf_counter()
    model = prism.PRISM.fit(train, seed=wishes.seed, device=wishes.device)
    row: Row = {"fit s": time.perf_counter() - start}
    true, cells = study.truth.clean, study.correspondence.cells
    start = time.perf_counter()
    times = prism.intrinsic_time(model, test)
    row["ms a case"] = 1000 * (time.perf_counter() - start) / len(test)
    tau = study.truth.tau_global
    for name in ("tau", "tau_mle", "tau_mean"):
        found = metrics.time_metrics(getattr(times, name), tau)
        row |= {f"{name} mae": found["mae"], f"{name} r": found["r"], f"{name} R2": found["r2"]}
    row["tau coverage"] = float(np.mean(np.abs(times.tau - tau) < 1.645 * times.tau_se))
    for rule in RULES:
        forecast = prism.predict_shape(model, test, rule=rule)  # type: ignore[arg-type]
        row[f"cd {rule}"] = chamfer(forecast.points, model.cells, true[forecast.row1], cells)
        if rule == "pooled":
            row["cd floor"] = chamfer(true[forecast.row1], cells, true[forecast.row1], cells)
    t = test.visits.t
    mean = model.mean_shapes(np.repeat(t[:, None], len(model.template), axis=1))
    row["cd mean course"] = chamfer(mean, model.cells, true, cells)
    row["cd oracle"] = chamfer(study.law.mean(t), cells, true, cells)
    return row


def main() -> None:
    """Print a JSON line a correspondence."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--networks", default="modulated")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--skip-true", action="store_true", help="registered rows alone")
    wishes = parser.parse_args()
    study = anny(seed=0)
    train, test = (study.of_split(name) for name in ("train", "test"))
    splits = (train.correspondence, test.correspondence)
    cohorts = {} if wishes.skip_true else {"true": list(splits)}
    if wishes.folder:
        for network in wishes.networks.split(","):
            cohorts[network] = registered(wishes.folder / f"{network}.pt", *splits)
    for name, (known, unseen) in cohorts.items():
        print(json.dumps({"correspondence": name, **measured(known, unseen, test, wishes)}))


if __name__ == "__main__":
    main()
