"""Pooled intrinsic time of one anatomy beside the likelihood of each point, by number of points."""

from __future__ import annotations

import numpy as np
from common import report, seconds

from prism.covariation import Covariation, Factors, Persistence
from prism.intrinsic import TimeTable, mle_time
from prism.model.state import date
from prism.simulate import starman

RANK = 4


def covariation(points: int) -> Covariation:
    """Smooth modes of the usual number; their values do not change the cost."""
    rng = np.random.default_rng(0)
    W = 0.3 * rng.standard_normal((RANK, points, 2))
    lasting = Persistence(np.full(RANK + 2, 0.9), np.full(RANK + 2, np.inf))
    return Covariation(Factors(W, np.ones((points, 2)), 1.0), lasting, 0.95, 0.002, np.ones(RANK))


def measure(points: int) -> dict[str, object]:
    """Milliseconds of one shape, each road in the same run."""
    study = starman("global", subjects=1, seed=0, noise=0.01, resolution=points)
    shapes = study.correspondence[:1]
    table = TimeTable.of(study.law, shapes.template, (-0.5, 1.5))
    how, d = covariation(points), shapes.displacements
    alone = 1e3 * seconds(lambda: mle_time(table, d), 7)
    pooled = 1e3 * seconds(lambda: date(how, table, d, 0.0), 7)
    modes = 1e3 * seconds(lambda: date(how, table, d, 1.0), 7)
    return {
        "points": points,
        "likelihood, every point (ms)": alone,
        "pooled (ms)": pooled,
        "pooled, modes counted (ms)": modes,
        "pooled over likelihood": pooled / alone,
        "pooled us a point": 1e3 * pooled / points,
    }


if __name__ == "__main__":
    report("pooled_time", [measure(points) for points in (1_000, 10_000, 100_000)])
