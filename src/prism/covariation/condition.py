"""Gaussian conditioning of a person's shape, at any age, on one or several visits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prism.covariation.factors import scaled_modes
from prism.covariation.learn import Covariation
from prism.covariation.visible import Visible
from prism.typing import Floats, Times

MOST_VALUES = 2_000_000


@dataclass(frozen=True)
class Forecast:
    """Posterior of residuals: mean (B, K, M, n) and standard deviation of each coordinate.

    Attributes:
        mean: (B, K, M, n) expected residual.
        cov: (B, K, M, n, n) covariance of the residual a new measurement would show.
        cov_state: (B, K, M, n, n) the same without measurement noise: of the anatomy itself.
    """

    mean: Floats
    cov: Floats
    cov_state: Floats


def condition(how: Covariation, seen: Visible, t: Times, target: Visible, t1: Times) -> Forecast:
    """[Eq. pooled] Residuals of B people at K ages given V visits each, exact, linear in points.

    Modes couple all points, remainder and noise only the visits of one point: per point a
    (V n x V n) system, and one of size V R for the amplitudes.

    Args:
        how: What was learned.
        seen: (B, V, M, ...) the visits.
        t: (B, V) their ages.
        target: (B, K, M, ...) signal and noise at the ages wanted (its residuals are not used).
        t1: (B, K) those ages.
    """
    V, M, n = seen.r.shape[1:]
    block = max(1, MOST_VALUES // (M * (V * n) * (V * max(how.factors.rank, 1) + V * n)))
    parts = [
        _condition(how, seen[b : b + block], t[b : b + block], target[b : b + block],
                   t1[b : b + block])
        for b in range(0, len(t), block)
    ]  # fmt: skip
    return Forecast(*(np.concatenate([getattr(p, k) for p in parts]) for k in vars(parts[0])))


def _condition(how: Covariation, seen: Visible, t: Times, target: Visible, t1: Times) -> Forecast:
    B, V, M, n = seen.r.shape
    K, R = t1.shape[1], how.factors.rank
    Q, k, own = _pointwise_covariances(how, seen, t, target, t1)
    X = scaled_modes(how.factors, seen.A)  # (B, V, M, n, R)
    X = np.einsum("bvpir,vw->bpviwr", X, np.eye(V)).reshape(B, M, V * n, V * R)
    y = seen.r.transpose(0, 2, 1, 3).reshape(B, M, V * n, 1)
    Qi = np.asarray(np.linalg.inv(Q), dtype=np.float64)
    a, a_cov, carry, fresh = _amplitudes(how, X, Qi, y, t, t1)
    X1 = scaled_modes(how.factors, target.A).transpose(0, 2, 1, 3, 4)  # (B, M, K, n, R)
    kQ = k @ Qi
    G = np.einsum("bpkir,bkrx->bpkix", X1, carry, optimize=True)
    G = G - (kQ @ X).reshape(B, M, K, n, V * R)
    mean = (G @ a[:, None, None, :, None])[..., 0] + (kQ @ y).reshape(B, M, K, n)
    cov = (G @ a_cov[:, None, None]) @ G.swapaxes(-1, -2)
    cov = cov + (X1 * fresh[:, None, :, None, :]) @ X1.swapaxes(-1, -2)
    known = kQ.reshape(B, M, K, n, V * n) @ k.reshape(B, M, K, n, V * n).swapaxes(-1, -2)
    state = cov + own - known
    noise = _transient(how, target)[..., None, None] * np.eye(n)
    return Forecast(*(v.swapaxes(1, 2) for v in (mean, state + noise, state)))


def _transient(how: Covariation, x: Visible) -> Floats:
    """Variance (B, M, K) of the measurement that does not last."""
    lasting = how.persistence.share[-1]
    noise = (1 - lasting) * how.factors.q * x.noise + x.tolerance**2
    return noise.swapaxes(1, 2)


def _pointwise_covariances(
    how: Covariation, seen: Visible, t: Times, target: Visible, t1: Times
) -> tuple[Floats, Floats, Floats]:
    """Of remainder and noise at one point: among visits, target to visits, target's own."""
    B, V, M, n = seen.r.shape
    K, R, keep, D = t1.shape[1], how.factors.rank, how.persistence, how.factors.D
    one = np.eye(n)
    nu = np.sqrt(how.factors.q * seen.noise) * seen.seen
    nu1 = np.sqrt(how.factors.q * target.noise)
    AD = seen.A * D[:, None, :]
    Q = np.einsum("bvpij,bwpkj,bvw->bpviwk", AD, seen.A, keep.correlation(R, t, t), optimize=True)
    last = np.minimum(keep.correlation(R + 1, t, t), np.where(np.eye(V), 1.0, keep.share[R + 1]))
    Q = Q + np.einsum("bvp,bwp,bvw,ik->bpviwk", nu, nu, last, one, optimize=True)
    Q = Q.reshape(B, M, V * n, V * n)
    free = np.where(seen.seen, seen.tolerance**2, 1.0).swapaxes(1, 2)  # a gap says nothing
    Q[..., range(V * n), range(V * n)] += np.repeat(free, n, axis=-1)
    k = np.einsum(
        "bkpij,bwplj,bkw->bpkiwl", target.A, AD, keep.correlation(R, t1, t), optimize=True
    )
    late = keep.correlation(R + 1, t1, t)
    late = np.minimum(late, keep.share[R + 1])  # at no lag the transient part is not shared
    k = k + np.einsum("bkp,bwp,bkw,il->bpkiwl", nu1, nu, late, one, optimize=True)
    own = (target.A * D[:, None, :]) @ target.A.swapaxes(-1, -2)
    own = own + (keep.share[R + 1] * nu1**2)[..., None, None] * one
    return Q, k.reshape(B, M, K * n, V * n), own.swapaxes(1, 2)


def _amplitudes(
    how: Covariation, X: Floats, Qi: Floats, y: Floats, t: Times, t1: Times
) -> tuple[Floats, Floats, Floats, Floats]:
    """Posterior mean (B, V R) and covariance; carry (B, K, R, V R) to t1; fresh (B, K, R)."""
    B, V = t.shape
    K, R = t1.shape[1], how.factors.rank
    QX = Qi @ X
    precision = np.einsum("bpix,bpiz->bxz", X, QX, optimize=True)
    pull = np.einsum("bpix,bpiz->bx", QX, y, optimize=True)
    prior, carry = np.zeros((B, V, R, V, R)), np.zeros((B, K, R, V, R))
    fresh = np.zeros((B, K, R))
    for r in range(R):
        among = how.persistence.correlation(r, t, t) + 1e-9 * np.eye(V)
        inverse = np.linalg.inv(among)
        to = how.persistence.correlation(r, t1, t)
        prior[:, :, r, :, r], carry[:, :, r, :, r] = inverse, to @ inverse
        fresh[:, :, r] = np.maximum(1 - ((to @ inverse) * to).sum(-1), 0.0)
    a_cov = np.linalg.inv(prior.reshape(B, V * R, V * R) + precision)
    a = (a_cov @ pull[..., None])[..., 0]
    return a, a_cov, carry.reshape(B, K, R, V * R), fresh
