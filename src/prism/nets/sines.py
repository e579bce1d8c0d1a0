"""Sine networks whose weights differ from shape to shape: what codes are turned into."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


class _SineCosine(torch.autograd.Function):
    """Sine and cosine together: each is the other's slope, so no derivative needs a third."""

    @staticmethod
    def forward(a: Tensor) -> tuple[Tensor, Tensor]:
        return torch.sin(a), torch.cos(a)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: tuple[Tensor, Tensor]) -> None:
        ctx.save_for_backward(*output)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor | None) -> Tensor | None:
        sine, cosine = ctx.saved_tensors
        along, against = slopes
        if against is None:
            return None if along is None else along * cosine
        return -against * sine if along is None else along * cosine - against * sine


def sine_cosine(a: Tensor) -> tuple[Tensor, Tensor]:
    """sin(a) and cos(a), differentiable as often as one likes."""
    return _SineCosine.apply(a)  # type: ignore[return-value]


@dataclass(frozen=True)
class Sines:
    """Weights of one displacement network a shape, and the map y -> y + A y + b + D(y).

    D is a network of sines with a linear output. The weights are the whole network: whoever makes
    them, a hypernetwork or a modulation, the evaluation is the same.

    Attributes:
        layers: (weight (B, out, in), bias (B, 1, out)) of each layer, the last one linear.
        affine: (A (B, n, n), b (B, 1, n)), or None for none.
    """

    layers: tuple[tuple[Tensor, Tensor], ...]
    affine: tuple[Tensor, Tensor] | None = None

    def __call__(self, y: Tensor) -> Tensor:
        """Map points y (B, P, n) of B shapes, each by its own network."""
        x = y
        for weight, bias in self.layers[:-1]:
            x, _ = sine_cosine(torch.baddbmm(bias, x, weight.mT))
        return self._moved(y) + torch.baddbmm(self.layers[-1][1], x, self.layers[-1][0].mT)

    def with_jacobian(self, y: Tensor) -> tuple[Tensor, Tensor]:
        """Map points and give the Jacobian (B, P, n, n) there, the tangents carried along."""
        (shapes, points, n), (weight, bias) = y.shape, self.layers[0]
        x, slope = sine_cosine(torch.baddbmm(bias, y, weight.mT))
        # ∂sin(a)/∂y_j = cos(a) W_j, one row a direction j
        dx = slope[:, :, None] * weight.mT[:, None]
        for weight, bias in self.layers[1:-1]:
            x, slope = sine_cosine(torch.baddbmm(bias, x, weight.mT))
            da = torch.bmm(dx.flatten(1, 2), weight.mT).unflatten(1, (points, n))
            dx = slope[:, :, None] * da
        weight, bias = self.layers[-1]
        turned = torch.bmm(dx.flatten(1, 2), weight.mT).view(shapes, points, n, -1).mT
        jacobian = turned + torch.eye(n, dtype=y.dtype, device=y.device)
        if self.affine is not None:
            jacobian = jacobian + self.affine[0][:, None]
        return self._moved(y) + torch.baddbmm(bias, x, weight.mT), jacobian

    def _moved(self, y: Tensor) -> Tensor:
        """The part of the map that is no network: y + A y + b."""
        if self.affine is None:
            return y
        return y + torch.baddbmm(self.affine[1], y, self.affine[0].mT)
