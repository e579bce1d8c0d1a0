"""Intrinsic time of one anatomy: test-time optimisation against encoder and likelihood."""

from __future__ import annotations

import sys

import numpy as np
import torch
from common import report, seconds

import prism
from prism.population import PopulationConfig

TTO_STEPS = 800


def test_time_optimisation(model: prism.PRISM, d: np.ndarray) -> np.ndarray:
    """The paper's slow road: 800 Adam steps on one tau a point through the networks."""
    p, shift = torch.as_tensor(model.template), torch.as_tensor(d)
    middle = sum(model.ages) / 2
    tau = torch.full(shift.shape[:-1], middle, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.Adam([tau], lr=0.01 * (model.ages[1] - model.ages[0]))
    for _ in range(TTO_STEPS):
        optimiser.zero_grad()
        model(p, tau).nll(shift).sum().backward()
        optimiser.step()
    return tau.detach().numpy()


def measure(model: prism.PRISM, cohort: prism.Correspondence) -> list[dict[str, object]]:
    """Milliseconds a case: one at a time, and in a batch."""
    d = model.displacements(cohort)
    one = d[:1]
    roads = {
        "test-time optimisation (800 steps)": (lambda x: test_time_optimisation(model, x), 1),
        "encoder": (lambda x: model.encoder(model.template, x), 50),
        "likelihood, every point": (lambda x: prism.mle_time(model.table, x), 50),
        "likelihood, one tau": (lambda x: prism.joint_mle_time(model.table, x), 50),
    }
    rows: list[dict[str, object]] = []
    for name, (road, repeats) in roads.items():
        alone = 1e3 * seconds(lambda road=road: road(one), repeats, warm=min(2, repeats - 1))
        batch = 1e3 * seconds(lambda road=road: road(d), 3) / len(d) if repeats > 1 else np.nan
        rows.append({"road": name, "ms a case": alone, "ms a case in batch": batch})
    encoder = next(float(row["ms a case"]) for row in rows if row["road"] == "encoder")  # type: ignore[arg-type]
    for row in rows:
        row["times the encoder"] = float(row["ms a case"]) / encoder  # type: ignore[arg-type]
    return rows


if __name__ == "__main__":
    study = prism.simulate.starman("global", subjects=60, seed=0)
    if len(sys.argv) > 1:
        trained = prism.PRISM.load(sys.argv[1])
    else:  # speed does not depend on how well it is trained
        config = PopulationConfig(steps=100)
        trained = prism.PRISM.fit(study.correspondence, config=config, device="cpu")
    report("time_per_case", measure(trained, study.correspondence[:200]))
