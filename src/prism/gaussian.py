"""Gaussian fields: a normal law N(mu, Sigma) at every query point, with Sigma = L L'.

L is kept packed, row by row: (L00, L10, L11) in the plane, (L00, L10, L11, L20, L21, L22) in
space. Triangular algebra is written out over the few columns: a batched solver over thousands of
tiny matrices is far slower. Nothing here inverts a matrix or takes a determinant.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor


def packed_size(n: int) -> int:
    """Count the entries of a lower triangle, n (n + 1) / 2."""
    return n * (n + 1) // 2


def diagonal_indices(n: int) -> list[int]:
    """Positions of the diagonal in the packed triangle."""
    return [packed_size(i + 1) - 1 for i in range(n)]


def _entry(i: int, j: int) -> int:
    return packed_size(i) + j


def forward_substitution(L: Any, r: Any) -> list[Any]:
    """Columns of L^-1 r, each (...), for arrays and tensors alike; L packed, r (..., n)."""
    x: list[Any] = []
    for i in range(r.shape[-1]):
        rest = r[..., i]
        for j in range(i):
            rest = rest - L[..., _entry(i, j)] * x[j]
        x.append(rest / L[..., _entry(i, i)])
    return x


def solve_lower(L: Tensor, r: Tensor) -> Tensor:
    """L^-1 r by forward substitution; L packed (..., k), r (..., n)."""
    return torch.stack(forward_substitution(L, r), dim=-1)


def multiply_lower(L: Tensor, x: Tensor) -> Tensor:
    """L x; L packed (..., k), x (..., n)."""
    rows = range(x.shape[-1])
    return torch.stack(
        [sum(L[..., _entry(i, j)] * x[..., j] for j in range(i + 1)) for i in rows],  # type: ignore[misc]
        dim=-1,
    )


def unpack(L: Tensor, n: int) -> Tensor:
    """Packed (..., k) to a full lower triangle (..., n, n)."""
    full = L.new_zeros(*L.shape[:-1], n, n)
    rows, cols = torch.tril_indices(n, n).tolist()
    full[..., rows, cols] = L
    return full


def pack(L: Tensor) -> Tensor:
    """Full lower triangle (..., n, n) to packed (..., k)."""
    rows, cols = torch.tril_indices(L.shape[-1], L.shape[-1]).tolist()
    return L[..., rows, cols]


def log_det_lower(L: Tensor, n: int) -> Tensor:
    """Log-determinant of L: the sum of log diagonal entries."""
    return torch.stack([L[..., i] for i in diagonal_indices(n)], dim=-1).log().sum(-1)


def add_noise(L: Tensor, sd: float, n: int) -> Tensor:
    """[Eq. noise-floor] Packed factor of L L' + sd^2 1, by rotating the noise into L.

    Givens rotations of the columns of (L, sd 1): nothing is squared and taken apart again, so
    that single precision holds for noise far below L.
    """
    low = [[L[..., _entry(i, j)] for j in range(i + 1)] for i in range(n)]
    for j in range(n):
        noise: list[Any] = [0.0] * n
        noise[j] = sd
        for k in range(j, n):
            length = (low[k][k] ** 2 + noise[k] ** 2).sqrt()
            cos, sin = low[k][k] / length, noise[k] / length
            for i in range(k + 1, n):
                below = low[i][k]
                low[i][k], noise[i] = cos * below + sin * noise[i], cos * noise[i] - sin * below
            low[k][k] = length
    return torch.stack([entry for row in low for entry in row], dim=-1)


def covariance_of(L: np.ndarray, n: int) -> np.ndarray:
    """Sigma = L L' (..., n, n) of packed factors (..., n (n + 1) / 2), as arrays."""
    Sigma = np.empty((*L.shape[:-1], n, n))
    for i in range(n):
        for j in range(i + 1):
            products = (L[..., _entry(i, k)] * L[..., _entry(j, k)] for k in range(j + 1))
            Sigma[..., i, j] = Sigma[..., j, i] = sum(products)
    return Sigma


@dataclass(frozen=True)
class GaussianField:
    """[Eq. shape-model] The law d | p, t ~ N(mu, L L') at a batch of query points.

    Attributes:
        mu: (..., n) mean displacement.
        L: (..., n (n + 1) / 2) packed Cholesky factor of Sigma, positive diagonal.
    """

    mu: Tensor
    L: Tensor

    @classmethod
    def from_covariance(cls, mu: Tensor, Sigma: Tensor) -> GaussianField:
        """Build the field from full covariances (..., n, n)."""
        return cls(mu, pack(torch.linalg.cholesky(Sigma)))

    @property
    def n(self) -> int:
        """Space dimension."""
        return self.mu.shape[-1]

    @property
    def Sigma(self) -> Tensor:
        """Covariance, (..., n, n)."""
        full = unpack(self.L, self.n)
        return full @ full.mT

    @property
    def std(self) -> Tensor:
        """Marginal standard deviation of every coordinate, (..., n)."""
        squares = self.L**2
        rows = [squares[..., _entry(i, 0) : _entry(i, i) + 1].sum(-1) for i in range(self.n)]
        return torch.stack(rows, dim=-1).sqrt()

    def whiten(self, d: Tensor) -> Tensor:
        """L^-1 (d - mu): standard normal where the law holds, (..., n)."""
        return solve_lower(self.L, d - self.mu)

    def nll(self, d: Tensor) -> Tensor:
        """[Eq. NLL] 1/2 [(d - mu)' Sigma^-1 (d - mu) + log det Sigma], without the constant."""
        return 0.5 * (self.whiten(d) ** 2).sum(-1) + log_det_lower(self.L, self.n)

    def log_prob(self, d: Tensor) -> Tensor:
        """Log-density of displacement d, (...)."""
        return -self.nll(d) - 0.5 * self.n * math.log(2 * math.pi)

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """Draw one displacement at every query point."""
        white = torch.randn(self.mu.shape, generator=generator, dtype=self.mu.dtype)
        return self.mu + multiply_lower(self.L, white.to(self.mu))


class Population(Protocol):
    """A population of shapes: any callable (p, t) -> GaussianField.

    p (..., n) are template points and t (...) times, both in the user's units, batch axes
    broadcast against each other; the field's displacements are in the user's length unit.
    A Population must be differentiable in t by forward mode.
    """

    def __call__(self, p: Tensor, t: Tensor) -> GaussianField:
        """Return the law of displacement at p and t."""
        ...
