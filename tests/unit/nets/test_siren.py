from __future__ import annotations

import pytest
import torch

from prism.gaussian import unpack
from prism.nets import Siren
from prism.population import PRESETS
from prism.population.field import CovariateNetwork, FieldNetworks
from prism.population.fit import count_parameters
from tests.problems.tiny import CONFIG


def shaken(network: torch.nn.Module, seed: int = 0) -> torch.nn.Module:
    """The network with random weights everywhere, as after training."""
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in network.parameters():
            weight += 0.3 * torch.randn(weight.shape, generator=draw)
    return network


def test_the_paper_preset_has_the_papers_size() -> None:
    assert count_parameters(FieldNetworks(3, PRESETS["paper"], 1e-3)) == 3_567_378


@pytest.mark.parametrize("n", [2, 3])
def test_at_time_zero_only_the_covariate_free_network_speaks(n: int) -> None:
    networks = shaken(FieldNetworks(n, CONFIG, 0.01))
    p, zero = torch.rand(9, n), torch.zeros(9)
    assert torch.equal(networks.mean(p, zero), networks.mean.h(p))
    assert torch.equal(networks.cholesky(p, zero), networks.cholesky.h(p))
    assert not torch.allclose(networks.mean(p, zero + 0.5), networks.mean.h(p), atol=1e-3)


@pytest.mark.parametrize("n", [2, 3])
def test_factor_is_softplus_on_the_diagonal_and_noise_in_every_direction(n: int) -> None:
    networks = shaken(FieldNetworks(n, CONFIG, 0.25))
    p, s = torch.rand(50, n), torch.rand(50)
    raw, L = networks.cholesky(p, s), unpack(networks.factor(p, s), n)
    on = networks.diagonal
    own = unpack(torch.where(on, torch.nn.functional.softplus(raw), raw), n)
    torch.testing.assert_close(L @ L.mT, own @ own.mT + 0.25**2 * torch.eye(n))
    assert (L.diagonal(dim1=1, dim2=2) >= 0.25).all()


def test_split_reading_of_the_input_equals_concatenation() -> None:
    network = shaken(Siren(2, 3, width=8, hidden=3, omega_space=5.0, omega_time=2.0))
    p, t = torch.rand(6, 2), torch.rand(6)
    inputs = torch.cat([p, t[:, None]], dim=-1) * torch.tensor([5.0, 5.0, 2.0])
    x = torch.sin(network.first(inputs))
    for i, layer in enumerate(network.hidden):
        x = torch.sin(layer(torch.cat([x, inputs], dim=-1) if i == 1 else x))
    torch.testing.assert_close(network(p, t), network.last(x))


def test_points_and_times_broadcast() -> None:
    network = shaken(CovariateNetwork(2, 2, CONFIG))
    p, s = torch.rand(4, 2), torch.rand(3, 1)
    grid = network(p, s)
    assert grid.shape == (3, 4, 2)
    torch.testing.assert_close(grid[1, 2], network(p[2], s[1, 0]))


def test_a_silenced_network_starts_near_the_given_output() -> None:
    network = Siren(2, 2, width=32, hidden=2, omega_space=5.0, omega_time=None)
    target = torch.tensor([3.0, -1.0])
    network.silence(target)
    assert (network(torch.rand(100, 2)) - target).abs().max() < 0.1
