"""The learned parts of a registration: a template, maps both ways, a pair of codes a shape."""

from __future__ import annotations

import math
from typing import Protocol

import torch
from torch import Tensor, nn

from prism.nets import HyperSiren, ModulatedSiren, Sines, Siren
from prism.registration.config import RegistrationConfig

CODE_START = 0.01


class Deformation(Protocol):
    """What turns codes (B, K) into maps of B shapes; both kinds of network are one."""

    def __call__(self, code: Tensor) -> Sines:
        """The maps of these codes."""
        ...


def deformation(n: int, config: RegistrationConfig) -> ModulatedSiren | HyperSiren:
    """The network the configuration names, at the identity."""
    sizes = (n, config.code, config.width, config.hidden, config.omega)
    return ModulatedSiren(*sizes) if config.network == "modulated" else HyperSiren(*sizes)


def template_network(n: int, config: RegistrationConfig) -> Siren:
    """Signed distance of the template; it starts as sines of full size, not at zero."""
    width = config.template_width
    network = Siren(n, 1, width, config.template_hidden, config.template_omega, omega_time=None)
    with torch.no_grad():
        bound = math.sqrt(6 / width)
        network.last.weight.uniform_(-bound, bound)
    return network


class Networks(nn.Module):
    """Template T, maps to it and maps from it, shared by all shapes."""

    def __init__(self, n: int, config: RegistrationConfig) -> None:
        """Draw the weights from the global torch generator."""
        super().__init__()
        self.n = n
        self.template = template_network(n, config)
        self.forward_map = deformation(n, config)
        self.backward_map = deformation(n, config)

    def distance(self, p: Tensor) -> Tensor:
        """Signed distance of template points p (..., n)."""
        return self.template(p)[..., 0]


class Codes(nn.Module):
    """Two codes a shape, z_fwd and z_bwd, (N, K) each.

    The stored numbers are codes divided by `gain`, so that one learning rate moves codes `gain`
    times as fast as networks.
    """

    def __init__(self, shapes: int, length: int, gain: float) -> None:
        """Draw the codes from the global torch generator."""
        super().__init__()
        self.gain = gain
        start = CODE_START / gain
        self.fwd = nn.Parameter(start * torch.randn(shapes, length))
        self.bwd = nn.Parameter(start * torch.randn(shapes, length))

    def __len__(self) -> int:
        """Count shapes."""
        return len(self.fwd)

    def forward(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Codes of these shapes, (B, K) each."""
        return self.gain * self.fwd[rows], self.gain * self.bwd[rows]


class CentredCodes(Codes):
    """Codes of the shapes a template is learned from: their mean is zero, the template's own."""

    def forward(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Codes of these shapes, (B, K) each, less the mean of all."""
        fwd, bwd = (z - z.mean(0) for z in (self.fwd, self.bwd))
        return self.gain * fwd[rows], self.gain * bwd[rows]
