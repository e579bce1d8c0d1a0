"""What lasts of a person's deviation from one visit to the next, learned from repeat visits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import lsq_linear

from prism.covariation.factors import Beliefs, Factors, explained
from prism.covariation.small import times, whole
from prism.covariation.visible import Visible
from prism.typing import Floats, Strings, Times

SPANS = (np.inf, 4.0, 2.0, 1.0, 0.5, 0.25, 0.125)  # of the age range
MOST_LASTING = 0.999
SHARES = 1 - np.geomspace(MOST_LASTING, 1 - MOST_LASTING, 41)  # that a mode may keep
LEAST_KNOWN = 1e-6  # of an amplitude's variance
NEAR, AGES = 0.1, 65  # of the age range: visits at nearly the same age; ages told apart
ROUNDS = 12
PRIOR_PAIRS = 4.0  # weight of the prior, in pairs of visits
MOST_PAIRS = 3000


@dataclass(frozen=True)
class Persistence:
    """[Eq. persistence] Correlation over a lag: share exp(-lag / span), and one at no lag.

    Attributes:
        share: (R + 2,) of every mode, of the remainder, of the noise.
        span: (R + 2,) time unit; infinite where nothing fades.
    """

    share: Floats
    span: Floats

    def correlation(self, part: int, t: Times, s: Times) -> Floats:
        """Correlation of one part between times t (..., T) and s (..., S), (..., T, S)."""
        lag = np.abs(t[..., :, None] - s[..., None, :])
        return np.where(lag == 0, 1.0, self.share[part] * np.exp(-lag / self.span[part]))


def repeat_visits(subject: Strings, t: Times) -> np.ndarray:
    """Pairs of visits of one person at different ages, (P, 3): two rows and the person's number."""
    _, owner = np.unique(subject, return_inverse=True)
    found = [np.empty((0, 3), dtype=int)]
    for person in range(owner.max(initial=-1) + 1):
        rows = np.flatnonzero(owner == person)
        i, j = np.triu_indices(len(rows), 1)
        found.append(np.stack([rows[i], rows[j], np.full(len(i), person)], axis=1))
    pairs = np.concatenate(found)
    pairs = pairs[t[pairs[:, 0]] != t[pairs[:, 1]]]
    keep = np.linspace(0, len(pairs) - 1, min(len(pairs), MOST_PAIRS)).round().astype(int)
    return pairs[keep]


def learn_persistence(
    factors: Factors, x: Visible, b: Beliefs, subject: Strings, t: Times, tempo: Floats
) -> Persistence:
    """Fit shares and spans to what is believed of one person at two visits.

    Amplitudes by their likelihood: where they last, two visits nearly agree, and their difference
    tells it far better than their product does. Remainder and noise, of many points each, by
    products.

    Args:
        factors: The modes.
        x: Visits of the training cohort.
        b: Their beliefs.
        subject: (N,) whose they are.
        t: (N,) their ages.
        tempo: (R,) share of every mode that is tempo: what lasts where no repeat visit says more.
    """
    R = factors.rank
    prior = np.append(tempo, [0.0, 0.0])
    pairs = repeat_visits(subject, t)
    if not len(pairs):
        return Persistence(prior, np.full(R + 2, np.inf))
    i, j, person = pairs.T
    weight = _steps_a_pair(np.bincount(person)[person])
    lag, spans = np.abs(t[i] - t[j]), np.ptp(t) * np.array(SPANS)
    known = 1 - np.diagonal(b.cov, axis1=1, axis2=2)
    share, span = prior.copy(), np.full(R + 2, np.inf)
    amplitude = _comparable(b.mean, known, t, i, j, weight)
    for r in range(R):
        found = amplitude[i, r], amplitude[j, r], known[i, r], known[j, r]
        share[r], span[r] = _fit_mode(*found, lag, weight, spans, prior[r])
    y, G = _pointwise_products(factors, x, b, i, j)
    share[R:], span[R:] = _fit(y, G, lag, weight, spans, prior[R:])
    return Persistence(share, span)


def _comparable(
    mean: Floats, known: Floats, t: Times, i: np.ndarray, j: np.ndarray, weight: Floats
) -> Floats:
    """Amplitudes (N, R) over their size about the age of the visit, from their middle there.

    Where the field's mean or spread is off at some ages, a deviation that lasts seems to come and
    go. Visits i about an age are compared with others j of the same people (P,): few people come
    at an age, and their average is not everybody's. A few pairs are not made to agree: beforehand
    middle and size are right, as if so many pairs of the prior had shown it.
    """
    i, j, weight = np.concatenate([i, j]), np.concatenate([j, i]), np.tile(weight, 2)
    ages = np.linspace(t.min(), t.max(), AGES)
    near = weight * np.exp(-0.5 * np.square((ages[:, None] - t[i]) / (NEAR * np.ptp(t))))
    heard = near.sum(axis=1, keepdims=True) + PRIOR_PAIRS
    between = np.stack([np.interp(t, ages, one) for one in np.eye(AGES)], axis=1)

    def about(values: Floats, beforehand: float) -> Floats:
        return between @ ((near @ values + PRIOR_PAIRS * beforehand) / heard)

    size, middle = np.ones_like(mean), np.zeros_like(mean)
    for _ in range(ROUNDS):  # whole steps would swing where there are two ages
        own = (mean - middle) / size
        left = mean[i] - (known * size)[i] * own[j]
        square = known[i] * (1 - known[i] + known[i] * (own[j] ** 2 + 1 - known[j]))
        found = about(np.square(mean - middle)[i], 1.0) / about(square, 1.0)
        middle = (middle + about(left, 0.0)) / 2
        size = np.sqrt(size * np.sqrt(found))
    own = (mean - middle) / size
    own = own - own.mean(axis=0)
    return own * np.sqrt(known.mean(axis=0) / np.maximum(np.square(own).mean(axis=0), LEAST_KNOWN))


def _steps_a_pair(pairs: np.ndarray) -> Floats:
    """Steps from visit to visit over pairs of visits, of people with so many pairs: 2 / visits."""
    return 4 / (1 + np.sqrt(1 + 8 * pairs))


def _fit_mode(
    a: Floats, b: Floats, known_a: Floats, known_b: Floats, lag: Floats, weight: Floats,
    spans: Floats, prior: float,
) -> tuple[float, float]:  # fmt: skip
    """Share and span by which one amplitude lasts, from what is believed of it at two visits (P,).

    A belief has the variance `known`, of an amplitude's 1, and two of them the covariance
    rho known_a known_b. The likeliest span, half of the prior being on none; the mean of the share.
    """
    known_a, known_b = np.maximum(known_a, LEAST_KNOWN), np.maximum(known_b, LEAST_KNOWN)
    keep = SHARES[:, None]
    counts = PRIOR_PAIRS * (prior * np.log(SHARES) + (1 - prior) * np.log(1 - SHARES))
    log = np.empty((len(spans), len(SHARES)))
    for k, span in enumerate(spans):
        shared = keep * np.exp(-lag / span) * known_a * known_b
        det = known_a * known_b - shared**2
        square = (known_b * a**2 - 2 * shared * a * b + known_a * b**2) / det
        log[k] = counts - 0.5 * ((np.log(det) + square) @ weight)
        log[k] -= 0.0 if np.isinf(span) else np.log(len(spans) - 1)
    chance = np.exp(log - log.max())
    best = int(chance.sum(axis=1).argmax())
    return float(chance[best] @ SHARES / chance[best].sum()), float(spans[best])


def _pointwise_products(
    factors: Factors, x: Visible, b: Beliefs, i: np.ndarray, j: np.ndarray
) -> tuple[Floats, Floats]:
    """Products y (P, 2) along remainder and noise, and what shares c expect of them, y = G c.

    With h = Q^-1 (r - A W a), E[h_i h_j'] = Q_i^-1 (c_D A_i D A_j' + c_E nu_i nu_j 1) Q_j^-1.
    """
    Qi = whole(b.weighed.Qi)
    h = whole(times(b.weighed.Qi, x.r_parts - explained(factors, x, b.mean)), axes=1)
    root, nu = np.sqrt(factors.D), np.sqrt(factors.q * x.noise)[..., None]
    AD = x.A * root[..., None, :]
    hD, hE = (AD.swapaxes(-1, -2) @ h[..., None])[..., 0], nu * h
    QD = AD.swapaxes(-1, -2) @ Qi
    DD, DE, EE = QD @ AD, QD * nu[..., None], Qi * (nu**2)[..., None]
    seen = (x.seen[i] & x.seen[j])[..., None]
    y = [_mean_product(v[i] * seen, v[j]) for v in (hD, hE)]
    dd, de, ee = (_mean_product(v[i] * seen[..., None], v[j]) for v in (DD, DE, EE))
    return np.stack(y, -1), np.stack([np.stack([dd, de], -1), np.stack([de, ee], -1)], -2)


def _mean_product(a: Floats, b: Floats) -> Floats:
    return (a * b).reshape(len(a), -1).sum(-1) / a.shape[1]


def _fit(
    y: Floats, G: Floats, lag: Floats, weight: Floats, spans: Floats, prior: Floats
) -> tuple[Floats, float]:
    """Least squares of y (P, k) = exp(-lag / span) G (P, k, k) c with 0 <= c <= 1, best span."""
    k = y.shape[1]
    root = np.sqrt(weight)[:, None]
    hold = np.sqrt(PRIOR_PAIRS * np.square(root[..., None] * G).sum() / k / weight.sum()) + 1e-12
    best = np.inf, prior, np.inf
    for span in spans:
        fade = (root * np.exp(-lag / span)[:, None])[..., None]
        left = np.concatenate([(fade * G).reshape(-1, k), hold * np.eye(k)])
        right = np.concatenate([(root * y).ravel(), hold * prior])
        fit = lsq_linear(left, right, (0.0, MOST_LASTING))
        if fit.cost < best[0] * (1 - 1e-3):  # a shorter span must earn its place
            best = fit.cost, fit.x, float(span)
    return best[1], best[2]
