"""Small cohorts and a model of each that trains in a second: for what must hold of any model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np

from prism.cohort import Correspondence, Visits
from prism.intrinsic import EncoderConfig
from prism.model import PRISM, core
from prism.population import PopulationConfig
from prism.simulate import starman
from prism.simulate.study import Study

CONFIG = PopulationConfig(
    width=16, hidden=1, omega_time=2.0, lattice=18, steps=40, shapes=16, members=1
)
ENCODER = EncoderConfig(width=16, hidden=1, steps=40, batch=512)


def tiny_cohort(seed: int = 0, **options: Any) -> Study:
    """A Starman study of 12 subjects and 24 points, with its truth."""
    return starman(subjects=12, seed=seed, noise=0.01, resolution=24, **options)


def cohort_in_space(seed: int = 0) -> Correspondence:
    """A triangulated tube of 16 points that lengthens and widens, 10 subjects x 3 visits, 3D."""
    rng = np.random.default_rng(seed)
    ring = np.arange(16) % 4
    tube = np.stack([np.cos(np.pi * ring / 2), np.sin(np.pi * ring / 2), np.arange(16) // 4], 1)
    t = np.sort(rng.uniform(10, 60, (10, 3)), axis=1).ravel()
    growth = (1 + t / 100)[:, None, None]
    shapes = growth * tube + 0.02 * rng.standard_normal((30, 16, 3))
    low = np.array([4 * r + i for r in range(3) for i in range(4)])
    nexts = np.array([4 * r + (i + 1) % 4 for r in range(3) for i in range(4)])
    triangles = [low, nexts, low + 4], [nexts, nexts + 4, low + 4]
    cells = np.concatenate([np.stack(corners, 1) for corners in triangles])
    visits = Visits(np.repeat([f"q{i}" for i in range(10)], 3), np.tile(["a", "b", "c"], 10), t)
    return Correspondence(shapes, visits, cells=cells, time_unit="weeks", length_unit="cm")


def fit_tiny(cohort: Correspondence, seed: int = 0, **options: Any) -> PRISM:
    """Fit the tiny model; `steps`, `members` and the options of `PRISM.fit` may be given."""
    given = {name: options.pop(name) for name in ("steps", "members") if name in options}
    config = replace(CONFIG, **given)
    with mock.patch.dict(core.ENCODER_PRESETS, {"fast": ENCODER}):
        return PRISM.fit(cohort, "fast", config=config, seed=seed, device="cpu", **options)
