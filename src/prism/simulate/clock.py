"""Developmental clocks: how far individuals run ahead of or behind chronological time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from prism.cohort import Visits
from prism.typing import ArrayLike, Floats, Strings, Times


@dataclass(frozen=True)
class LogisticSpread:
    """Temporal spread of a population that rises from one level to another.

    sigma_tau(t) = low + (high - low) / (1 + exp(-(t - midpoint) / width))
    """

    low: float
    high: float
    midpoint: float
    width: float

    def __call__(self, t: ArrayLike) -> ArrayLike:
        """[Eq. logistic-spread] sigma_tau(t), for arrays and tensors alike."""
        return self.low + (self.high - self.low) / (1 + np.e ** (-(t - self.midpoint) / self.width))


def intrinsic_time(t: Times, z: Floats, spread: LogisticSpread) -> Floats:
    """[Eq. tempo] tau = t + z sigma_tau(t): one z a subject, kept over its visits."""
    return t + z * spread(t)


def draw_visits(
    subjects: int, most: int, rng: np.random.Generator
) -> tuple[np.ndarray, Times, Floats]:
    """Draw 1 to `most` visits a subject at uniform times in [0, 1], and one z a subject.

    Returns:
        (N,) subject number of each visit, (N,) its time (rising within a subject), (N,) its z.
    """
    counts = rng.integers(1, most + 1, size=subjects)
    owner = np.repeat(np.arange(subjects), counts)
    t = rng.uniform(size=len(owner))
    t = t[np.lexsort((t, owner))]
    return owner, t, rng.standard_normal(subjects)[owner]


def drifting(
    owner: np.ndarray, t: Times, z: Floats, drift: float, rng: np.random.Generator
) -> Floats:
    """Let each subject's z wander as a stationary Ornstein-Uhlenbeck process of unit variance.

    The correlation of two visits is exp(-drift |dt|), exact for any gaps; drift 0 keeps z.

    Args:
        owner: (N,) subject number of each visit, a subject's visits side by side.
        t: (N,) its time, rising within a subject.
        z: (N,) the subject's z, kept at its first visit.
        drift: Rate of forgetting, in 1 / time unit.
        rng: Source of the steps.

    Returns:
        (N,) z of each visit.
    """
    keep = np.exp(-drift * np.abs(np.diff(t, prepend=t[0])))
    # z_i = rho z_(i-1) + sqrt(1 - rho^2) e_i with rho = exp(-drift dt)
    step = np.sqrt(1 - keep**2) * rng.standard_normal(len(t))
    z = z.copy()
    for i in np.flatnonzero(np.diff(owner) == 0) + 1:
        z[i] = keep[i] * z[i - 1] + step[i]
    return z


def visits_table(owner: np.ndarray, t: Times, columns: Mapping[str, Strings]) -> Visits:
    """Name subjects s0000, s0001, ... and their visits v1, v2, ...; every entry is (N,)."""
    first = np.searchsorted(owner, owner)
    return Visits(
        subject=np.array([f"s{i:04d}" for i in owner]),
        visit=np.array([f"v{i + 1}" for i in np.arange(len(owner)) - first]),
        t=t,
        columns=columns,
    )
