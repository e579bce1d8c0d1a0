"""What a registration descends: each term of the paper, and what it needs beside them."""

from __future__ import annotations

import torch
from torch import Tensor

TINY = 1e-6  # inside norms that are not squared: their slope at zero does not exist


def norm(x: Tensor) -> Tensor:
    """Length along the last axis, smooth at zero: sqrt(|x|^2 + TINY^2)."""
    return (x.square().sum(-1) + TINY**2).sqrt()


def sdf_loss(predicted: Tensor, s: Tensor, reach: float) -> Tensor:
    """[Eq. L-sdf] Mean of |T(Phi_fwd(y)) - s|; beyond `reach` distances are not told apart."""
    return (predicted.clamp(-reach, reach) - s.clamp(-reach, reach)).abs().mean()


def normal_loss(gradient: Tensor, normals: Tensor) -> Tensor:
    """[Eq. L-norm] Mean of 1 - cos(gradient of T(Phi_fwd(y)), normal), normals of length one."""
    return (1 - (gradient * normals).sum(-1) / norm(gradient)).mean()


def eikonal_loss(gradient: Tensor) -> Tensor:
    """[Eq. L-eik] Mean of | |gradient of T(Phi_fwd(y))| - 1 |."""
    return (norm(gradient) - 1).abs().mean()


def icon_loss(y: Tensor, there_and_back: Tensor) -> Tensor:
    """[Eq. L-icon] Mean of |Phi_bwd(Phi_fwd(y)) - y|."""
    return norm(there_and_back - y).mean()


def gradicon_loss(jacobian: Tensor) -> Tensor:
    """[Eq. L-grad] Mean of |J - 1|_F, J (..., n, n) the Jacobian of the round trip.

    A constant offset of the round trip costs nothing here: `icon_loss` is what sees it.
    """
    return norm(_strain(jacobian).flatten(-2)).mean()


def stiffness_loss(jacobian: Tensor) -> Tensor:
    """[Eq. stiffness] Mean of |J - 1|_F^2 of a single map: of all maps prefer the calmest."""
    return _strain(jacobian).square().sum((-1, -2)).mean()


def _strain(jacobian: Tensor) -> Tensor:
    """J - 1; the unit matrix is made where J lies, as a recorded step on a GPU demands."""
    n = jacobian.shape[-1]
    return jacobian - torch.eye(n, dtype=jacobian.dtype, device=jacobian.device)
