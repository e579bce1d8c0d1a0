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
Spread = Literal["bound", "separated"]
CHUNK = 262_144
LEAST_SHARE = 0.05  # least separated spread, as a share of the bound


@dataclass(frozen=True)
class FieldRate:
    """A Gaussian field and its rate of change in time, at a batch of query points."""

    field: GaussianField
    mu_t: Tensor
    L_t: Tensor


def field_and_rate(population: Population, p: Tensor, t: Tensor) -> FieldRate:
    """mu, L and their time derivatives in one forward pass.

    By the population's own tangent (a method `rate`) where it has one, else by forward mode.
    """
    t = t.expand(torch.broadcast_shapes(p.shape[:-1], t.shape)).contiguous()
    own = getattr(population, "rate", None)
    return FieldRate(*own(p, t)) if own is not None else forward_mode_rate(population, p, t)


def forward_mode_rate(population: Population, p: Tensor, t: Tensor) -> FieldRate:
    """mu, L and their time derivatives of any Population by forward-mode differentiation."""

    def at(time: Tensor) -> tuple[Tensor, Tensor]:
        field = population(p, time)
        return field.mu, field.L

    (mu, L), (mu_t, L_t) = torch.func.jvp(at, (t,), (torch.ones_like(t),))[:2]
    return FieldRate(GaussianField(mu, L), mu_t, L_t)


def mean_information(rate: FieldRate) -> Tensor:
    """[Eq. I-mu] mu_t' Sigma^-1 mu_t = |L^-1 mu_t|^2."""
    return _squared_speed(rate.field, rate.mu_t)


def _squared_speed(field: GaussianField, mu_t: Tensor) -> Tensor:
    return (solve_lower(field.L, mu_t) ** 2).sum(-1)


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


def _mean_kind(population: Population, p: Tensor, t: Tensor) -> Tensor:
    """I_mu without the rate of L, which it does not need."""
    return _squared_speed(*_law_and_speed(population, p, t))


def _covariance_kind(population: Population, p: Tensor, t: Tensor) -> Tensor:
    return covariance_information(field_and_rate(population, p, t))


def _full_kind(population: Population, p: Tensor, t: Tensor) -> Tensor:
    rate = field_and_rate(population, p, t)
    return mean_information(rate) + covariance_information(rate)


_KINDS: dict[str, Callable[[Population, Tensor, Tensor], Tensor]] = {
    "mean": _mean_kind,
    "covariance": _covariance_kind,
    "full": _full_kind,
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
    return _in_chunks(lambda x, s: _KINDS[kind](population, x, s), p, t)


def temporal_std(
    population: Population, p: ArrayLike, t: ArrayLike, kind: Spread = "bound"
) -> ArrayLike:
    """[Eq. sigma-tau] Temporal spread in the time unit; infinite where time cannot be read.

    Args:
        population: Any (p, t) -> GaussianField.
        p: (..., n) template points.
        t: (...) times; batch axes broadcast against those of p.
        kind: "bound" is the paper's I_mu^-1/2, which mixes how far people differ in time with how
            well one point can be placed at all; "separated" takes the second part out.
    """
    if kind not in _SPREADS:
        raise QueryError(f"kind must be one of {sorted(_SPREADS)}. Got {kind!r}.", "Choose one.")
    return _in_chunks(lambda x, s: _SPREADS[kind](*_law_and_speed(population, x, s)), p, t)


def bound_spread(field: GaussianField, mu_t: Tensor) -> Tensor:
    """The paper's sigma_tau = I_mu^-1/2."""
    return _squared_speed(field, mu_t).rsqrt()


def separated_spread(field: GaussianField, mu_t: Tensor, noise: float = 1.0) -> Tensor:
    """[Eq. separated] s^2 = 1/I_mu - lambda / |mu_t|^2, lambda the least eigenvalue of Sigma.

    `noise` is the share of lambda that is measurement noise.

    With Sigma = s^2 mu_t mu_t' + S, 1/I_mu = s^2 + 1/(mu_t' S^-1 mu_t): the population's temporal
    spread plus the error of placing one point. The spread across growth tells the second part.
    """
    bound = 1 / _squared_speed(field, mu_t)
    placing = noise * torch.linalg.eigvalsh(field.Sigma)[..., 0] / mu_t.square().sum(-1)
    least = (LEAST_SHARE**2) * bound
    return torch.where(torch.isinf(bound), bound, torch.maximum(bound - placing, least)).sqrt()


def _law_and_speed(population: Population, p: Tensor, t: Tensor) -> tuple[GaussianField, Tensor]:
    """The law and mu_t, by the population's own tangent where it has one."""
    own = getattr(population, "mean_rate", None)
    if own is not None:
        return own(p, t)
    rate = field_and_rate(population, p, t)
    return rate.field, rate.mu_t


_SPREADS: dict[str, Callable[[GaussianField, Tensor], Tensor]] = {
    "bound": bound_spread,
    "separated": separated_spread,
}


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
