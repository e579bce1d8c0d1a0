"""Registration of ANNY bodies, whose true correspondence is known.

Prepare, on a machine with the extra [anny] and libigl (two minutes, 55 MB):

    python experiments/register_anny.py prepare SAMPLES.npz [--train 1507] [--test 324]

Train, on any machine with torch, numpy, scipy and lightning-fabric, and print the table:

    python experiments/register_anny.py train SAMPLES.npz [--networks modulated,hyper,paper]
        [--train N] [--test N] [--steps N] [--shapes B] [--device auto] [--out FOLDER]

Errors are in % of adult height (1.70 m). "Carried" is the distance between a vertex of shape i
carried to the template and on to shape j, and the true vertex of j, at 2500 vertices spread evenly
over the skin. The residual is the exact distance to the whole skin. FOLDER receives the table, and
the networks and codes, which `experiments/bodies.py` reads to date and forecast registered bodies.
"""

from __future__ import annotations

import argparse
import json
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.spatial import cKDTree
from torch import Tensor

from prism.cohort import SDFSamples
from prism.preprocess.surface import sample_normals
from prism.registration import Maps, Registration, RegistrationConfig, preset
from prism.registration.networks import Networks
from prism.registration.quality import fold_share
from prism.registration.similarity import Similarity
from prism.simulate.anny_bodies import Bodies
from prism.training import Runtime, Update

HEIGHT = 1.70
SURFACE, NEAR, BOX = 8000, 2500, 700  # points a shape; those off the surface are stored, 26 kB
STEP = 4.8 / 65_536  # of a stored coordinate or distance, in metres: up to 2.4 m
PAIRS = 6  # shapes j that the vertices of each shape i are carried to


def prepare(path: Path, train: int, test: int) -> None:
    """Measure distances around the bodies of the paper's cohort; store them in whole numbers.

    Points on the surface need no measuring: `read` draws them.
    """
    from prism.cohort import Shape
    from prism.preprocess import SamplingConfig, sample_cohort
    from prism.simulate import anny
    from prism.simulate.anny_bodies import bodies

    study = anny(seed=0)
    parts = [study.of_split("train"), study.of_split("test")]
    chosen = [_spread(len(part), count) for part, count in zip(parts, (train, test), strict=True)]
    tau = np.concatenate([p.truth.tau[rows, 0] for p, rows in zip(parts, chosen, strict=True)])
    skin = bodies()
    even = cKDTree(skin.keys[-1]).query(study.law.bodies.keys[-1])[1]
    shapes = [Shape(skin.at(age), skin.cells, "m") for age in tau]
    samples = sample_cohort(shapes, SamplingConfig(100, NEAR, BOX))
    np.savez(
        path,
        **{k: _whole(np.stack([getattr(s, k) for s in samples])) for k in ("points", "distance")},
        knots=skin.knots,
        keys=skin.keys.astype(np.float32),
        cells=skin.cells,
        even=even,
        tau=tau,
        train=len(chosen[0]),
    )
    print(f"{len(shapes)} bodies, {path.stat().st_size / 2**20:.0f} MiB")


def _whole(metres: np.ndarray) -> np.ndarray:
    steps = np.round(metres / STEP)
    if np.abs(steps).max() > np.iinfo(np.int16).max:
        raise ValueError(f"a length of {np.abs(metres).max():.2f} m cannot be stored")
    return steps.astype(np.int16)


def _spread(available: int, count: int) -> np.ndarray:
    return np.unique(np.linspace(0, available - 1, min(count, available)).round().astype(int))


@dataclass(frozen=True)
class Skins:
    """True bodies: vertices (N, V, 3), triangles, and the vertices spread evenly."""

    bodies: np.ndarray
    cells: np.ndarray
    even: np.ndarray

    def __getitem__(self, rows: np.ndarray | slice) -> Skins:
        """Select bodies."""
        return replace(self, bodies=self.bodies[rows])

    @property
    def marks(self) -> np.ndarray:
        """(N, M, 3) the vertices that are judged."""
        return self.bodies[:, self.even]


def read(path: Path) -> tuple[list[SDFSamples], Skins, int]:
    """Samples, the truth, and how many of the shapes are for training."""
    with np.load(path) as stored:
        data = dict(stored)
    metres = (data[k].astype(np.float32) * np.float32(STEP) for k in ("points", "distance"))
    tau, cells = data["tau"], data["cells"]
    bodies = Bodies(data["knots"], data["keys"], cells).at(tau).astype(np.float32)
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as workers:
        jobs = (bodies, repeat(cells), range(len(bodies)))
        drawn = list(workers.map(_surface, *jobs, chunksize=16))
    samples = [
        SDFSamples(*on, around, s, NEAR, "m") for on, around, s in zip(drawn, *metres, strict=True)
    ]
    return samples, Skins(bodies, cells, data["even"]), int(data["train"])


def _surface(body: np.ndarray, cells: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    places, normals = sample_normals(body, cells, SURFACE, np.random.default_rng(seed))
    return places.astype(np.float32), normals.astype(np.float32)


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


def residuals(maps: Maps, points: np.ndarray, skins: Skins) -> np.ndarray:
    """(N, P) exact distance of carried points from the meshes."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    carried = maps.from_template(points)
    return np.stack(
        [
            mesh_distance(
                *(
                    torch.as_tensor(x, dtype=torch.float32).to(device)
                    for x in (y, body[skins.cells])
                )
            )
            .cpu()
            .numpy()
            for y, body in zip(carried, skins.bodies, strict=True)
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
    own: Skins,
    skins: Skins,
) -> dict[str, float]:
    """One row of the table, lengths in % of adult height."""
    percent = 100 / HEIGHT
    some = slice(None, None, max(1, len(maps) // 64))
    marks = skins.marks
    error = carried_errors(source, maps, own.marks, marks) * percent
    back = np.linalg.norm(maps.from_template(maps.to_template(marks)) - marks, axis=-1) * percent
    rest = residuals(maps[some], points, skins[some]) * percent
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
    samples, skins, count = read(wishes.samples)
    rows = _spread(count, wishes.train or count)
    others = count + _spread(len(samples) - count, wishes.test or len(samples))
    results: dict[str, Any] = {}
    for network in wishes.networks.split(","):
        config = preset("default" if network == "modulated" else network, 3)
        changes = {k: getattr(wishes, k) for k in ("steps", "shapes") if getattr(wishes, k)}
        for setting in wishes.set or []:
            key, _, value = setting.partition("=")
            changes[key] = type(getattr(config, key))(float(value))
        config = replace(config, **changes)
        found, maps, result = _run(config, samples, rows, others, wishes.device)
        points = found.support[:: max(1, len(found.support) // 2500)]
        own = skins[rows]
        if wishes.out:
            keep(found, maps, wishes.out / f"{network}.pt")
        result["rows"] = [
            judge("train", found.maps, found.maps, points, own, own),
            judge("onto", maps, found.maps, points, own, skins[others]),
        ]
        results[network] = result
        print(json.dumps({network: result}, indent=1), flush=True)
    _table(results)
    return results


def keep(found: Registration, others: Maps, path: Path) -> None:
    """Store a registration and the maps of unseen shapes; the template is read off elsewhere."""
    sets = {"train": found.maps, "onto": others}
    torch.save(
        {
            "config": asdict(found.config),
            "networks": {k: v.cpu() for k, v in found.networks.state_dict().items()},
            "support": torch.from_numpy(found.support),
            **{name: _stored(maps) for name, maps in sets.items()},
        },
        path,
    )


def _stored(maps: Maps) -> dict[str, Tensor]:
    lie = maps.similarity
    pose = {k: torch.from_numpy(getattr(lie, k)) for k in ("centre", "size", "rotation")}
    return {"z_fwd": maps.z_fwd.cpu(), "z_bwd": maps.z_bwd.cpu(), **pose}


def kept(path: Path) -> tuple[Registration, Maps]:
    """Read what `keep` stored."""
    stored = torch.load(path, weights_only=True)
    config = RegistrationConfig(**stored["config"])
    networks = Networks(stored["support"].shape[1], config)
    networks.load_state_dict(stored["networks"])
    known, others = (_maps(networks, stored[name]) for name in ("train", "onto"))
    frame, support = known.similarity.mean, stored["support"].numpy()
    return Registration(known, config, "none", frame, support, "m"), others


def _maps(networks: Networks, stored: dict[str, Tensor]) -> Maps:
    lie = Similarity(*(stored[k].numpy() for k in ("centre", "size", "rotation")))
    return Maps(networks, stored["z_fwd"], stored["z_bwd"], lie)


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
    seconds, steps = found.history.seconds, found.config.steps_for(len(rows))
    batch = min(config.shapes, len(rows))
    return (
        found,
        maps,
        {
            "parameters_M": sum(p.numel() for p in found.networks.parameters()) / 1e6,
            "fit_s": learned - start,
            "loop_s": seconds,
            "onto_s": time.perf_counter() - learned,
            "visits_per_s": steps * batch / seconds,
            "visits_per_shape": steps * batch / len(rows),
            "useful_TFLOPs": useful_flops(config, batch) * steps / seconds / 1e12,
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
    if wishes.out:
        wishes.out.mkdir(parents=True, exist_ok=True)
    results = train(wishes)
    if wishes.out:
        (wishes.out / "registration.json").write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
