"""Signed distances of meshes: trimesh against libigl, and a cohort of 200 over the cores."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from common import report, seconds

from prism.cohort import Shape, ShapeFile, write_shape
from prism.preprocess import SamplingConfig, sample_cohort, sample_sdf, signed_distance

MESHES, POINTS, ROWS, COLUMNS = 200, 20_000, 157, 160  # 49,920 triangles a mesh


def bumpy(seed: int) -> Shape:
    """A closed surface with bumps, about as irregular as an organ."""
    rng = np.random.default_rng(seed)
    theta = np.linspace(0, np.pi, ROWS + 1)[1:-1, None]
    phi = 2 * np.pi * np.arange(COLUMNS)[None] / COLUMNS
    radius = 50.0 + sum(
        rng.normal(0, 8.0 / (k + 1)) * np.sin(k * theta + rng.uniform(0, 6)) * np.cos(k * phi)
        for k in range(1, 6)
    )
    side = np.sin(theta) * radius
    ring = np.stack([side * np.cos(phi), side * np.sin(phi), np.cos(theta) * radius], axis=-1)
    poles = np.stack([ring[0].mean(axis=0), ring[-1].mean(axis=0)])
    return Shape(np.concatenate([ring.reshape(-1, 3), poles]), _cells(len(ring)), "mm")


def _cells(rows: int) -> np.ndarray:
    i, j = np.meshgrid(np.arange(rows - 1), np.arange(COLUMNS), indexing="ij")
    a, b = i * COLUMNS + j, i * COLUMNS + (j + 1) % COLUMNS
    quads = [np.stack([a, a + COLUMNS, b], -1), np.stack([b, a + COLUMNS, b + COLUMNS], -1)]
    around, last, top = np.arange(COLUMNS), (rows - 1) * COLUMNS, rows * COLUMNS
    ahead = (around + 1) % COLUMNS
    lids = [
        np.stack([np.full(COLUMNS, top), around, ahead], -1),
        np.stack([np.full(COLUMNS, top + 1), last + ahead, last + around], -1),
    ]
    return np.concatenate([part.reshape(-1, 3) for part in (*quads, *lids)])


def against_trimesh(count: int) -> dict[str, object]:
    """Both on the points of one sample; they must agree in size and, on a closed mesh, in sign."""
    import trimesh

    shape = bumpy(0)
    share = SamplingConfig(surface=1, near=2 * count // 3, box=count - 2 * count // 3)
    query = sample_sdf(shape, share).points.astype(np.float64)
    mesh = trimesh.Trimesh(shape.points, shape.cells, process=False)
    start = time.perf_counter()
    theirs = -trimesh.proximity.signed_distance(mesh, query)
    slow = time.perf_counter() - start
    ours = signed_distance(shape.points, shape.cells, query)
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs), atol=1e-6)
    fast = seconds(lambda: signed_distance(shape.points, shape.cells, query), 5)
    return {
        "job": f"distances of {count} points to one mesh of {len(shape.cells)} faces",
        "trimesh s": slow,
        "prism s": fast,
        "ratio": slow / fast,
        "signs that differ": float((np.sign(ours) != np.sign(theirs)).mean()),
    }


def cohort(meshes: int) -> dict[str, object]:
    """Read and sample a cohort of files, nothing cached; then once more from the cache."""
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for i in range(meshes):
            files.append(ShapeFile(Path(folder) / f"{i}.ply"))
            write_shape(bumpy(i), files[-1].path)
        times = []
        for _ in range(2):
            start = time.perf_counter()
            samples = sample_cohort(files, cache=Path(folder) / "cache")
            times.append(time.perf_counter() - start)
    points = sum(len(s.surface) + len(s.points) for s in samples) // meshes
    return {
        "job": f"{meshes} mesh files, {points} points each, all cores",
        "prism s": times[0],
        "ms a mesh": 1e3 * times[0] / meshes,
        "again, cached s": times[1],
    }


if __name__ == "__main__":
    quick = "--quick" in sys.argv
    report("sdf", [against_trimesh(2000 if quick else POINTS)])
    report("sdf_cohort", [cohort(20 if quick else MESHES)])
