"""Factor analysis of residual fields whose signal and noise change with age, by EM.

The residual of one visit at point p is r = A (W a + xi) + e with amplitudes a ~ N(0, 1) shared by
all points, a remainder xi ~ N(0, D) of the point alone and measurement e ~ N(0, q nu^2 1).
A A' + nu^2 1 is the population's own Sigma, so what a mode looks like follows the age.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from prism.covariation.small import inverse_positive, product, times, whole
from prism.covariation.visible import Visible
from prism.typing import Floats

LEAST_VARIANCE = 1e-8
MODE_PRIOR = 1.0  # weight of W ~ N(0, 1), in visits
BLOCK = 1000  # points whose products of modes are held at once

Step = Callable[[Floats, Floats], Floats]  # factor of a variance, by found over expected and known


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
class Weighed:
    """Visits weighed by what their points do by themselves, Q = A D A' + (q nu^2 + tolerance^2) 1.

    Modes meet the data through G and h alone, so no array holds visits, points and modes at once.
    Components come first, see `prism.covariation.small`.

    Attributes:
        Qi: (n, n, N, M) inverse of Q; log_det: (N, M) of Q.
        G: (n, n, N, M) A' Q^-1 A.
        h: (n, N, M) A' Q^-1 r.
    """

    Qi: Floats
    log_det: Floats
    G: Floats
    h: Floats

    @classmethod
    def of(cls, factors: Factors, x: Visible) -> Weighed:
        """Weigh visits by the factors' remainder and noise."""
        Qi, log_det = _precision(factors, x)
        back = product(x.A_parts.swapaxes(0, 1), Qi)
        return cls(Qi, log_det, product(back, x.A_parts), times(back, x.r_parts))


@dataclass(frozen=True)
class Beliefs:
    """Posterior of the amplitudes given each visit by itself.

    Attributes:
        mean: (N, R); cov: (N, R, R).
        evidence: (N,) log density of the visit, up to a constant.
        weighed: The visits these come from.
    """

    mean: Floats
    cov: Floats
    evidence: Floats
    weighed: Weighed


def beside_modes(factors: Factors, x: Visible, more: float = 0.0) -> Floats:
    """What points do by themselves: A D A' + (q nu^2 + more) 1, (n, n, ..., M)."""
    Q = product(x.A_parts * _spread(factors.D.T, x), x.A_parts.swapaxes(0, 1))
    for i in range(len(Q)):
        Q[i, i] += factors.q * x.noise + more
    return Q


def _precision(factors: Factors, x: Visible) -> tuple[Floats, Floats]:
    """Q^-1 (n, n, ..., M) and log det Q (..., M)."""
    return inverse_positive(beside_modes(factors, x, x.tolerance**2))


def _spread(per_point: Floats, x: Visible) -> Floats:
    """Values (n, M) as (n, 1, ..., M), to multiply what has the visits' axes between."""
    return per_point.reshape(len(per_point), *[1] * (x.r.ndim - 2), -1)


def point_precision(factors: Factors, x: Visible) -> Floats:
    """Q^-1, (..., M, n, n)."""
    return whole(_precision(factors, x)[0])


def scaled_modes(factors: Factors, A: Floats) -> Floats:
    """A W, (..., M, n, R)."""
    return A @ factors.W.transpose(1, 2, 0)


def believe(factors: Factors, x: Visible) -> Beliefs:
    """[Eq. factor-posterior] Amplitudes by Gaussian conditioning: cov = (1 + W'A'Q^-1 A W)^-1."""
    w, R = Weighed.of(factors, x), factors.rank
    precision = np.tile(np.eye(R), (len(x), 1, 1))
    for p in range(0, len(factors.D), BLOCK):
        some = slice(p, p + BLOCK)
        pairs = _mode_pairs(factors.W[:, some])
        precision += np.tensordot(w.G[..., some], pairs, ((0, 1, 3), (0, 1, 2)))
    pull = np.tensordot(w.h, factors.W, ((0, 2), (2, 1)))
    cov = np.asarray(np.linalg.inv(precision), dtype=np.float64)
    mean = (cov @ pull[..., None])[..., 0]
    square = (x.r_parts * times(w.Qi, x.r_parts)).sum((0, 2)) - (pull * mean).sum(-1)
    log_det = np.where(x.seen, w.log_det, 0.0).sum(-1) + np.linalg.slogdet(precision)[1]
    return Beliefs(mean, cov, -0.5 * (square + log_det), w)


def explained(factors: Factors, x: Visible, mean: Floats) -> Floats:
    """A W a at amplitudes (N, R), (n, N, M)."""
    return times(x.A_parts, _combined(factors.W, mean))


def cautious(ratio: Floats, known: Floats) -> Floats:
    """EM's own factor of a variance: as far towards what was found as the data know it."""
    return 1 + known * (ratio - 1)


def bold(ratio: Floats, known: Floats) -> Floats:
    """[Eq. variance-step] The root of found over expected, however little the data know.

    It minorises the evidence as EM does, which never falls, and does not creep where a variance
    is far below the noise.
    """
    return np.sqrt(ratio)


def improve(factors: Factors, x: Visible, beliefs: Beliefs, step: Step = cautious) -> Factors:
    """M-step: modes, remainder and noise that better explain what is believed.

    With g = Q^-1 (r - A W a) and K = W cov W', a variance is found too large or too small by
    E[g g'] = Q^-1 A K A' Q^-1 + g g', of which Q^-1 is expected.
    """
    w, n = beliefs.weighed, len(x.r_parts)
    W = _better_modes(factors, x, beliefs) if factors.rank else factors.W
    a = _combined(W, beliefs.mean)
    K = np.tensordot(_mode_pairs(W), beliefs.cov, ((3, 4), (1, 2))).swapaxes(2, 3)
    pull = w.h - times(w.G, a)  # A' g
    found = ((product(w.G, K) * w.G).sum(1) + pull**2).sum(1).T
    seen = x.seen.sum(0)[:, None]
    D = _changed(factors.D, found, _diagonal(w.G).sum(1).T, seen, step)
    QA = product(w.Qi, x.A_parts)
    g = times(w.Qi, x.r_parts) - times(QA, a)
    trace = (product(QA, K) * QA).sum((0, 1)) + (g**2).sum(0)
    found, expected = ((x.noise * v)[x.seen].sum() for v in (trace, _diagonal(w.Qi).sum(0)))
    q = _changed(np.asarray(factors.q), found, expected, n * seen.sum(), step)
    return Factors(W, np.maximum(D, LEAST_VARIANCE), max(float(q), LEAST_VARIANCE))


def _changed(v: Floats, found: Floats, expected: Floats, seen: Floats, step: Step) -> Floats:
    """Variances v after a step; where nothing was seen, as before."""
    ratio = np.divide(found, expected, out=np.ones(v.shape), where=expected > 0)
    return v * step(ratio, v * expected / np.maximum(seen, 1))


def _better_modes(factors: Factors, x: Visible, b: Beliefs) -> Floats:
    """Weighted regression of the residuals on the amplitudes, point by point, (R, M, n)."""
    R, M, n = factors.W.shape
    left = np.tensordot(b.weighed.G, _second_moments(b), ((2,), (0,)))  # (n, n, M, R, R)
    left = left.transpose(2, 0, 3, 1, 4).reshape(M, n * R, n * R) + MODE_PRIOR * np.eye(n * R)
    right = np.tensordot(b.weighed.h, b.mean, ((1,), (0,)))  # (n, M, R)
    right = right.transpose(1, 0, 2).reshape(M, n * R, 1)
    W = np.asarray(np.linalg.solve(left, right), dtype=np.float64)
    return W.reshape(M, n, R).transpose(2, 0, 1)


def _diagonal(A: Floats) -> Floats:
    return np.stack([A[i, i] for i in range(len(A))])


def _combined(W: Floats, a: Floats) -> Floats:
    """W a, (n, N, M)."""
    return np.tensordot(W, a, ((0,), (1,))).transpose(1, 2, 0)


def _mode_pairs(W: Floats) -> Floats:
    """W_ri W_sj at every point, (n, n, M, R, R)."""
    V = W.transpose(2, 1, 0)
    return V[:, None, :, :, None] * V[None, :, :, None, :]


def widen(factors: Factors, x: Visible, rank: int) -> Factors:
    """Add modes up to `rank`: the leading components of what the present ones leave over."""
    b = believe(factors, x)
    left = whole(b.weighed.h - times(b.weighed.G, _combined(factors.W, b.mean)), axes=1)
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


def run_em(factors: Factors, x: Visible, steps: int, step: Step = cautious) -> Factors:
    """Alternate beliefs, improvement and scale."""
    for _ in range(steps):
        beliefs = believe(factors, x)
        factors = _to_unit_amplitudes(improve(factors, x, beliefs, step), beliefs)
    return factors


def _to_unit_amplitudes(factors: Factors, beliefs: Beliefs) -> Factors:
    """Modes as large as people go along them, so that amplitudes are N(0, 1) as they should be.

    The expansion of parameters that speeds EM: where thousands of points tell an amplitude, plain
    rounds hold it fast and hardly move the scale of its mode.
    """
    root = np.linalg.cholesky(_second_moments(beliefs).mean(0))
    return replace(factors, W=np.tensordot(root.T, factors.W, 1))


def _second_moments(b: Beliefs) -> Floats:
    """E[a a'] of every visit, (N, R, R)."""
    return b.cov + b.mean[:, :, None] * b.mean[:, None, :]


def extend(factors: Factors, beliefs: Beliefs, x: Visible, steps: int = 10) -> Factors:
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
        held = replace(beliefs, weighed=Weighed.of(here, x))
        here = replace(improve(here, x, held, bold), q=factors.q)
    return here
