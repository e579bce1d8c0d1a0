"""Training of a registration: batches of shapes times points, and the sum of the losses."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from prism.registration.bank import Bank, turn, window
from prism.registration.config import RegistrationConfig
from prism.registration.losses import (
    eikonal_loss,
    gradicon_loss,
    icon_loss,
    normal_loss,
    sdf_loss,
    stiffness_loss,
)
from prism.registration.networks import Codes, Networks


class RegistrationTask:
    """Shapes of a bank, their codes, and the networks: to be trained, or held fast."""

    def __init__(
        self,
        networks: Networks,
        codes: Codes,
        bank: Bank,
        config: RegistrationConfig,
        seed: int,
        branches: Sequence[nn.Module],
    ) -> None:
        """Name what is trained: the parameters of `branches`."""
        self.networks, self.codes, self.bank = networks, codes, bank
        self.config, self.seed = config, seed
        self.network = nn.ModuleList(branches)
        self.branches = [list(branch.parameters()) for branch in branches]
        self.shapes = min(config.shapes, len(bank))
        self.warm = int(config.warm_share * config.steps_for(len(bank)))

    def batch(self, step: int) -> tuple[Tensor, ...]:
        """Draw everything random of a step, from the step's number alone.

        Returns:
            Shapes (B,), points y (B, P, n) with the surface points first, signed distances
            (B, P), normals (B, S, n).
        """
        draw = torch.Generator().manual_seed(self.seed * 1_000_003 + step)
        n, config = self.bank.n, self.config
        rows = turn(step, self.shapes, len(self.bank), self.seed)
        on = window(self.bank.surface, rows, config.surface, draw)
        near = window(self.bank.near, rows, config.near, draw)
        off = torch.cat([near, window(self.bank.box, rows, config.box, draw)], dim=1)
        y = torch.cat([on[..., :n], off[..., :n]], dim=1)
        s = torch.cat([torch.zeros_like(on[..., 0]), off[..., n]], dim=1)
        return rows.to(y.device), y, s, on[..., n:]

    def stage(self, step: int) -> int:
        """Stage 1 trains the template on the shapes as they are; stage 2 trains the maps as well.

        Maps that move before there is a template to move to can end anywhere.
        """
        return 1 if step < self.warm else 2

    def loss(self, step: int, *batch: Tensor) -> Tensor:
        """[Eq. L-total] Distances, normals, unit gradient, round trips, and the prior on codes."""
        rows, y, s, normals = batch
        y = y.detach().requires_grad_()
        if self.stage(step) == 1:
            return self._likeness(y, y, s, normals)
        c, (z_fwd, z_bwd) = self.config, self.codes(rows)
        fwd, bwd = self.networks.forward_map(z_fwd), self.networks.backward_map(z_bwd)
        p = fwd(y)
        total = self._likeness(y, p, s, normals) + c.weight_icon * icon_loss(y, bwd(p))
        # Points of the template, as one shape of the batch found them, for all shapes.
        there = p.detach()[:1, :: self._stride(y)].expand(len(y), -1, -1)
        total = total + c.weight_reverse * icon_loss(there, fwd(bwd(there)))
        middle, J_fwd = fwd.with_jacobian(y.detach()[:, :: self._stride(y)])
        _, J_bwd = bwd.with_jacobian(middle)
        # ∇Φ_rt = ∇Φ_bwd(Φ_fwd(y)) ∇Φ_fwd(y)
        total = total + c.weight_gradicon * gradicon_loss(J_bwd @ J_fwd)
        total = total + c.weight_stiffness * stiffness_loss(J_fwd)
        return total + c.weight_code * (z_fwd.square().mean() + z_bwd.square().mean())

    def _likeness(self, y: Tensor, p: Tensor, s: Tensor, normals: Tensor) -> Tensor:
        """Losses of the distance that points y have by way of their template points p."""
        c = self.config
        predicted = self.networks.distance(p)
        (gradient,) = torch.autograd.grad(predicted.sum(), y, create_graph=True)
        total = c.weight_sdf * sdf_loss(predicted, s, c.reach)
        total = total + c.weight_normal * normal_loss(gradient[:, : normals.shape[1]], normals)
        return total + c.weight_eikonal * eikonal_loss(gradient)

    def _stride(self, y: Tensor) -> int:
        """Step through the points that leaves about `jacobians` of them, of every kind."""
        return max(1, y.shape[1] // self.config.jacobians)

    def validate(self, step: int) -> None:
        """No shape is held out: the last state is kept."""
        return
