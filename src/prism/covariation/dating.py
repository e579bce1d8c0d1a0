"""One intrinsic time a shape, with the points' covariation taken into account."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from prism.covariation.factors import point_precision, scaled_modes
from prism.covariation.learn import Covariation
from prism.typing import Floats, Shapes, Times

ROUNDS = 2  # of new weights; each is followed by a step with the weights held
REACH = 0.08  # most of the searched span in one step


class Reading(Protocol):
    """The population at the template, one time a shape."""

    def __call__(self, tau: Times) -> tuple[Shapes, Floats, Shapes]:
        """Mu (N, M, n), Sigma (N, M, n, n) and mu_t (N, M, n) at times tau (N,)."""
        ...

    def mean(self, tau: Times) -> Shapes:
        """Mu (N, M, n) alone."""
        ...


@dataclass(frozen=True)
class GlobalTimes:
    """Times of whole shapes.

    Attributes:
        tau: (N,) estimate.
        se: (N,) its error from measurement, from what points do by themselves, and from modes as
            far as they are not tempo.
        spread: (N,) standard deviation of tau - t among people, by the learned covariance.
    """

    tau: Times
    se: Times
    spread: Times


def date_shapes(
    how: Covariation, d: Shapes, read: Reading, start: Times, span: tuple[float, float],
    modes: float | Floats,
) -> GlobalTimes:  # fmt: skip
    """[Eq. pooled-tau] Solve mu_t' C^-1 (d - mu) = 0 with C = Q + A W diag(modes) W' A'.

    Args:
        how: What was learned.
        d: (N, M, n) displacements; NaN where missing.
        read: The population at the template.
        start: (N,) first guess; NaN stays unknown.
        span: Times searched.
        modes: Share of the modes' variance that counts against a point, of all or of each (R,),
            0 to 1: at 0 points are independent given tau, at 1 they co-vary as people do.
    """
    tau = start.copy()
    known = ~np.isnan(start)
    tau[~known] = span[0]
    reach, shapes = REACH * (span[1] - span[0]), np.nan_to_num(d)
    for _ in range(ROUNDS):
        step, se, spread, weight = _score(how, d, read, tau, modes)
        tau = np.clip(tau + np.clip(step, -reach, reach), *span)
        step = (weight * (shapes - read.mean(tau))).sum((1, 2))
        tau = np.clip(tau + np.clip(step, -reach, reach), *span)
    unknown = np.where(known, 0.0, np.nan)
    return GlobalTimes(tau + unknown, se + unknown, spread + unknown)


def _score(
    how: Covariation, d: Shapes, read: Reading, tau: Times, modes: float | Floats
) -> tuple[Times, Times, Times, Shapes]:
    """Scoring step, standard error, spread and weights (N, M, n) of the residuals, at tau."""
    mu, Sigma, mu_t = read(tau)
    x = how.visible(d - mu, Sigma)
    pace = np.where(x.seen[..., None], mu_t, 0.0)
    Qi = point_precision(how.factors, x)
    w = (Qi @ pace[..., None])[..., 0]  # Q^-1 mu_t
    AW = scaled_modes(how.factors, x.A)
    cross = (w[..., None] * AW).sum((1, 2))  # W'A'Q^-1 mu_t
    if np.any(modes):
        AW = np.sqrt(modes) * AW
        inner = np.einsum("vpir,vpis->vrs", AW, Qi @ AW, optimize=True) + np.eye(AW.shape[-1])
        back = np.linalg.solve(inner, (np.sqrt(modes) * cross)[..., None])
        w = w - (Qi @ (AW @ back[:, None]))[..., 0]  # C^-1 mu_t
        cross = (w[..., None] * scaled_modes(how.factors, x.A)).sum((1, 2))
    info = np.maximum((w * pace).sum((1, 2)), 1e-300)
    weight = w / info[:, None, None]
    shared = np.square(cross / info[:, None])
    own = np.maximum(1 / info - (modes * shared).sum(-1), 0.0)  # 1 / info = w'Cw of all together
    strange = (shared * np.square(how.traits)).sum(-1)
    step = (weight * x.r).sum((1, 2))
    return step, np.sqrt(own + strange), np.sqrt(own + shared.sum(-1)), weight
