"""Fisher information of time at every point, in closed form, for any Population.

One forward-mode pass gives mu, L and their time derivatives; everything else is small triangular
algebra. Where mu does not move, time cannot be read: the information is zero and the temporal
spread infinite, never a number that could enter a mean.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from prism.errors import QueryError
from prism.gaussian import GaussianField, Population, diagonal_indices, solve_lower, unpack
from prism.typing import ArrayLike

Information = Literal["mean", "covariance", "full"]
CHUNK = 262_144


@dataclass(frozen=True)
class FieldRate:
    """A Gaussian field and its rate of change in time, at a batch of query points."""

    field: GaussianField
    mu_t: Tensor
    L_t: Tensor


def field_and_rate(population: Population, p: Tensor, t: Tensor) -> FieldRate:
    """mu, L and their time derivatives by one forward-mode pass."""

    def at(time: Tensor) -> tuple[Tensor, Tensor]:
        field = population(p, time)
        return field.mu, field.L

    t = t.expand(torch.broadcast_shapes(p.shape[:-1], t.shape)).contiguous()
    (mu, L), (mu_t, L_t) = torch.func.jvp(at, (t,), (torch.ones_like(t),))
    return FieldRate(GaussianField(mu, L), mu_t, L_t)


def mean_information(rate: FieldRate) -> Tensor:
    """[Eq. I-mu] mu_t' Sigma^-1 mu_t = |L^-1 mu_t|^2."""
    return (solve_lower(rate.field.L, rate.mu_t) ** 2).sum(-1)


def covariance_information(rate: FieldRate) -> Tensor:
    """[Eq. I-Sigma] 1/2 tr((Sigma^-1 Sigma_t)^2).

    With A = L^-1 L_t (lower triangular), L^-1 Sigma_t L^-T = A + A', hence
    1/2 tr((A + A')^2) = 2 sum of squared diagonal + sum of squared off-diagonal entries.
    """
    n = rate.field.n
    columns = unpack(rate.L_t, n).unbind(-1)
    A = torch.stack([solve_lower(rate.field.L, column) for column in columns], dim=-1)
    diagonal = torch.diagonal(A, dim1=-2, dim2=-1)
    return (A**2).sum((-2, -1)) + (diagonal**2).sum(-1)


def score_of(rate: FieldRate, d: Tensor) -> Tensor:
    """[Eq. score] U = d/dt log p(d | p, t), from a field and its rate.

    With the whitened residual e = L^-1 (d - mu) and A = L^-1 L_t:
    U = e' L^-1 mu_t + e' A e - tr A.
    """
    L = rate.field.L
    e = rate.field.whiten(d)
    drift = (e * solve_lower(L, rate.mu_t)).sum(-1)
    turn = solve_lower(L, (unpack(rate.L_t, rate.field.n) @ e[..., None])[..., 0])
    diagonal = diagonal_indices(rate.field.n)
    trace = (rate.L_t[..., diagonal] / L[..., diagonal]).sum(-1)
    return drift + (e * turn).sum(-1) - trace


_KINDS: dict[str, Callable[[FieldRate], Tensor]] = {
    "mean": mean_information,
    "covariance": covariance_information,
    "full": lambda rate: mean_information(rate) + covariance_information(rate),
}


def fisher_information(
    population: Population, p: ArrayLike, t: ArrayLike, kind: Information = "mean"
) -> ArrayLike:
    """[Eq. I-full] Fisher information of time at every point, in 1 / (time unit)^2.

    Args:
        population: Any (p, t) -> GaussianField.
        p: (..., n) template points.
        t: (...) times; batch axes broadcast against those of p.
        kind: "mean" (I_mu, how precisely an individual can be placed on the mean trajectory),
            "covariance" (I_Sigma) or "full" (their sum).

    Returns:
        (...) information; an array for array inputs, a tensor for tensors. Memory does not grow
        with the number of points: they are worked through in chunks.
    """
    if kind not in _KINDS:
        raise QueryError(f"kind must be one of {sorted(_KINDS)}. Got {kind!r}.", "Choose one.")
    return _in_chunks(lambda x, s: _KINDS[kind](field_and_rate(population, x, s)), p, t)


def temporal_std(
    population: Population, p: ArrayLike, t: ArrayLike, kind: Information = "mean"
) -> ArrayLike:
    """[Eq. sigma-tau] sigma_tau = I^-1/2, in the time unit; infinite where time cannot be read."""
    info = fisher_information(population, p, t, kind)
    return spread_of(info)


def spread_of(info: ArrayLike) -> ArrayLike:
    """I^-1/2; infinite, not huge, where the information vanishes."""
    if isinstance(info, Tensor):
        return info.clamp_min(0.0).rsqrt()
    with np.errstate(divide="ignore"):
        return 1.0 / np.sqrt(np.maximum(info, 0.0))


def score(population: Population, d: Tensor, p: Tensor, t: Tensor) -> Tensor:
    """Score function d/dt log p(d | p, t); see `score_of` for the formula."""
    return score_of(field_and_rate(population, p, t), d)


def _in_chunks(
    function: Callable[[Tensor, Tensor], Tensor], p: ArrayLike, t: ArrayLike
) -> ArrayLike:
    """Apply a pointwise function to broadcast (p, t) in chunks; arrays in, arrays out."""
    device = p.device if isinstance(p, Tensor) else None
    points = torch.as_tensor(p, device=device)
    if not points.is_floating_point():
        points = points.double()
    times = torch.as_tensor(t, device=points.device).to(points.dtype)
    shape = torch.broadcast_shapes(points.shape[:-1], times.shape)
    flat_p = points.expand(*shape, points.shape[-1]).reshape(-1, points.shape[-1])
    flat_t = times.expand(shape).reshape(-1)
    pairs = zip(flat_p.split(CHUNK), flat_t.split(CHUNK), strict=True)
    with torch.no_grad():
        result = torch.cat([function(x, s) for x, s in pairs]).reshape(shape)
    return result if isinstance(p, Tensor) else result.cpu().numpy()
