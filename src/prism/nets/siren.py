"""Coordinate networks with sine activations that know space and time apart."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn


class Siren(nn.Module):
    """A sine network (p, t) -> R^out with separate frequencies for space and time.

    Layers: one first layer, `hidden` hidden layers, one linear output; the input is concatenated
    again at the middle hidden layer. The affine map of the input is split into its spatial and its
    temporal part, so points p (1, M, n) and times t (S, 1) broadcast and the cost of reading the
    input is M + S rather than M S.

    Args:
        n: Space dimension of p.
        out: Outputs.
        width: Units of a hidden layer.
        hidden: Hidden layers besides the first and the last.
        omega_space: Frequency of the first layer in p.
        omega_time: Frequency of the first layer in t; None for a network of space alone.
        omega_hidden: Frequency of the hidden layers.
    """

    frequency: Tensor
    hidden: Sequence[nn.Linear]

    def __init__(
        self,
        n: int,
        out: int,
        width: int,
        hidden: int,
        omega_space: float,
        omega_time: float | None,
        omega_hidden: float = 1.0,
    ) -> None:
        """Draw the weights from the global torch generator."""
        super().__init__()
        self.n, self.omega_hidden = n, omega_hidden
        inputs = n + (omega_time is not None)
        self.skip_at = hidden // 2
        scale = [omega_space] * n + ([omega_time] if omega_time is not None else [])
        self.register_buffer("frequency", torch.tensor(scale), persistent=False)
        self.first = nn.Linear(inputs, width)
        self.hidden = nn.ModuleList(  # type: ignore[assignment]
            nn.Linear(width + (inputs if i == self.skip_at else 0), width) for i in range(hidden)
        )
        self.last = nn.Linear(width, out)
        self._initialise()

    @torch.no_grad()
    def _initialise(self) -> None:
        self.first.weight.uniform_(-1 / self.n, 1 / self.n)
        self.first.bias.uniform_(-math.pi, math.pi)
        for layer in self.hidden:
            bound = math.sqrt(6 / layer.in_features) / self.omega_hidden
            layer.weight.uniform_(-bound, bound)
            layer.bias.zero_()
        self.silence()

    @torch.no_grad()
    def silence(self, output: Tensor | None = None) -> None:
        """Start near a constant output (zero by default), with a small slope to learn from."""
        bound = 1e-2 * math.sqrt(6 / self.last.in_features)
        self.last.weight.uniform_(-bound, bound)
        self.last.bias.zero_()
        if output is not None:
            self.last.bias.copy_(output)

    def _read(self, weight: Tensor, p: Tensor, t: Tensor | None) -> Tensor:
        """Affine map of the scaled input by `weight` (width, n or n + 1)."""
        scaled = weight * self.frequency
        x = p @ scaled[:, : self.n].mT
        return x if t is None else x + t[..., None] * scaled[:, self.n]

    def forward(self, p: Tensor, t: Tensor | None = None) -> Tensor:
        """Evaluate at points p (..., n) and times t (...), whose batch axes broadcast."""
        x = torch.sin(self._read(self.first.weight, p, t) + self.first.bias)
        for i, layer in enumerate(self.hidden):
            width = x.shape[-1]
            y = nn.functional.linear(x, layer.weight[:, :width], layer.bias)
            if i == self.skip_at:
                y = y + self._read(layer.weight[:, width:], p, t)
            x = torch.sin(y if self.omega_hidden == 1 else self.omega_hidden * y)
        return self.last(x)

    def forward_and_rate(self, p: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
        """Value and time derivative in one pass, the tangent carried along by hand."""
        a = self._read(self.first.weight, p, t) + self.first.bias
        x, dx = torch.sin(a), torch.cos(a) * self._slope(self.first.weight)
        for i, layer in enumerate(self.hidden):
            width = x.shape[-1]
            weight = layer.weight[:, :width]
            a, da = nn.functional.linear(x, weight, layer.bias), dx @ weight.mT
            if i == self.skip_at:
                tail = layer.weight[:, width:]
                a, da = a + self._read(tail, p, t), da + self._slope(tail)
            a, da = self.omega_hidden * a, self.omega_hidden * da
            x, dx = torch.sin(a), torch.cos(a) * da
        return self.last(x), dx @ self.last.weight.mT

    def _slope(self, weight: Tensor) -> Tensor:
        """Time derivative of `_read`: the scaled last column of the weight."""
        return weight[:, self.n] * self.frequency[self.n]
