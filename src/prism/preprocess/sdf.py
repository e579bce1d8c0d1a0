"""sample_sdf: points on and around one shape, with normals and signed distances."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from prism.cohort import SDFSamples, Shape
from prism.errors import CohortError, QueryError
from prism.preprocess.distance import signed_distance
from prism.preprocess.surface import sample_normals
from prism.runs import fingerprint

RECIPE = 2  # raise it when the same shape would be sampled otherwise: caches start afresh


@dataclass(frozen=True)
class SamplingConfig:
    """How many points to draw, and where.

    Attributes:
        surface: Points on the surface, uniform by area.
        near: Points near the surface: surface points moved by Gaussian noise.
        box: Points anywhere in the padded bounding box.
        band: Standard deviation of that noise, as a fraction of the box's diagonal.
        padding: How far the box reaches beyond the shape, as a fraction of its diagonal.
    """

    surface: int = 8000
    near: int = 8000
    box: int = 4000
    band: float = 0.01
    padding: float = 0.1

    def __post_init__(self) -> None:
        """Check that counts and fractions make sense."""
        for name, value in asdict(self).items():
            if not (np.isfinite(value) and value >= (1 if name == "surface" else 0)):
                raise QueryError(
                    f"{name} must be a {'count' if isinstance(value, int) else 'fraction'} of at "
                    f"least {1 if name == 'surface' else 0}. Got {value}.",
                    "Correct the sampling configuration.",
                )


DEFAULT = SamplingConfig()


def sample_sdf(
    shape: Shape, config: SamplingConfig = DEFAULT, seed: int = 0, key: str = ""
) -> SDFSamples:
    """Sample one surface (3D) or contour (2D).

    The same shape, configuration and seed give the same samples; different shapes draw
    independently.

    Args:
        shape: A shape as `read_shape` returns it, its cells facing outwards.
        config: How many points, and where.
        seed: Seed of the random numbers.
        key: What stands for the shape in the seed. Default: its fingerprint.

    Raises:
        CohortError: The shape has no inside: landmarks, or lines in space.
    """
    if shape.cells is None or shape.kind not in ("surface", "contour"):
        raise CohortError(
            f"{shape.kind} enclose nothing: they have no signed distance.",
            "Give a surface, or a contour in the plane.",
        )
    rng = np.random.default_rng(_entropy(seed, key or shape.fingerprint))
    low, high = shape.box
    diagonal = float(np.linalg.norm(high - low))
    surface, normals = sample_normals(shape.points, shape.cells, config.surface, rng)
    feet, _ = sample_normals(shape.points, shape.cells, config.near, rng)
    noise = config.band * diagonal * rng.standard_normal((config.near, shape.dimension))
    pad = config.padding * diagonal
    box = rng.uniform(low - pad, high + pad, (config.box, shape.dimension))
    # Rounded before measuring: distances belong to the points as they are stored.
    around = np.concatenate([feet + noise, box]).astype(np.float32)
    distance = signed_distance(shape.points, shape.cells, around)
    return SDFSamples(
        surface=surface.astype(np.float32),
        normals=normals.astype(np.float32),
        points=around,
        distance=distance.astype(np.float32),
        near=config.near,
        length_unit=shape.length_unit,
    )


def recipe(config: SamplingConfig, seed: int) -> str:
    """Digits of everything but the shape that decides the samples."""
    return fingerprint(RECIPE, asdict(config), seed)


def _entropy(seed: int, key: str) -> list[int]:
    return [seed, *key.encode()]
