"""From raw contours to intrinsic time: registered against true correspondence, on Starman.

Run: python experiments/register_starman.py [OUT.json] [--steps N]

Writes 300 contours of training subjects and those of 20 unseen subjects as files, registers the
first and lets the others follow (`onto`), trains on both correspondences and dates the unseen
subjects with each. Prints times and a table.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import prism
from prism.cohort import Cohort, Correspondence, SDFSamples
from prism.preprocess import sample_cohort
from prism.registration import Registration, preset, quality
from prism.simulate import Study
from prism.training import Runtime, Update

SHAPES, TEST_SUBJECTS = 300, 20


def raw_folder(study: Study, folder: Path) -> Cohort:
    """Write every contour as a file of its own and the table that names them."""
    study.write(folder, raw=True)
    return Cohort.read(folder)


def told(update: Update) -> None:
    """Show progress."""
    print(f"  {update.phase} {update.step}/{update.steps} loss {update.loss:.2f}", flush=True)


def register(
    train: list[SDFSamples], test: list[SDFSamples], steps: int | None
) -> tuple[Registration, Any, dict[str, float]]:
    """Learn from the first, let the second follow; seconds of both."""
    config = preset("default", 2)
    config = config if steps is None else replace(config, steps=steps)
    runtime = Runtime("cpu", progress=told)
    start = time.perf_counter()
    found = Registration.fit(train, config, runtime=runtime)
    learned = time.perf_counter()
    follow = found.onto(test, runtime=runtime)
    seconds = {"fit_s": learned - start, "onto_s": time.perf_counter() - learned}
    return found, follow, seconds


def slide(found: Registration, maps: Any, study: Study, own: np.ndarray) -> np.ndarray:
    """(N, M) error of the true vertices of training shape 0, carried on to shapes with `maps`."""
    p = found.maps[:1].to_template(own[:1])[0]
    return np.linalg.norm(maps.from_template(p) - study.truth.clean, axis=-1)


def dated(train: Correspondence, test: Study, points: np.ndarray) -> dict[str, float]:
    """Mean absolute error of the intrinsic time of unseen subjects."""
    model = prism.PRISM.fit(train, seed=0, device="cpu")
    shapes = replace(train, points=points, visits=test.correspondence.visits)
    found = prism.intrinsic_time(model, shapes)
    truth = test.truth.tau_global
    return {
        "tau": float(np.abs(found.tau - truth).mean()),
        "tau_mle": float(np.abs(found.tau_mle - truth).mean()),
        "tau_mean": float(np.abs(found.tau_mean - truth).mean()),
    }


def main() -> None:
    """Run the whole way and print the table."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("out", nargs="?", type=Path)
    arguments.add_argument("--steps", type=int)
    arguments.add_argument("--seed", type=int, default=0)
    wishes = arguments.parse_args()
    study = prism.simulate.starman(
        "global", subjects=90, test_subjects=TEST_SUBJECTS, seed=wishes.seed
    )
    train, test = study.of_split("train")[:SHAPES], study.of_split("test")
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        cohorts = [
            raw_folder(part, Path(folder) / name) for part, name in ((train, "a"), (test, "b"))
        ]
        raw = [sample_cohort(cohort) for cohort in cohorts]
        sampled = time.perf_counter() - start
    found, follow, seconds = register(*raw, wishes.steps)
    result: dict[str, Any] = {"shapes": len(train), "test_shapes": len(test), "sample_s": sampled}
    result |= seconds
    for name, maps, samples, part in (
        ("train", found.maps, raw[0], train),
        ("test", follow, raw[1], test),
    ):
        result[name] = quality(found, maps, samples).summary() | {"outliers": None}
        error = slide(found, maps, part, train.truth.clean) / 3.5
        result[name]["error_median"] = float(np.median(error))
        result[name]["error_p95"] = float(np.quantile(error, 0.95))
    registered = found.correspondence(found.maps, train.correspondence.visits, "units", "starman")
    result["true"] = dated(train.correspondence, test, test.correspondence.points)
    result["registered"] = dated(registered, test, found.carry(follow))
    result["ratio"] = {k: result["registered"][k] / result["true"][k] for k in result["true"]}
    print(json.dumps(result, indent=1))
    if wishes.out:
        wishes.out.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
