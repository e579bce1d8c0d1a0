"""How good a correspondence is: distance to the surfaces, round trips, folds, outliers.

All of it is measured on the shapes' own samples; no truth is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial import KDTree

from prism.cohort import SDFSamples
from prism.cohort.files import read_arrays
from prism.errors import CohortError
from prism.registration.core import Registration
from prism.registration.maps import Maps
from prism.typing import Floats, Points, Shapes, Strings

FILE = "quality.npz"
_ARRAYS = ("residual", "round_trip", "reverse", "folds", "size", "outlier")
PROBES = 1000  # surface points a shape for the round trip from the shape
NEIGHBOURS = 6
OUTLIER = 5.0  # robust standard deviations above the median
FEWEST = 8  # shapes among which one can stand out
POOR = 0.03  # of the size: beyond it, on average, shapes are not in correspondence
BAND = 0.1  # how far from the template folds are looked for, in common units


@dataclass(frozen=True)
class Quality:
    """Quality of N shapes of M points, in the length unit.

    Attributes:
        residual: (N, M) distance of every carried point from its shape's surface.
        round_trip: (N,) mean |Phi_bwd(Phi_fwd(y)) - y| over points of the shape's surface.
        reverse: (N,) mean |Phi_fwd(Phi_bwd(p)) - p| over the template, at the shape's size.
        folds: (N,) share of points on and around the template at which Phi_bwd folds space.
        size: (N,) twice the rms radius of each shape.
        outlier: (N,) True where a shape is registered much worse than the others.
        length_unit: Unit of the lengths.
        who: (N,) names of the shapes, where they are known.
    """

    residual: Floats
    round_trip: Floats
    reverse: Floats
    folds: Floats
    size: Floats
    outlier: np.ndarray
    length_unit: str = ""
    who: Strings = field(default_factory=lambda: np.empty(0, dtype=np.str_))

    def summary(self) -> dict[str, Any]:
        """The figures of a report: lengths in the unit and as a share of the shapes' size."""
        share = self.residual / self.size[:, None]
        figures = {
            "residual": _figures(self.residual, share),
            "round_trip": _figures(self.round_trip, self.round_trip / self.size),
            "reverse": _figures(self.reverse, self.reverse / self.size),
        }
        return {
            "shapes": len(self.size),
            "points": self.residual.shape[1],
            "length_unit": self.length_unit,
            "size": float(self.size.mean()),
            **figures,
            "folds": float(self.folds.mean()),
            "outliers": np.flatnonzero(self.outlier).tolist(),
        }

    @property
    def poor(self) -> bool:
        """True where the whole registration missed its shapes, as when training went astray."""
        off = self.residual.mean(-1), self.round_trip, self.reverse
        return any(float((value / self.size).mean()) > POOR for value in off)

    def rows(self) -> list[dict[str, Any]]:
        """The figures of each shape."""
        return [
            {
                "residual": float(self.residual[i].mean()),
                "round_trip": float(self.round_trip[i]),
                "folds": float(self.folds[i]),
                "outlier": bool(self.outlier[i]),
            }
            for i in range(len(self.size))
        ]

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything a figure may draw, by name."""
        return {name: getattr(self, name) for name in _ARRAYS}


def read_quality(folder: Path, length_unit: str = "") -> Quality | None:
    """What `prism register` wrote beside a cohort about its correspondence; None without it."""
    file = folder / FILE
    if not file.is_file():
        return None
    stored = read_arrays(file)
    try:
        who = np.char.add(np.char.add(stored["subject"], ", "), stored["visit"])
        return Quality(*(stored[name] for name in _ARRAYS), length_unit=length_unit, who=who)
    except KeyError as error:
        raise CohortError(
            f"{file}: {error.args[0]} is missing.", "Register the cohort again."
        ) from error


def _figures(value: Floats, share: Floats) -> dict[str, float]:
    return {
        "mean": float(value.mean()),
        "median": float(np.median(value)),
        "p95": float(np.quantile(value, 0.95)),
        "mean_share": float(share.mean()),
        "p95_share": float(np.quantile(share, 0.95)),
    }


def quality(
    registration: Registration, maps: Maps, samples: Sequence[SDFSamples], seed: int = 0
) -> Quality:
    """Judge the correspondence of shapes with the shapes themselves."""
    mesh = registration.mesh.points
    carried = maps.from_template(mesh)
    residual = np.stack([surface_distance(s, y) for s, y in zip(samples, carried, strict=True)])
    size = maps.similarity.size
    reverse = np.linalg.norm(maps.to_template(carried) - mesh, axis=-1).mean(-1) * size
    noise = BAND * np.random.default_rng(seed).standard_normal(mesh.shape)
    folds = fold_share(maps.determinants(np.concatenate([mesh, mesh + noise])))
    return Quality(
        residual,
        round_trip(maps, samples),
        reverse,
        folds,
        size,
        stands_out(residual.mean(-1) / size) | stands_out(reverse / size) | (folds > 0.01),
        registration.length_unit,
    )


def round_trip(maps: Maps, samples: Sequence[SDFSamples]) -> Floats:
    """(N,) mean |Phi_bwd(Phi_fwd(y)) - y| over surface points y of each shape."""
    count = min(PROBES, *(len(s.surface) for s in samples))
    y = np.stack([s.surface[:count] for s in samples]).astype(np.float64)
    back: Shapes = maps.from_template(maps.to_template(y))
    return np.linalg.norm(back - y, axis=-1).mean(-1)


def fold_share(determinants: Floats) -> Floats:
    """[Eq. folds] (N,) share of points with det J <= 0, of determinants (N, P)."""
    return (determinants <= 0).mean(-1)


def stands_out(value: Floats) -> np.ndarray:
    """(N,) True where a value lies far above the others: 5 robust standard deviations."""
    if len(value) < FEWEST:
        return np.zeros(len(value), dtype=bool)
    middle = np.median(value)
    spread = 1.4826 * np.median(np.abs(value - middle))
    return value > middle + OUTLIER * max(spread, 0.1 * middle)


def surface_distance(samples: SDFSamples, points: Points) -> Floats:
    """(P,) distance of points from a surface known by samples with normals.

    Heights over the nearest samples are averaged, the near ones most, each along the mean of the
    sample's normal and the normal here: zero on a plane and on a ball, wherever the samples lie.
    """
    k = min(NEIGHBOURS, len(samples.surface))
    distance, nearest = KDTree(samples.surface).query(points, k=k)
    distance, nearest = distance.reshape(len(points), k), nearest.reshape(len(points), k)
    apart = points[:, None] - samples.surface[nearest]
    weight = np.exp(-((2 * distance / np.maximum(distance[:, -1:], 1e-30)) ** 2))[..., None]
    weight = weight / weight.sum(1, keepdims=True)
    normals = samples.normals[nearest]
    here = (weight * normals).sum(1, keepdims=True)
    here = here / np.maximum(np.linalg.norm(here, axis=-1, keepdims=True), 1e-30)
    return np.abs((weight * apart * (normals + here) / 2).sum((-1, -2)))
