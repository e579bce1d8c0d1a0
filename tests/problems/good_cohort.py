"""A small cohort folder with nothing wrong in it, and parts to make one that is broken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = "cohort"
TOML = 'name = "toy"\ntime_unit = "months"\nlength_unit = "mm"\n'
SUBJECTS, VISITS, POINTS = 12, 2, 7


def table(change: Callable[[list[str]], Any] | None = None) -> str:
    """A good visits table of 12 subjects with two visits each, its lines changed in place."""
    lines = ["subject,visit,t"]
    for s in range(SUBJECTS):
        lines += [f"{s:03d},v{k},{6.0 * k + 0.25 * s}" for k in range(VISITS)]
    if change is not None:
        change(lines)
    return "\n".join(lines) + "\n"


def shapes(count: int = SUBJECTS * VISITS, seed: int = 0) -> np.ndarray:
    """Good 2D shapes, one a visit of the good table: a noisy polygon that grows."""
    angle = 2 * np.pi * np.arange(POINTS) / POINTS
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    size = 10.0 + np.arange(count)[:, None, None] % VISITS
    return size * ring + 0.1 * np.random.default_rng(seed).standard_normal((count, POINTS, 2))


def write(
    tmp: Path, *, visits: str | bytes | None = "", toml: str | bytes | None = TOML, **arrays: Any
) -> Path:
    """Write a good cohort folder, some of its parts replaced, or left out where None is given."""
    folder = tmp / FOLDER
    folder.mkdir()
    for name, content in (
        ("visits.csv", table() if visits == "" else visits),
        ("cohort.toml", toml),
    ):
        if content is not None:
            (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    stored = {"points": shapes(), **arrays}
    stored = {name: array for name, array in stored.items() if array is not None}
    if stored:
        np.savez(folder / "correspondence.npz", **stored)
    return folder


def good_truth() -> dict[str, Any]:
    """Truth arrays that agree with the good shapes."""
    clean = shapes()
    return {
        "regions": np.array(["arm", "leg"]),
        "landmarks": np.array([0, 3]),
        "tau": np.zeros((len(clean), 2)),
        "clean": clean,
        "t_grid": np.linspace(0.0, 1.0, 5),
        "sigma_tau": np.ones((5, 2)),
        "mean": clean[:5],
        "abnormal": np.zeros(len(clean), dtype=bool),
    }
