"""Covariations of points and visits, and the dense Gaussians they stand for, built entry by entry.

The dense matrices follow the words of the model, not its code: amplitudes shared by all points, a
remainder and a measurement of every point, each with its own correlation between two ages.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prism.covariation import Covariation, Factors, Persistence, Visible


def covariances(*shape: int, n: int = 2, seed: int = 0) -> np.ndarray:
    """Well-conditioned covariances, (*shape, n, n)."""
    root = np.random.default_rng(seed).standard_normal((*shape, n, n))
    return 0.3 * root @ root.swapaxes(-1, -2) + 0.4 * np.eye(n)


def planted(
    points: int = 5, n: int = 2, rank: int = 2, seed: int = 0, tolerance: float = 0.1,
    noise_share: float = 0.5,
) -> Covariation:  # fmt: skip
    """A covariation with modes, a remainder and noise, each of which lasts in its own way."""
    rng = np.random.default_rng(seed)
    factors = Factors(
        0.7 * rng.standard_normal((rank, points, n)), rng.uniform(0.2, 0.5, (points, n)), 1.3
    )
    share, span = rng.uniform(0.4, 0.95, rank + 2), rng.uniform(1.0, 6.0, rank + 2)
    span[0] = np.inf
    tempo = rng.uniform(0.0, 1.0, rank)
    return Covariation(factors, Persistence(share, span), noise_share, tolerance, tempo)


@dataclass(frozen=True)
class Dense:
    """One person's anatomy at several ages as one long Gaussian vector, ordered (age, point, axis).

    Attributes:
        state: Covariance of the anatomy, with the part of the measurement that lasts.
        fresh: Variances of the part of the measurement that does not last.
    """

    state: np.ndarray
    fresh: np.ndarray

    @property
    def measured(self) -> np.ndarray:
        """Covariance of what is measured."""
        return self.state + np.diag(self.fresh)


def dense(how: Covariation, Sigma: np.ndarray, t: np.ndarray) -> Dense:
    """The Gaussian of ages t (T,) where the population has covariance Sigma (T, M, n, n)."""
    T, M, n = Sigma.shape[:3]
    factors, keep = how.factors, how.persistence
    noise = how.noise_share * np.linalg.eigvalsh(Sigma)[..., 0]
    A = np.linalg.cholesky(Sigma - noise[..., None, None] * np.eye(n))
    nu = np.sqrt(factors.q * noise)
    state = np.zeros((T, M, n, T, M, n))
    for i in range(T):
        for j in range(T):
            fade = [1.0] * (factors.rank + 1) if t[i] == t[j] else keep.share[:-1] * np.exp(
                -abs(t[i] - t[j]) / keep.span[:-1]
            )  # fmt: skip
            for p in range(M):
                for o in range(M):
                    for r in range(factors.rank):
                        here, there = A[i, p] @ factors.W[r, p], A[j, o] @ factors.W[r, o]
                        state[i, p, :, j, o] += fade[r] * np.outer(here, there)
                own = A[i, p] @ np.diag(factors.D[p]) @ A[j, p].T
                lasting = keep.share[-1] * np.exp(-abs(t[i] - t[j]) / keep.span[-1])
                state[i, p, :, j, p] += fade[-1] * own
                state[i, p, :, j, p] += lasting * nu[i, p] * nu[j, p] * np.eye(n)
    fresh = np.repeat((1 - keep.share[-1]) * nu.ravel() ** 2 + how.tolerance**2, n)
    return Dense(state.reshape(T * M * n, T * M * n), fresh)


def seen_by(how: Covariation, Sigma: np.ndarray, count: int, seed: int = 0) -> Visible:
    """`count` people measured once where the population has covariance Sigma (M, n, n)."""
    C = dense(how, Sigma[None], np.zeros(1)).measured
    draw = np.random.default_rng(seed).standard_normal((count, len(C)))
    r = (draw @ np.linalg.cholesky(C).T).reshape(count, *Sigma.shape[:2])
    return how.visible(r, np.broadcast_to(Sigma, (count, *Sigma.shape)))


def line_of(points: int, n: int) -> np.ndarray:
    """Template points along a gentle curve, (points, n)."""
    s = np.linspace(0, 1, points)
    return np.stack([s, 0.2 * s**2, 0.1 * np.sin(3 * s)][:n], axis=-1)


def special_covariances(n: int) -> np.ndarray:
    """Random, isotropic, diagonal, stretched and tiny matrices."""
    stretched = np.diag([1e-4, 1.0, 1e4][:n])
    special = [np.eye(n), np.diag([3.0, 1.0, 2.0][:n]), stretched, 1e-8 * covariances(n=n)]
    return np.concatenate([covariances(40, n=n), np.stack(special)])
