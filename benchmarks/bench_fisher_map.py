"""A Fisher map: reverse mode and dense inverses against one forward-mode pass."""

from __future__ import annotations

import torch
from common import DEVICE, report, seconds
from torch import Tensor

from prism.fisher import fisher_information
from prism.population import PRESETS, NeuralPopulation, Units
from prism.population.field import FieldNetworks


def naive_information(population: NeuralPopulation, p: Tensor, t: Tensor) -> Tensor:
    """mu_t by one reverse pass a coordinate, Sigma^-1 by torch.linalg.inv."""
    t = t.clone().requires_grad_(True)
    field = population(p, t)
    columns = [
        torch.autograd.grad(field.mu[..., i].sum(), t, retain_graph=True)[0] for i in range(field.n)
    ]
    mu_t = torch.stack(columns, dim=-1)
    with torch.no_grad():
        return torch.einsum("...i,...ij,...j->...", mu_t, torch.linalg.inv(field.Sigma), mu_t)


def measure(preset: str, n: int, points: int) -> dict[str, object]:
    """Time a map of `points` query points both ways and check that they agree."""
    torch.manual_seed(0)
    networks = FieldNetworks(n, PRESETS[preset].settled(1000, 5000), 0.02).to(DEVICE)
    networks.start_at(torch.zeros(n, device=DEVICE), 0.3)
    units = Units(tuple([0.0] * n), 1.0, 1.0, 0.0, 1.0)
    population = NeuralPopulation(networks, units, PRESETS[preset])
    p = torch.rand(points, n, device=DEVICE) * 2 - 1
    t = torch.rand(points, device=DEVICE)

    @torch.no_grad()
    def ours() -> Tensor:
        return torch.as_tensor(fisher_information(population, p, t))

    torch.testing.assert_close(ours(), naive_information(population, p, t), rtol=2e-2, atol=1e-6)
    slow = seconds(lambda: naive_information(population, p, t), 5)
    fast = seconds(ours, 5)
    return {
        "preset": preset,
        "n": n,
        "points": points,
        "naive Mpts/s": points / slow / 1e6,
        "prism Mpts/s": points / fast / 1e6,
        "ratio": slow / fast,
    }


if __name__ == "__main__":
    count = 262_144 if DEVICE.type == "cuda" else 20_000
    report("fisher_map", [measure(preset, n, count) for preset in ("default",) for n in (2, 3)])
