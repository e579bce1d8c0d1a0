"""Networks whose weights codes decide: identity at the start, tangents carried by hand."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from prism.nets import HyperSiren, ModulatedSiren
from prism.nets.sines import sine_cosine
from tests.unit.nets.test_siren import shaken


def networks(n: int) -> list[nn.Module]:
    torch.manual_seed(0)
    sizes = {"n": n, "code": 5, "width": 8, "hidden": 2, "omega": 3.0}
    return [ModulatedSiren(**sizes).double(), HyperSiren(**sizes, trunk=8).double()]


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("kind", [0, 1])
def test_every_map_starts_as_exactly_the_identity(n: int, kind: int) -> None:
    network, y = networks(n)[kind], torch.rand(3, 7, n).double()
    maps = network(torch.randn(3, 5).double())
    assert torch.equal(maps(y), y)
    value, jacobian = maps.with_jacobian(y)
    assert torch.equal(value, y)
    assert torch.equal(jacobian, torch.eye(n).double().expand(3, 7, n, n))


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("kind", [0, 1])
def test_tangents_agree_with_reverse_mode(n: int, kind: int) -> None:
    network, y = shaken(networks(n)[kind]), torch.rand(3, 4, n).double()
    maps = network(torch.randn(3, 5).double())
    value, jacobian = maps.with_jacobian(y)
    torch.testing.assert_close(value, maps(y))
    assert not torch.allclose(value, y, atol=1e-2)
    whole = torch.autograd.functional.jacobian(maps, y)  # (3, 4, n, 3, 4, n)
    for shape in range(3):
        for point in range(4):
            expected = whole[shape, point, :, shape, point]
            torch.testing.assert_close(jacobian[shape, point], expected)


def test_each_shape_has_a_map_of_its_own() -> None:
    for network in networks(2):
        maps = shaken(network)(torch.randn(2, 5).double())
        y = torch.rand(1, 6, 2).double().expand(2, -1, -1)
        assert not torch.allclose(*maps(y), atol=1e-3)


def test_sine_and_cosine_are_each_others_slopes_twice_over() -> None:
    a = torch.randn(5, dtype=torch.float64, requires_grad=True)
    for part in (0, 1):
        assert torch.autograd.gradcheck(lambda x, k=part: sine_cosine(x)[k], (a,))
        assert torch.autograd.gradgradcheck(lambda x, k=part: sine_cosine(x)[k], (a,))
    assert torch.autograd.gradgradcheck(lambda x: sum(sine_cosine(x)), (a,))


def test_the_papers_hypernetwork_has_its_size() -> None:
    network = HyperSiren(3, 1024, 128, 3, 3.0)
    assert sum(p.numel() for p in network.parameters()) / 1e6 == pytest.approx(16.2, abs=0.1)


def test_of_the_modulated_network_the_code_zero_stays_the_identity() -> None:
    network, y = shaken(networks(2)[0]), torch.rand(3, 7, 2).double()
    assert torch.equal(network(torch.zeros(3, 5).double())(y), y)
