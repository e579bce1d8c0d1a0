"""The losses against answers known in advance."""

from __future__ import annotations

import math

import pytest
import torch

from prism.nets import Sines
from prism.registration.losses import (
    TINY,
    eikonal_loss,
    gradicon_loss,
    icon_loss,
    normal_loss,
    sdf_loss,
    stiffness_loss,
)


def shift(offset: torch.Tensor) -> Sines:
    """The map y -> y + offset, as a displacement network."""
    n = len(offset)
    nothing = (torch.zeros(1, n, n), torch.zeros(1, 1, n))
    return Sines((nothing, nothing), (torch.zeros(1, n, n), offset.view(1, 1, n)))


@pytest.mark.parametrize("n", [2, 3])
def test_gradicon_alone_admits_an_offset_and_icon_does_not(n: int) -> None:
    y, a = torch.rand(1, 50, n), torch.full((n,), 0.7)
    b = torch.zeros(n, requires_grad=True)  # should become -a

    def losses() -> tuple[torch.Tensor, torch.Tensor]:
        p, J_fwd = shift(a).with_jacobian(y)
        back, J_bwd = shift(b).with_jacobian(p)
        return gradicon_loss(J_bwd @ J_fwd), icon_loss(y, back)

    alone, anchor = losses()
    assert float(alone) == pytest.approx(TINY)  # perfect, and blind:
    assert not alone.requires_grad  # it does not even depend on the offset
    assert float(anchor.detach()) == pytest.approx(0.7 * math.sqrt(n))
    optimiser = torch.optim.SGD([b], lr=0.05)
    for _ in range(60):
        optimiser.zero_grad()
        sum(losses()).backward()
        optimiser.step()
    assert float((a + b).detach().norm()) < 0.06  # within a step of the optimiser


def test_round_trips_have_slopes_at_the_perfect_start() -> None:
    y = torch.rand(1, 4, 2, requires_grad=True)
    icon_loss(y.detach(), y).backward()
    assert torch.isfinite(y.grad).all()
    J = torch.eye(2).expand(1, 4, 2, 2).clone().requires_grad_()
    gradicon_loss(J).backward()
    assert torch.isfinite(J.grad).all()


def test_a_plane_has_its_distance_normals_and_unit_gradient() -> None:
    s = torch.linspace(-1, 1, 9)
    up = torch.tensor([0.0, 1.0]).expand(9, 2)
    assert float(sdf_loss(s, s, 10.0)) == 0
    assert float(sdf_loss(s + 0.25, s, 10.0)) == pytest.approx(0.25)
    assert float(sdf_loss(s + 5, s + 9, 0.5)) == pytest.approx(0.0)
    assert float(normal_loss(3 * up, up)) == pytest.approx(0.0, abs=1e-6)
    assert float(normal_loss(up.flip(-1), up)) == pytest.approx(1.0)
    assert float(normal_loss(-up, up)) == pytest.approx(2.0)
    assert float(eikonal_loss(3 * up)) == pytest.approx(2.0)


def test_stiffness_is_the_squared_distance_from_rigid() -> None:
    J = torch.tensor([[1.0, 0.5], [0.0, 0.0]]).expand(1, 3, 2, 2)
    assert float(stiffness_loss(J)) == pytest.approx(1.25)
