"""Accuracy of the default preset on Starman cohorts.

Run: python experiments/starman.py [OUT.json]

Trains on 1000 subjects, tests on 200 others, three seeds of each kind, and prints one row a fit.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import prism


def measure(kind: str, seed: int, noise: float = 0.0) -> dict[str, Any]:
    """Fit one cohort and evaluate it on its unseen subjects."""
    study = prism.simulate.starman(kind, subjects=1000, test_subjects=200, seed=seed, noise=noise)
    start = time.perf_counter()
    model = prism.PRISM.fit(study.of_split("train").correspondence, seed=seed)
    seconds = time.perf_counter() - start
    test = study.of_split("test")
    return prism.evaluate(model, test.correspondence, test.truth, emd=False) | {"fit_s": seconds}


def row(kind: str, seed: int, found: dict[str, Any]) -> str:
    """One line of the table in docs/results.md."""
    time_of = found["time"]
    overall = f"{time_of['tau']['mae']:.4f}" if "tau" in time_of else "-"
    cells = [
        f"{kind} {seed}",
        " / ".join(f"{100 * found['sigma_tau'][place]:.1f}" for place in ("arm", "leg")),
        f"{found['trajectory']['ratio_to_oracle']:.4f}",
        overall,
        " / ".join(f"{time_of[f'at_{p}']['likelihood']['mae']:.4f}" for p in ("arm", "leg")),
        " / ".join(f"{found['prediction'][rule]['cd_x100']:.4f}" for rule in ("paper", "mean")),
        f"{100 * found['coverage']['displacement']['0.9']:.1f}",
        f"{found['fit_s']:.0f}",
    ]
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    results = {}
    for kind in ("global", "local"):
        for seed in range(3):
            results[f"{kind}-{seed}"] = found = measure(kind, seed)
            print(row(kind, seed, found), flush=True)
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(json.dumps(results, indent=1))
