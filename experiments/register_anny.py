"""Registration of ANNY bodies, whose true correspondence is known.

Prepare, on a machine with the extra [anny] and libigl (a minute, 55 MB):

    python experiments/register_anny.py prepare SAMPLES.npz [--train 1507] [--test 324]

Train, on any machine with torch, numpy, scipy and lightning-fabric, and print the table:

    python experiments/register_anny.py train SAMPLES.npz [--networks modulated,hyper]
        [--train N] [--test N] [--steps N] [--shapes B] [--device auto] [--out OUT.json]

Errors are in % of adult height (1.70 m). "Carried" is the distance between a vertex of shape i
carried to the template and on to shape j, and the true vertex of j. The residual is the exact
distance to the mesh.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from prism.cohort import SDFSamples
from prism.registration import Maps, Registration, RegistrationConfig, preset
from prism.registration.quality import fold_share
from prism.training import Runtime, Update

HEIGHT = 1.70
COUNTS = (1200, 1500, 700)  # surface, near, box: 28 kB a shape
STEP = 4.8 / 65_536  # of a stored coordinate or distance, in metres: up to 2.4 m
PAIRS = 6  # shapes j that the vertices of each shape i are carried to


def prepare(path: Path, train: int, test: int) -> None:
    """Sample the bodies of the paper's cohort and store them in whole numbers."""
    from prism.cohort import Shape
    from prism.preprocess import SamplingConfig, sample_cohort
    from prism.simulate import anny

    study = anny(seed=0)
    parts = [study.of_split("train"), study.of_split("test")]
    chosen = [_spread(len(part), count) for part, count in zip(parts, (train, test), strict=True)]
    bodies = np.concatenate([p.truth.clean[rows] for p, rows in zip(parts, chosen, strict=True)])
    cells = study.correspondence.cells
    shapes = [Shape(body, cells, "m") for body in bodies]
    samples = sample_cohort(shapes, SamplingConfig(*COUNTS))
    stacked = {
        name: np.stack([getattr(s, name) for s in samples])
        for name in ("surface", "normals", "points", "distance")
    }
    keys = study.law.bodies
    tau = np.concatenate([p.truth.tau[rows, 0] for p, rows in zip(parts, chosen, strict=True)])
    np.savez(
        path,
        **{k: _whole(stacked[k]) for k in ("surface", "points", "distance")},
        normals=np.round(127 * stacked["normals"]).astype(np.int8),
        knots=keys.knots,
        keys=keys.keys.astype(np.float32),
        cells=cells,
        tau=tau,
        train=len(chosen[0]),
    )
    print(f"{len(bodies)} bodies, {path.stat().st_size / 2**20:.0f} MiB")


def _whole(metres: np.ndarray) -> np.ndarray:
    steps = np.round(metres / STEP)
    if np.abs(steps).max() > np.iinfo(np.int16).max:
        raise ValueError(f"a length of {np.abs(metres).max():.2f} m cannot be stored")
    return steps.astype(np.int16)


def _spread(available: int, count: int) -> np.ndarray:
    return np.unique(np.linspace(0, available - 1, min(count, available)).round().astype(int))


def read(path: Path) -> tuple[list[SDFSamples], np.ndarray, np.ndarray, int]:
    """Samples, true vertices (N, V, 3), triangles, and how many of the shapes are for training."""
    with np.load(path) as stored:
        data = dict(stored)
    normals = data["normals"].astype(np.float32)
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    metres = {k: data[k].astype(np.float32) * np.float32(STEP) for k in ("surface", "points")}
    distance = data["distance"].astype(np.float32) * np.float32(STEP)
    samples = [
        SDFSamples(
            metres["surface"][i], normals[i], metres["points"][i], distance[i], COUNTS[1], "m"
        )
        for i in range(len(normals))
    ]
    i = np.clip(np.searchsorted(data["knots"], data["tau"], "right") - 1, 0, len(data["knots"]) - 2)
    share = ((data["tau"] - data["knots"][i]) / np.diff(data["knots"])[i])[:, None, None]
    bodies = (1 - share) * data["keys"][i] + share * data["keys"][i + 1]
    return samples, bodies, data["cells"], int(data["train"])


def told(update: Update) -> None:
    """Show progress."""
    left = f"{update.seconds_left:.0f} s left"
    print(f"  {update.phase} {update.step}/{update.steps} {update.loss:.2f} {left}", flush=True)


def carried_errors(source: Maps, target: Maps, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Errors of the vertices a (N, V, 3) of some shapes carried to others with vertices b."""
    rng = np.random.default_rng(0)
    p = source.to_template(a)
    found = []
    for _ in range(PAIRS):
        y = target.from_template(p[rng.integers(len(p), size=len(b))])
        found.append(np.linalg.norm(y - b, axis=-1))
    return np.stack(found)


def residuals(maps: Maps, points: np.ndarray, bodies: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """(N, P) exact distance of carried points from the meshes."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    carried = maps.from_template(points)
    return np.stack(
        [
            mesh_distance(
                *(torch.as_tensor(x, dtype=torch.float32).to(device) for x in (y, body[cells]))
            )
            .cpu()
            .numpy()
            for y, body in zip(carried, bodies, strict=True)
        ]
    )


def mesh_distance(points: Tensor, corners: Tensor) -> Tensor:
    """(P,) distance of points (P, 3) to the nearest of the triangles (F, 3, 3), one by one."""
    return torch.cat([_to_triangles(p, corners).amin(1) for p in points.split(128)])


def _to_triangles(p: Tensor, corners: Tensor) -> Tensor:
    """(P, F) distances: to the plane where the foot lies inside, else to the nearest edge."""
    a, b, c = corners.unbind(1)
    ends = [(a, b), (b, c), (c, a)]
    edges = torch.stack([_to_segments(p, u, v) for u, v in ends]).amin(0)
    normal = torch.nn.functional.normalize(torch.linalg.cross(b - a, c - a), dim=-1)
    away = p[:, None] - a
    height = (away * normal).sum(-1)
    foot = p[:, None] - height[..., None] * normal
    inside = torch.ones_like(height, dtype=torch.bool)
    for u, v in ends:
        inside &= (torch.linalg.cross(normal, v - u) * (foot - u)).sum(-1) >= 0
    return torch.where(inside, height.abs(), edges)


def _to_segments(p: Tensor, a: Tensor, b: Tensor) -> Tensor:
    along = b - a
    away = p[:, None] - a
    t = ((away * along).sum(-1) / along.square().sum(-1)).clamp(0, 1)
    return (away - t[..., None] * along).norm(dim=-1)


def useful_flops(config: RegistrationConfig, shapes: int) -> float:
    """Multiplications and additions of matrix products in a step: 2 a weight, point and pass."""

    def layers(n: int, width: int, hidden: int, out: int) -> int:
        return n * width + hidden * width**2 + width * out

    D = layers(3, config.width, config.hidden, 3)
    T = layers(3, config.template_width, config.template_hidden, 1)
    points = config.surface + config.near + config.box
    some = points / max(1, points // config.jacobians)
    # Value, gradient and the slopes of both: 6 passes; a value and its slopes: 3; a value with its
    # Jacobian and their slopes: 3 (1 + n).
    passes = points * (6 * (T + D) + 3 * D) + some * (6 * D + 2 * 12 * D)
    return 2.0 * shapes * passes


def judge(
    name: str,
    maps: Maps,
    source: Maps,
    points: np.ndarray,
    own: np.ndarray,
    bodies: np.ndarray,
    cells: np.ndarray,
) -> dict[str, float]:
    """One row of the table, lengths in % of adult height."""
    percent = 100 / HEIGHT
    some = slice(None, None, max(1, len(maps) // 64))
    error = carried_errors(source, maps, own, bodies) * percent
    back = np.linalg.norm(maps.from_template(maps.to_template(bodies)) - bodies, axis=-1) * percent
    rest = residuals(maps[some], points, bodies[some], cells) * percent
    noise = 0.05 * np.random.default_rng(1).standard_normal((4000, 3))
    around = points[np.random.default_rng(2).integers(len(points), size=4000)] + noise
    return {
        "set": name,
        "shapes": len(maps),
        "carried_median": float(np.median(error)),
        "carried_p95": float(np.quantile(error, 0.95)),
        "residual": float(rest.mean()),
        "round_trip": float(back.mean()),
        "folds_%": 100 * float(fold_share(maps.determinants(around)).mean()),
    }


def train(wishes: argparse.Namespace) -> dict[str, Any]:
    """Register with each network; print a row for training and a row for unseen shapes."""
    samples, bodies, cells, count = read(wishes.samples)
    rows = _spread(count, wishes.train or count)
    others = count + _spread(len(samples) - count, wishes.test or len(samples))
    results: dict[str, Any] = {}
    for network in wishes.networks.split(","):
        config = preset("default" if network == "modulated" else "paper", 3)
        changes = {k: getattr(wishes, k) for k in ("steps", "shapes") if getattr(wishes, k)}
        for setting in wishes.set or []:
            key, _, value = setting.partition("=")
            changes[key] = type(getattr(config, key))(float(value))
        config = replace(config, **changes)
        found, maps, result = _run(config, samples, rows, others, wishes.device)
        points = found.support[:: max(1, len(found.support) // 2500)]
        own = bodies[rows]
        result["rows"] = [
            judge("train", found.maps, found.maps, points, own, bodies[rows], cells),
            judge("onto", maps, found.maps, points, own, bodies[others], cells),
        ]
        results[network] = result
        print(json.dumps({network: result}, indent=1), flush=True)
    _table(results)
    return results


def _run(
    config: RegistrationConfig,
    samples: list[SDFSamples],
    rows: np.ndarray,
    others: np.ndarray,
    device: str,
) -> tuple[Registration, Maps, dict[str, Any]]:
    runtime = Runtime(device, progress=told)
    start = time.perf_counter()
    found = Registration.fit([samples[i] for i in rows], config, runtime=runtime)
    learned = time.perf_counter()
    if torch.cuda.is_available() and device != "cpu":
        found.networks.cuda()
        maps = replace(found.maps, z_fwd=found.maps.z_fwd.cuda(), z_bwd=found.maps.z_bwd.cuda())
        found = replace(found, maps=maps)
    maps = found.onto([samples[i] for i in others], runtime=runtime)
    if torch.cuda.is_available() and device != "cpu":
        maps = replace(maps, z_fwd=maps.z_fwd.cuda(), z_bwd=maps.z_bwd.cuda())
    seconds = found.history.seconds
    batch = min(config.shapes, len(rows))
    return (
        found,
        maps,
        {
            "parameters_M": sum(p.numel() for p in found.networks.parameters()) / 1e6,
            "fit_s": learned - start,
            "loop_s": seconds,
            "onto_s": time.perf_counter() - learned,
            "visits_per_s": config.steps * batch / seconds,
            "visits_per_shape": config.steps * batch / len(rows),
            "useful_TFLOPs": useful_flops(config, batch) * config.steps / seconds / 1e12,
        },
    )


def _table(results: dict[str, Any]) -> None:
    head = [
        "network",
        "set",
        "shapes",
        "median %",
        "p95 %",
        "residual %",
        "round trip %",
        "folds %",
    ]
    print("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
    for network, result in results.items():
        for row in result["rows"]:
            keys = ("carried_median", "carried_p95", "residual", "round_trip", "folds_%")
            cells = [network, row["set"], str(row["shapes"]), *(f"{row[k]:.4f}" for k in keys)]
            print("| " + " | ".join(cells) + " |")
        print(
            f"{network}: {result['fit_s']:.0f} s, {result['visits_per_s']:.0f} shapes x visits/s, "
            f"{result['useful_TFLOPs']:.1f} useful TFLOP/s, onto {result['onto_s']:.0f} s"
        )


def main() -> None:
    """Prepare or train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("prepare", "train"))
    parser.add_argument("samples", type=Path)
    for name in ("train", "test", "steps", "shapes"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--networks", default="modulated,hyper")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--set", action="append", metavar="NAME=VALUE")
    parser.add_argument("--out", type=Path)
    wishes = parser.parse_args()
    if wishes.action == "prepare":
        prepare(wishes.samples, wishes.train or 1507, wishes.test or 324)
        return
    results = train(wishes)
    if wishes.out:
        wishes.out.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
