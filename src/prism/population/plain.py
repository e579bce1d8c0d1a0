"""A plain course of growth, which the mean of a small cohort leans on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from prism.cohort import Correspondence
from prism.course import Course
from prism.population.field import Units

ROWS = 65  # times tabulated over the training range


@dataclass(frozen=True)
class PlainCourse:
    """Splines in time of every point's displacement, tabulated over normalised time.

    Attributes:
        table: (K, m, n) at equidistant times from 0 to 1; with no rows where none is leant on.
    """

    table: Tensor

    @classmethod
    def of(cls, cohort: Correspondence, units: Units) -> PlainCourse:
        """Learn from a cohort, in the networks' units."""
        d = (cohort.displacements / units.displacement).reshape(len(cohort), -1)
        course = Course.fit_of_people(d, cohort.visits.t, cohort.visits.subject)
        values = course(units.t_first + units.t_range * np.linspace(0, 1, ROWS))
        return cls(torch.as_tensor(values, dtype=torch.float32).unflatten(1, cohort.template.shape))

    @classmethod
    def none(cls, points: int, n: int) -> PlainCourse:
        """Nothing to lean on."""
        return cls(torch.empty(0, points, n))

    def at(self, s: Tensor) -> tuple[Tensor, Tensor]:
        """Displacements (k, m, n) at normalised times s (k,), and (k, m) where they count."""
        place = s.clamp(0, 1) * (len(self.table) - 1)
        below = place.long().clamp(max=len(self.table) - 2)
        part = (place - below)[:, None, None]
        inside = ((s >= 0) & (s <= 1))[:, None].expand(-1, self.table.shape[1])
        return torch.lerp(self.table[below], self.table[below + 1], part), inside
