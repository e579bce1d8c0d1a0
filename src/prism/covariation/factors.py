"""Factor analysis of residual fields whose signal and noise change with age, by EM.

The residual of one visit at point p is r = A (W a + xi) + e with amplitudes a ~ N(0, 1) shared by
all points, a remainder xi ~ N(0, D) of the point alone and measurement e ~ N(0, q nu^2 1).
A A' + nu^2 1 is the population's own Sigma, so what a mode looks like follows the age.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from prism.covariation.visible import Visible, inverse_positive
from prism.typing import Floats

LEAST_VARIANCE = 1e-8
MODE_PRIOR = 1.0  # weight of W ~ N(0, 1), in visits


@dataclass(frozen=True)
class Factors:
    """What is learned: modes and remainder in the signal's frame, and the scale of the noise.

    Attributes:
        W: (R, M, n) modes.
        D: (M, n) variance of the remainder.
        q: Measurement variance in units of nu^2.
    """

    W: Floats
    D: Floats
    q: float

    @property
    def rank(self) -> int:
        """Count modes."""
        return len(self.W)

    @classmethod
    def none(cls, points: int, n: int) -> Factors:
        """No modes: every point by itself, as the population says."""
        return cls(np.zeros((0, points, n)), np.ones((points, n)), 1.0)


@dataclass(frozen=True)
class Beliefs:
    """Posterior of the amplitudes given each visit by itself.

    Attributes:
        mean: (N, R); cov: (N, R, R).
        evidence: (N,) log density of the visit, up to a constant.
        Qi: (N, M, n, n) inverse of Q = A D A' + (q nu^2 + tolerance^2) 1.
        AW: (N, M, n, R) modes in the length unit.
    """

    mean: Floats
    cov: Floats
    evidence: Floats
    Qi: Floats
    AW: Floats

    def rest(self, x: Visible) -> Floats:
        """R - A W a at the mean, (N, M, n)."""
        return x.r - (self.AW @ self.mean[:, None, :, None])[..., 0]


def point_precision(factors: Factors, x: Visible) -> tuple[Floats, Floats]:
    """Q^-1 (..., M, n, n) and log det Q (..., M)."""
    n = x.r.shape[-1]
    Q = (x.A * factors.D[..., None, :]) @ x.A.swapaxes(-1, -2)
    Q[..., range(n), range(n)] += (factors.q * x.noise + x.tolerance**2)[..., None]
    return inverse_positive(Q)


def scaled_modes(factors: Factors, A: Floats) -> Floats:
    """A W, (..., M, n, R)."""
    return A @ factors.W.transpose(1, 2, 0)


def believe(factors: Factors, x: Visible) -> Beliefs:
    """[Eq. factor-posterior] Amplitudes by Gaussian conditioning: cov = (1 + W'A'Q^-1 A W)^-1."""
    Qi, log_det = point_precision(factors, x)
    AW = scaled_modes(factors, x.A)
    QAW = Qi @ AW
    precision = np.einsum("vpir,vpis->vrs", AW, QAW, optimize=True) + np.eye(factors.rank)
    pull = np.einsum("vpir,vpi->vr", QAW, x.r, optimize=True)
    cov = np.linalg.inv(precision)
    mean = (cov @ pull[..., None])[..., 0]
    square = (x.r * (Qi @ x.r[..., None])[..., 0]).sum((-1, -2)) - (pull * mean).sum(-1)
    log_det = np.where(x.seen, log_det, 0.0).sum(-1) + np.linalg.slogdet(precision)[1]
    return Beliefs(mean, cov, -0.5 * (square + log_det), Qi, AW)


def improve(factors: Factors, x: Visible, beliefs: Beliefs) -> Factors:
    """M-step: modes, remainder and noise that best explain what is believed."""
    W = _better_modes(factors, x, beliefs) if factors.rank else factors.W
    moved = replace(factors, W=W)
    AW = scaled_modes(moved, x.A)
    rest = x.r - (AW @ beliefs.mean[:, None, :, None])[..., 0]
    g = (beliefs.Qi @ rest[..., None])[..., 0]
    H = beliefs.Qi @ AW
    C = (H @ beliefs.cov[:, None]) @ H.swapaxes(-1, -2) - beliefs.Qi
    C = C + g[..., :, None] * g[..., None, :]  # E[Q^-1 (r - A W a)(...)' Q^-1] - Q^-1
    count = np.maximum(x.seen.sum(0), 1)[:, None]
    along = np.einsum("vpji,vpjk,vpki->pi", x.A, C, x.A, optimize=True)
    D = factors.D + factors.D**2 * along / count
    excess = (x.noise * np.trace(C, axis1=-2, axis2=-1))[x.seen].mean() / x.r.shape[-1]
    q = factors.q + factors.q**2 * excess
    return Factors(W, np.maximum(D, LEAST_VARIANCE), max(float(q), LEAST_VARIANCE))


def _better_modes(factors: Factors, x: Visible, b: Beliefs) -> Floats:
    """Weighted regression of the residuals on the amplitudes, point by point, (R, M, n)."""
    R, M, n = factors.W.shape
    second = b.cov + b.mean[:, :, None] * b.mean[:, None, :]
    back = x.A.swapaxes(-1, -2) @ b.Qi
    P = (back @ x.A).reshape(len(x), M * n * n)
    left = (P.T @ second.reshape(len(x), R * R)).reshape(M, n, n, R, R)
    left = left.transpose(0, 1, 3, 2, 4).reshape(M, n * R, n * R) + MODE_PRIOR * np.eye(n * R)
    pull = (back @ x.r[..., None]).reshape(len(x), M * n)
    right = (pull.T @ b.mean).reshape(M, n * R, 1)
    return np.linalg.solve(left, right)[..., 0].reshape(M, n, R).transpose(2, 0, 1)


def widen(factors: Factors, x: Visible, rank: int) -> Factors:
    """Add modes up to `rank`: the leading components of what the present ones leave over."""
    b = believe(factors, x)
    left = (x.A.swapaxes(-1, -2) @ (b.Qi @ b.rest(x)[..., None]))[..., 0]
    scale = np.sqrt(factors.D)
    more = rank - factors.rank
    found = leading_components((scale * left).reshape(len(x), -1), more)
    W = np.zeros((more, *factors.D.shape))
    W[: len(found)] = found.reshape(-1, *factors.D.shape)
    return replace(factors, W=np.concatenate([factors.W, scale * W]))


def leading_components(rows: Floats, count: int) -> Floats:
    """Directions of greatest mean square of rows (N, K), scaled to it, (at most count, K).

    By subspace iteration from a fixed start: a few are wanted, and K may be large.
    """
    start = np.random.default_rng(0).standard_normal((rows.shape[1], count + 8))
    basis = np.linalg.qr(start)[0]
    for _ in range(6):
        basis = np.linalg.qr(rows.T @ (rows @ basis))[0]
    inside = rows @ basis
    square, turn = np.linalg.eigh(inside.T @ inside / len(rows))
    best = np.argsort(-square)[:count]
    return np.sqrt(np.maximum(square[best], 0.0))[:, None] * (basis @ turn[:, best]).T


def run_em(factors: Factors, x: Visible, steps: int) -> Factors:
    """Alternate beliefs and improvement."""
    for _ in range(steps):
        factors = improve(factors, x, believe(factors, x))
    return factors


def extend(factors: Factors, beliefs: Beliefs, x: Visible, steps: int = 5) -> Factors:
    """Modes and remainder at other points of the same visits, given the amplitudes.

    Args:
        factors: Learned at some points; gives rank and noise.
        beliefs: Amplitudes of the visits, from those points.
        x: The same visits at the points wanted.
        steps: Rounds of improvement with the amplitudes held.
    """
    _, M, n = x.r.shape
    here = Factors(np.zeros((factors.rank, M, n)), np.ones((M, n)), factors.q)
    for _ in range(steps):
        Qi, _ = point_precision(here, x)
        held = replace(beliefs, Qi=Qi)
        here = replace(improve(here, x, held), q=factors.q)
    return here
