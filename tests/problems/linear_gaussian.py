"""Populations whose Fisher information and best times are known exactly, in double precision."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from prism.gaussian import GaussianField, diagonal_indices, packed_size
from prism.simulate.starman import SPREADS, StarmanLaw, growth_directions


def points(count: int, n: int, seed: int = 0) -> Tensor:
    """Template points in the unit cube, (count, n)."""
    draw = torch.Generator().manual_seed(seed)
    return torch.rand(count, n, generator=draw, dtype=torch.float64)


def covariance(n: int, seed: int = 0) -> Tensor:
    """A well-conditioned covariance with correlations, (n, n)."""
    draw = torch.Generator().manual_seed(seed)
    root = torch.randn(n, n, generator=draw, dtype=torch.float64)
    return 0.02 * (root @ root.mT + torch.eye(n, dtype=torch.float64))


@dataclass(frozen=True)
class LinearGaussian:
    """d ~ N(c + t a (1 + p_0^2), S): constant Sigma, a straight course of a speed set by p.

    I = a' S^-1 a (1 + p_0^2)^2, and the most likely time of one point, or of several that share
    it, is a weighted least-squares line with variance 1 / (sum of I).
    """

    a: Tensor
    S: Tensor
    c: float = 0.5

    @classmethod
    def example(cls, n: int) -> LinearGaussian:
        """One such population of dimension n."""
        return cls(torch.tensor([1.0, -0.5, 0.8], dtype=torch.float64)[:n], covariance(n))

    def slope(self, p: Tensor) -> Tensor:
        """mu_t, (..., n)."""
        return self.a * (1 + p[..., :1] ** 2)

    def __call__(self, p: Tensor, t: Tensor) -> GaussianField:
        mu = self.c + t[..., None] * self.slope(p)
        return GaussianField.from_covariance(mu, self.S.expand(*mu.shape, mu.shape[-1]))

    def _weights(self, p: Tensor) -> Tensor:
        return torch.linalg.solve(self.S, self.slope(p).mT).mT

    def information(self, p: Tensor) -> Tensor:
        """I of every point p (M, n), (M,)."""
        return (self._weights(p) * self.slope(p)).sum(-1)

    def best_time(self, p: Tensor, d: Tensor) -> Tensor:
        """Most likely time of every point, d (N, M, n) -> (N, M)."""
        return (self._weights(p) * (d - self.c)).sum(-1) / self.information(p)

    def best_joint_time(self, p: Tensor, d: Tensor) -> Tensor:
        """Most likely time of every shape, d (N, M, n) -> (N,)."""
        total = self.information(p).sum()
        return (self._weights(p) * (d - self.c)).sum((-2, -1)) / total


@dataclass(frozen=True)
class IsotropicSpread:
    """d ~ N(c, s(t)^2 1): the mean stands still, I_mu = 0 and I_Sigma = 2 n (s' / s)^2.

    Sigma^-1 Sigma_t = 2 (s' / s) 1, hence 1/2 tr((2 (s' / s) 1)^2) = 2 n (s' / s)^2.
    """

    n: int
    s: Callable[[Tensor], Tensor] = lambda t: 0.5 + 0.2 * t**2
    s_t: Callable[[Tensor], Tensor] = lambda t: 0.4 * t

    def __call__(self, p: Tensor, t: Tensor) -> GaussianField:
        s = self.s(t) + 0 * p[..., 0]
        diagonal = torch.zeros(packed_size(self.n), dtype=s.dtype)
        diagonal[diagonal_indices(self.n)] = 1.0
        return GaussianField(torch.ones_like(p) + 0 * s[..., None], s[..., None] * diagonal)

    def information(self, t: Tensor) -> Tensor:
        """I_Sigma, of the shape of t."""
        return 2 * self.n * (self.s_t(t) / self.s(t)) ** 2


class Curved:
    """A smooth population of sines: everything changes with p and t, mu runs on with time."""

    def __init__(self, n: int, seed: int = 0, bend: float = 0.1) -> None:
        draw = torch.Generator().manual_seed(seed)
        out, waves = n + packed_size(n), 4
        self.n, self.bend = n, bend
        self.space = 2 * torch.randn(waves, n, generator=draw, dtype=torch.float64)
        self.time = 2 * torch.randn(waves, generator=draw, dtype=torch.float64)
        self.phase = 6 * torch.rand(waves, generator=draw, dtype=torch.float64)
        self.mix = torch.randn(out, waves, generator=draw, dtype=torch.float64) / math.sqrt(waves)
        self.drift = torch.linspace(1.0, 0.5, n, dtype=torch.float64)

    def __call__(self, p: Tensor, t: Tensor) -> GaussianField:
        phase = p @ self.space.mT + t[..., None] * self.time + self.phase
        waves = torch.sin(phase) @ self.mix.mT
        mu = t[..., None] * self.drift + self.bend * waves[..., : self.n]
        raw = waves[..., self.n :]
        diagonal = torch.zeros(packed_size(self.n), dtype=torch.bool)
        diagonal[diagonal_indices(self.n)] = True
        L = 0.1 * torch.where(diagonal, torch.exp(0.5 * raw), raw)
        return GaussianField(mu, L)


class Mapped:
    """A population whose displacements went through an invertible linear map B."""

    def __init__(self, inner: Callable[[Tensor, Tensor], GaussianField], B: Tensor) -> None:
        self.inner, self.B = inner, B

    def __call__(self, p: Tensor, t: Tensor) -> GaussianField:
        field = self.inner(p, t)
        Sigma = self.B @ field.Sigma @ self.B.mT
        return GaussianField.from_covariance(field.mu @ self.B.mT, Sigma)


class OtherClock:
    """A population whose times are written in another unit: t' = scale t."""

    def __init__(self, inner: Callable[[Tensor, Tensor], GaussianField], scale: float) -> None:
        self.inner, self.scale = inner, scale

    def __call__(self, p: Tensor, t: Tensor) -> GaussianField:
        return self.inner(p, t / self.scale)


def starman_time_variance(law: StarmanLaw, p: np.ndarray, t: np.ndarray) -> np.ndarray:
    """sigma_tau^2 of global Starman: sigma(t)^2 + noise^2 / |w(p)|^2, at (M, 2) and (M,)."""
    w = growth_directions(p).sum(1)
    return np.asarray(SPREADS["global"][0](t)) ** 2 + law.noise**2 / (w**2).sum(-1)
