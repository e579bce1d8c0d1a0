"""The registration folder: TOML for what a person reads, safetensors for numbers, no code."""

from __future__ import annotations

import json
import tomllib
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from prism.errors import FitError, ModelError
from prism.registration.align import ALIGNMENTS
from prism.registration.config import RegistrationConfig
from prism.registration.core import Registration
from prism.registration.maps import Maps
from prism.registration.networks import Networks
from prism.registration.similarity import Similarity
from prism.registration.template import Template
from prism.runs import fresh_folder

FORMAT = 1
MARK = "registration.toml"
_WEIGHTS, _ARRAYS, _STORY = "networks.safetensors", "arrays.safetensors", "provenance.json"
_AGAIN = "Restore the folder from a backup, or run `prism register` again."


def save_registration(registration: Registration, path: Path) -> None:
    """Write the folder; it appears under its name only when it is complete."""
    import tomli_w
    from safetensors.torch import save_file

    settings = {
        "format": FORMAT,
        "dimension": registration.dimension,
        "length_unit": registration.length_unit,
        "align": registration.align,
        "config": asdict(registration.config),
    }
    weights = {k: v.contiguous().cpu() for k, v in registration.networks.state_dict().items()}
    arrays = _arrays(registration)
    with fresh_folder(path, MARK) as draft:
        (draft / MARK).write_text(tomli_w.dumps(settings), encoding="utf-8")
        save_file(weights, draft / _WEIGHTS)
        save_file(arrays, draft / _ARRAYS)
        text = json.dumps(registration.provenance, indent=2, default=str)
        (draft / _STORY).write_text(text, encoding="utf-8")


def _arrays(registration: Registration) -> dict[str, Tensor]:
    maps, mesh = registration.maps, registration.mesh
    plain = {"template": mesh.points, "cells": mesh.cells, "support": registration.support}
    for name, similarity in (("maps", maps.similarity), ("frame", registration.frame)):
        plain |= {f"{name}_{part}": array for part, array in vars(similarity).items()}
    tensors = {name: torch.from_numpy(np.array(array, order="C")) for name, array in plain.items()}
    return tensors | {"z_fwd": maps.z_fwd.contiguous(), "z_bwd": maps.z_bwd.contiguous()}


def load_registration(path: Path) -> Registration:
    """Read the folder, refusing anything that does not hold together."""
    settings = _read_settings(path)
    arrays, weights = _read_tensors(path / _ARRAYS), _read_tensors(path / _WEIGHTS)
    try:
        config = _config(settings["config"])
        networks = Networks(settings["dimension"], config)
        networks.load_state_dict(weights)
        plain = {name: tensor.numpy() for name, tensor in arrays.items()}
        found = Registration(
            Maps(networks, arrays["z_fwd"], arrays["z_bwd"], _similarity(plain, "maps")),
            config,
            settings["align"],
            _similarity(plain, "frame"),
            plain["support"],
            settings["length_unit"],
            _read_story(path / _STORY),
            stored=Template(plain["template"], plain["cells"]),
        )
    except (KeyError, TypeError, AttributeError, RuntimeError, FitError) as error:
        raise ModelError(
            f"{path / MARK} does not fit the folder's files: {str(error).splitlines()[0]}.", _AGAIN
        ) from error
    _check(found, weights, path)
    return found


def _similarity(arrays: dict[str, np.ndarray], name: str) -> Similarity:
    return Similarity(*(arrays[f"{name}_{part.name}"] for part in fields(Similarity)))


def _config(values: dict[str, Any]) -> RegistrationConfig:
    """The configuration as stored: every setting this version knows, and no other."""
    strange = sorted(set(values) ^ {f.name for f in fields(RegistrationConfig)})
    if strange:
        raise ModelError(
            f"{MARK} lacks settings or has some this version does not know: {', '.join(strange)}.",
            "Use the version of prism that wrote it (see provenance.json), or register again.",
        )
    return RegistrationConfig(**values)


def _check(found: Registration, weights: dict[str, Tensor], path: Path) -> None:
    """Shapes and codes fit each other, and every number is finite."""
    n, maps = found.dimension, found.maps
    codes = (len(maps.similarity), found.config.code)
    sizes = [
        (found.mesh.points.ndim, found.mesh.points.shape[-1], found.support.shape[-1]) == (2, n, n),
        tuple(maps.z_fwd.shape) == tuple(maps.z_bwd.shape) == codes,
        maps.similarity.rotation.shape == (codes[0], n, n),
        found.align in ALIGNMENTS,
    ]
    if not all(sizes):
        raise ModelError(f"{path / _ARRAYS} does not fit {MARK}.", _AGAIN)
    numbers = [*weights.values(), maps.z_fwd, maps.z_bwd, torch.from_numpy(found.mesh.points)]
    if not all(bool(torch.isfinite(w).all()) for w in numbers):
        raise ModelError(f"{path} holds numbers that are not finite.", _AGAIN)


def _read_settings(path: Path) -> dict[str, Any]:
    file = path / MARK
    if not file.is_file():
        raise ModelError(
            f"{path} is not a registration: it holds no {MARK}.",
            "Give the folder `registration` that `prism register --out` wrote.",
        )
    try:
        settings = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise ModelError(f"{file} cannot be read: {error}.", _AGAIN) from error
    if settings.get("format") != FORMAT:
        raise ModelError(
            f"{file} has format {settings.get('format')!r}; this version reads {FORMAT}.",
            "Use the version of prism that wrote it, or run `prism register` again.",
        )
    return settings


def _read_tensors(file: Path) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        # Copies lie where products of matrices expect them: the same numbers to the last bit.
        return {name: tensor.clone() for name, tensor in load_file(file).items()}
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelError(f"{file} cannot be read: {error}.", _AGAIN) from error


def _read_story(file: Path) -> dict[str, Any]:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{file} cannot be read: {error}.", _AGAIN) from error
