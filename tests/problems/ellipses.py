"""Ellipses that grow: shapes whose registration is easy, and known up to sliding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from prism.cohort import SDFSamples, Shape
from prism.preprocess import SamplingConfig, sample_sdf
from prism.registration import RegistrationConfig

COUNTS = SamplingConfig(surface=600, near=600, box=300)
TINY = RegistrationConfig(
    code=4,
    width=24,
    hidden=1,
    template_width=24,
    template_hidden=1,
    template_omega=4.0,
    steps=250,
    shapes=6,
    surface=40,
    near=40,
    box=20,
    jacobians=20,
    learning_rate=1e-2,
    onto_steps=80,
    vertices=40,
)


def ellipse(a: float, b: float, centre: Sequence[float] = (0.0, 0.0), detail: int = 200) -> Shape:
    """An ellipse with half-axes a and b, counter-clockwise."""
    angle = 2 * np.pi * np.arange(detail) / detail
    points = np.stack([a * np.cos(angle), b * np.sin(angle)], -1) + centre
    index = np.arange(detail)
    return Shape(points, np.stack([index, np.roll(index, -1)], -1), "mm")


def axes(count: int) -> np.ndarray:
    """(count, 2) half-axes: from 10 x 6 to 20 x 15 mm."""
    return np.linspace((10.0, 6.0), (20.0, 15.0), count)


def ellipses(count: int = 6) -> list[SDFSamples]:
    """Samples of ellipses that grow, become rounder and drift, in millimetres."""
    shapes = [ellipse(a, b, (a, 2 * b)) for a, b in axes(count)]
    return [sample_sdf(shape, COUNTS, seed=0, key=str(i)) for i, shape in enumerate(shapes)]
