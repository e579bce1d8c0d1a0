"""Developmental clocks: how far individuals run ahead of or behind chronological time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prism.typing import ArrayLike, Floats, Times


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
