"""Makers of model folders that are broken, and of cohorts that do not fit a good model.

Every maker takes a good model folder and a good cohort folder, spoils one of them and returns a
text that the error message must contain.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from prism.cohort import Cohort, Correspondence
from prism.model.files import FORMAT

Maker = Callable[[Path, Path], str]
SETTINGS = ["--set", "width=16", "--set", "hidden=1", "--set", "members=1"]
ENCODER = {"width": 16, "hidden": 1, "steps": 40, "batch": 512}


@contextmanager
def small_encoder() -> Iterator[None]:
    """Make preset fast train a small encoder, so that a fit takes a second."""
    from prism.intrinsic import EncoderConfig
    from prism.model import core

    with mock.patch.dict(core.ENCODER_PRESETS, {"fast": EncoderConfig(**ENCODER)}):
        yield


def _text(old: str, new: str, message: str) -> Maker:
    """A maker whose model.toml has a text replaced."""

    def make(model: Path, cohort: Path) -> str:
        path = model / "model.toml"
        content = path.read_text()
        assert old in content
        path.write_text(content.replace(old, new, 1))
        return message

    return make


def _gone(name: str, message: str) -> Maker:
    """A maker whose model lacks a file."""

    def make(model: Path, cohort: Path) -> str:
        (model / name).unlink()
        return message

    return make


def _cut(name: str, message: str) -> Maker:
    """A maker whose model has a file that was copied half-way."""

    def make(model: Path, cohort: Path) -> str:
        path = model / name
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        return message

    return make


def _tensors(name: str, change: Callable[[dict[str, Any]], Any], message: str) -> Maker:
    """A maker whose model has tensors changed in place."""

    def make(model: Path, cohort: Path) -> str:
        from safetensors.torch import load_file, save_file

        tensors = load_file(model / name)
        change(tensors)
        save_file({k: v.contiguous() for k, v in tensors.items()}, model / name)
        return message

    return make


def _cohort(change: Callable[[Correspondence], Correspondence], message: str) -> Maker:
    """A maker whose cohort is good, but not for this model."""

    def make(model: Path, cohort: Path) -> str:
        shapes = Cohort.read(cohort).correspondence
        assert shapes is not None
        shutil.rmtree(cohort)
        Cohort.from_correspondence(change(shapes)).write(cohort)
        return message

    return make


def folder_missing(model: Path, cohort: Path) -> str:
    """No folder at all."""
    shutil.rmtree(model)
    return str(model)


def folder_is_file(model: Path, cohort: Path) -> str:
    """A file where the folder should be."""
    shutil.rmtree(model)
    model.write_text("model")
    return str(model)


def folder_is_cohort(model: Path, cohort: Path) -> str:
    """A cohort where the model should be."""
    shutil.rmtree(model)
    shutil.copytree(cohort, model)
    return "model.toml"


def swapped_weights(model: Path, cohort: Path) -> str:
    """The two networks' files under each other's names."""
    a, b = model / "population.safetensors", model / "encoder.safetensors"
    a.rename(model / "x")
    b.rename(a)
    (model / "x").rename(b)
    return "population.safetensors does not fit"


def provenance_damaged(model: Path, cohort: Path) -> str:
    """A provenance that is no JSON."""
    (model / "provenance.json").write_text('{"prism": ')
    return "provenance.json"


def _first_nan(tensors: dict[str, Any]) -> None:
    next(iter(tensors.values())).view(-1)[0] = float("nan")


def _in_space(c: Correspondence) -> Correspondence:
    up = ((0, 0), (0, 1))
    return replace(c, points=np.pad(c.points, ((0, 0), *up)), template=np.pad(c.template, up))


def _fewer_points(c: Correspondence) -> Correspondence:
    return replace(c, points=c.points[:, :-1], template=c.template[:-1], cells=None, regions={})


BROKEN: dict[str, Maker] = {
    "folder missing": folder_missing,
    "folder is a file": folder_is_file,
    "folder is a cohort": folder_is_cohort,
    "no model.toml": _gone("model.toml", "model.toml"),
    "no population": _gone("population.safetensors", "population.safetensors"),
    "no encoder": _gone("encoder.safetensors", "encoder.safetensors"),
    "no arrays": _gone("arrays.safetensors", "arrays.safetensors"),
    "no provenance": _gone("provenance.json", "provenance.json"),
    "bad toml": _text(f"format = {FORMAT}", "format = ", "model.toml cannot be read"),
    "toml cut": _cut("model.toml", "model.toml"),
    "other format": _text(f"format = {FORMAT}", "format = 99", "format 99"),
    "unknown setting": _text("[population]", "[population]\nwings = 2", "wings"),
    "setting lost": _text("dimension = 2\n", "", "dimension"),
    "setting of other type": _text("width = 16", 'width = "wide"', "model.toml"),
    "other width": _text("width = 16", "width = 17", "does not fit model.toml"),
    "weights truncated": _cut("population.safetensors", "population.safetensors"),
    "encoder truncated": _cut("encoder.safetensors", "encoder.safetensors"),
    "weights swapped": swapped_weights,
    "weights not finite": _tensors("population.safetensors", _first_nan, "not finite"),
    "array lost": _tensors("arrays.safetensors", lambda a: a.pop("template"), "template"),
    "array of other shape": _tensors(
        "arrays.safetensors", lambda a: a.update(forecast=a["forecast"][:, 1:]), "forecast"
    ),
    "regions are a number": _text("[regions]", "[region]\n[[regions]]", "regions must be"),
    "region out of range": _text("[regions]\n", "[regions]\nwing = 24\n", "region 'wing'"),
    "region is text": _text("[regions]\n", '[regions]\nwing = "left"\n', "region 'wing'"),
    "provenance damaged": provenance_damaged,
    "cohort in space": _cohort(_in_space, "3D"),
    "cohort of other points": _cohort(_fewer_points, "23 points"),
    "cohort in other time unit": _cohort(lambda c: replace(c, time_unit="years"), "years"),
}
