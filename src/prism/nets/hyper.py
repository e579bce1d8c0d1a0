"""A network that writes the weights of another: the paper's hypernetwork."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import cast

import torch
from torch import Tensor, nn

from prism.nets.sines import Sines

QUIET = 0.01  # how much of its usual size the code's influence has at the start


class HyperSiren(nn.Module):
    """Codes (B, K) -> displacement networks, every weight written by a small network of its own.

    One network a tensor: code -> trunk -> trunk -> numel, with ReLU. Its last bias holds what a
    sine network would start with, its last weight is small. Of the output layer both are zero, so
    every map starts as exactly the identity.

    Args:
        n: Space dimension.
        code: Length K of a code.
        width: Units of a layer of the displacement network.
        hidden: Its hidden layers besides the first and the last.
        omega: Frequency of its first layer.
        trunk: Units of the hypernetwork's own layers.
    """

    writers: Sequence[nn.Sequential]

    def __init__(
        self, n: int, code: int, width: int, hidden: int, omega: float, trunk: int = 256
    ) -> None:
        """Draw the weights from the global torch generator."""
        super().__init__()
        sizes = [n] + [width] * (hidden + 1) + [n]
        self.shapes = [(out, size) for size, out in pairwise(sizes)]
        tensors = [numel for out, size in self.shapes for numel in (out * size, out)]
        self.writers = nn.ModuleList(_writer(code, trunk, numel) for numel in tensors)  # type: ignore[assignment]
        self._initialise(omega)

    @torch.no_grad()
    def _initialise(self, omega: float) -> None:
        for i, (_, size) in enumerate(self.shapes):
            weight, bias = (cast(nn.Linear, self.writers[2 * i + k][-1]) for k in (0, 1))
            for last in (weight, bias):
                nn.init.kaiming_normal_(last.weight)
                last.weight *= 0 if i == len(self.shapes) - 1 else QUIET
                last.bias.zero_()
            if i == 0:
                weight.bias.uniform_(-omega / size, omega / size)
                bias.bias.uniform_(-math.pi, math.pi)
            elif i < len(self.shapes) - 1:
                bound = math.sqrt(6 / size)
                weight.bias.uniform_(-bound, bound)

    def forward(self, code: Tensor) -> Sines:
        """Weights of the displacement network of each code (B, K)."""
        written = [writer(code) for writer in self.writers]
        pairs = zip(self.shapes, written[::2], written[1::2], strict=True)
        return Sines(tuple((w.view(-1, *shape), b[:, None]) for shape, w, b in pairs))


def _writer(code: int, trunk: int, numel: int) -> nn.Sequential:
    """Code -> trunk -> trunk -> one tensor."""
    return nn.Sequential(
        nn.Linear(code, trunk),
        nn.ReLU(),
        nn.Linear(trunk, trunk),
        nn.ReLU(),
        nn.Linear(trunk, numel),
    )
