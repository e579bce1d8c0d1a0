"""A sine network shared by all shapes, whose layers each shape scales and shifts."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from prism.nets.sines import Sines


class ModulatedSiren(nn.Module):
    """Codes (B, K) -> displacement networks: shared layers, scaled and shifted a shape.

    Layer l of shape i computes sin((1 + g_il) (W_l x + b_l) + s_il). g and s, the output layer and
    an affine map are linear in the code, so that the code zero is the identity: what all shapes
    have in common belongs to the template, not to the maps. At the start output and affine map
    are zero, and every code is the identity.

    Args:
        n: Space dimension.
        code: Length K of a code.
        width: Units of a layer.
        hidden: Hidden layers besides the first and the last.
        omega: Frequency of the first layer.
    """

    layers: Sequence[nn.Linear]

    def __init__(self, n: int, code: int, width: int, hidden: int, omega: float) -> None:
        """Draw the weights from the global torch generator."""
        super().__init__()
        self.n, self.width = n, width
        inputs = [n] + [width] * hidden
        self.layers = nn.ModuleList(nn.Linear(size, width) for size in inputs)  # type: ignore[assignment]
        self.modulation = nn.Linear(code, 2 * width * len(inputs), bias=False)
        self.output = nn.Linear(code, n * (width + 1), bias=False)
        self.affine = nn.Linear(code, n * (n + 1), bias=False)
        self._initialise(omega)

    @torch.no_grad()
    def _initialise(self, omega: float) -> None:
        first, *rest = self.layers
        first.weight.uniform_(-omega / self.n, omega / self.n)
        first.bias.uniform_(-math.pi, math.pi)
        for layer in rest:
            bound = math.sqrt(6 / self.width)
            layer.weight.uniform_(-bound, bound)
            layer.bias.zero_()
        self.output.weight.zero_()
        self.affine.weight.zero_()

    def forward(self, code: Tensor) -> Sines:
        """Weights of the displacement network of each code (B, K)."""
        shapes, n = len(code), self.n
        scale, shift = self.modulation(code).view(shapes, 2, len(self.layers), -1).unbind(1)
        layers = [
            ((1 + g)[..., None] * layer.weight, ((1 + g) * layer.bias + s)[:, None])
            for layer, g, s in zip(self.layers, scale.unbind(1), shift.unbind(1), strict=True)
        ]
        weight, bias = self.output(code).split([n * self.width, n], dim=1)
        layers.append((weight.view(shapes, n, -1), bias.view(shapes, 1, n)))
        A, b = self.affine(code).view(shapes, n + 1, n).split([n, 1], dim=1)
        return Sines(tuple(layers), (A, b))
