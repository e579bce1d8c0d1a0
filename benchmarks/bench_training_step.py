"""One training step: every network at every point of every shape, against the real step."""

from __future__ import annotations

import numpy as np
import torch
from common import DEVICE, report, seconds
from torch import Tensor

import prism
from prism.gaussian import diagonal_indices, unpack
from prism.nets import Siren
from prism.population import PRESETS, Units
from prism.population.field import CovariateNetwork, FieldNetworks
from prism.population.fit import PopulationTask
from prism.training import Loop, LoopConfig, Runtime


def _naive_network(network: Siren, p: Tensor, t: Tensor | None) -> Tensor:
    """The same network on concatenated inputs, one row a shape and point."""
    x = (p if t is None else torch.cat([p, t[:, None]], -1)) * network.frequency
    y = torch.sin(network.first(x))
    for i, layer in enumerate(network.hidden):
        y = torch.sin(layer(torch.cat([y, x], -1) if i == network.skip_at else y))
    return network.last(y)


def _naive_branch(branch: CovariateNetwork, p: Tensor, t: Tensor) -> Tensor:
    zero = torch.zeros_like(t)
    driven = _naive_network(branch.f, p, t) - _naive_network(branch.f, p, zero)
    return driven + _naive_network(branch.h, p, None)


def naive_loss(networks: FieldNetworks, p: Tensor, s: Tensor, d: Tensor) -> Tensor:
    """L1 + NLL with h and f(., 0) evaluated everywhere and a batched triangular solver."""
    b, m, n = d.shape
    rows_p, rows_t = p.repeat(b, 1), s.expand(b, m).reshape(-1)
    mu = _naive_branch(networks.mean, rows_p, rows_t)
    raw = _naive_branch(networks.cholesky, rows_p, rows_t)
    L = unpack(raw, n)
    diagonal = torch.nn.functional.softplus(raw[:, diagonal_indices(n)])
    own = torch.tril(L, -1) + torch.diag_embed(diagonal)
    L = torch.linalg.cholesky(own @ own.mT + networks.floor**2 * torch.eye(n, device=d.device))
    r = d.reshape(-1, n) - mu
    e = torch.linalg.solve_triangular(L, r.detach()[..., None], upper=False)[..., 0]
    nll = 0.5 * (e**2).sum(-1) + L.diagonal(dim1=1, dim2=2).log().sum(-1)
    return r.abs().sum(-1).mean() + nll.mean()


def measure(preset: str, points: int, shapes: int) -> dict[str, object]:
    """Time one optimiser step both ways, and check that both descend the same loss.

    The naive step has the paper's losses alone; ours is timed with its priors on curvature.
    """
    from dataclasses import replace

    config = replace(PRESETS[preset].settled(100, 500), shapes=shapes, points=points, warm_epochs=0)
    plain = replace(
        config, smoothness=0.0, smoothness_spread=0.0, mean_corner=0.0, weight_plain=0.0
    )
    study = prism.simulate.starman("global", subjects=100, resolution=points, seed=0)
    cohort = study.correspondence
    units = Units.of(cohort.template, cohort.displacements, cohort.visits.t)
    torch.manual_seed(0)
    networks = FieldNetworks(2, config, 0.02)
    task = PopulationTask(networks, units, plain, cohort, cohort[:8], 0, DEVICE)
    batch = task.batch(0)
    p, s, d = batch[0], batch[1][:, None], batch[2]
    with torch.no_grad():
        ours, naive = task.loss(0, *batch), naive_loss(networks, p, s, d)
    np.testing.assert_allclose(float(ours), float(naive), rtol=1e-3)
    optimiser = torch.optim.Adam(networks.parameters(), lr=1e-6)

    def naive_step() -> None:
        optimiser.zero_grad(set_to_none=True)
        naive_loss(networks, p, s, d).backward()
        optimiser.step()

    repeats, warm = (20, 8) if DEVICE.type == "cuda" else (5, 1)
    slow = seconds(naive_step, repeats, warm)
    task = PopulationTask(networks, units, config, cohort, cohort[:8], 0, DEVICE)
    loop = Loop(task, LoopConfig(10_000, 1e-6), "step", Runtime(DEVICE.type))
    fast = seconds(loop.descend, repeats, warm)
    return {
        "preset": preset,
        "points": points,
        "shapes": shapes,
        "naive ms": 1e3 * slow,
        "prism ms": 1e3 * fast,
        "ratio": slow / fast,
    }


if __name__ == "__main__":
    sizes = [("default", 100, 64), ("default", 100, 256), ("default", 256, 256)]
    sizes += [("paper", 1000, 64)] if DEVICE.type == "cuda" else []
    report("training_step", [measure(*size) for size in sizes])
