"""Populations that grow along one direction, with exact centiles: stand-ins for a trained model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtri

from prism.cohort import Correspondence, Visits
from tests.problems.solids import box_frame, sphere


@dataclass(frozen=True)
class Growing:
    """Shapes template + tau way with tau ~ N(t, (s0 + s1 t)^2), the same tau at every point."""

    template: np.ndarray
    way: np.ndarray
    cells: np.ndarray | None = None
    regions: Mapping[str, np.ndarray] = field(default_factory=dict)
    s0: float = 0.05
    s1: float = 0.1
    ages: tuple[float, float] = (0.0, 2.0)
    name: str = "growing"
    time_unit: str = "years"
    length_unit: str = "mm"
    provenance: Mapping[str, object] = field(default_factory=dict)

    @property
    def dimension(self) -> int:
        return self.template.shape[-1]

    def draw_shapes(self, t: float, count: int, seed: int) -> np.ndarray:
        z = np.random.default_rng(seed).standard_normal(count)
        return self.shapes(t + (self.s0 + self.s1 * t) * z)

    def shapes(self, tau: np.ndarray) -> np.ndarray:
        return self.template + np.asarray(tau)[:, None, None] * self.way

    def mean_shapes(self, tau: np.ndarray) -> np.ndarray:
        return self.template + tau[..., None] * self.way

    def displacements(self, cohort: Correspondence) -> np.ndarray:
        return cohort.points - self.template

    def outside_ages(self, t: np.ndarray) -> np.ndarray:
        return (t < self.ages[0]) | (t > self.ages[1])

    def tau(self, level: np.ndarray, t: np.ndarray) -> np.ndarray:
        """(K, T) exact centiles of tau; those of anything rising in tau are its image."""
        return t + (self.s0 + self.s1 * t) * ndtri(np.asarray(level) / 100)[:, None]

    def cohort(self, tau: list[float], t: list[float]) -> Correspondence:
        """One subject `a` seen at these times, and one `b` seen once."""
        subject = [*["a"] * len(t), "b"]
        visits = Visits(subject, [f"v{k}" for k in range(len(subject))], [*t, self.ages[0]])
        stated = {"time_unit": self.time_unit, "length_unit": self.length_unit}
        return Correspondence(self.shapes([*tau, 0.0]), visits, template=self.template, **stated)


def growing_square() -> Growing:
    """A square of side 2 that grows by 10 % of its side a year."""
    frame = box_frame()
    regions = {"right": np.array([1, 2]), "top": np.array([2, 3])}
    return Growing(frame.points, 0.1 * frame.points, frame.cells, regions)


def growing_ball() -> Growing:
    """A ball of radius 1 that grows by 10 % of its radius a year; its top half is a region."""
    ball = sphere(detail=12)
    upper = np.flatnonzero(ball.points[:, 2] >= -1e-9)
    return Growing(ball.points, 0.1 * ball.points, ball.cells, {"upper": upper})
