"""`prism fit`: learn a model of a normal population."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from prism.cli._common import (
    CohortFolder,
    OutFolder,
    count,
    in_unit,
    is_normal,
    open_cohort,
    say,
    say_taken_as_exact,
)
from prism.cli._progress import shown_progress
from prism.cli._write import check_place
from prism.cli.simulate import Seed
from prism.errors import FitError, PrismError, QueryError

if TYPE_CHECKING:
    from prism.cohort import Correspondence
    from prism.model import PRISM
    from prism.population import PopulationConfig

MARK = "model.toml"
TORCH_FILE = "inline_container.cc"  # in torch's message when it cannot write a file


class Preset(StrEnum):
    """Sizes of model and training."""

    fast = "fast"
    default = "default"
    paper = "paper"


class Device(StrEnum):
    """Where to train."""

    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"


class Precision(StrEnum):
    """Numbers to train with."""

    single = "32-true"
    mixed = "bf16-mixed"


class FitCommand(TyperCommand):
    """`prism fit`, whose help lists every setting of the model."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """List the settings with their defaults, read from the configuration itself."""
        from dataclasses import fields

        from prism.population import PopulationConfig

        super().format_epilog(ctx, formatter)
        with formatter.section("Settings for --set, with the values of preset default"):
            formatter.write_dl(
                [(f"{f.name}={f.default}", f.metadata["help"]) for f in fields(PopulationConfig)]
            )


def fit(
    cohort: CohortFolder,
    out: OutFolder,
    preset: Annotated[Preset, typer.Option(help="Size of model and training.")] = Preset.default,
    device: Annotated[Device, typer.Option(help="Where to train.")] = Device.auto,
    seed: Seed = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where a fit stopped.")] = False,
    precision: Annotated[Precision, typer.Option(help="Numbers to train with.")] = Precision.single,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Change a setting; may be repeated."),
    ] = None,
) -> None:
    """Learn a model of a normal population.

    Uses the rows of split `train` where a column split names them, and leaves out rows whose
    group is not normal, control or healthy.
    """
    config = configured(preset, settings or [])
    shapes = training_rows(open_cohort(cohort)[0])
    check_place(out, MARK)
    partial = out.with_name(f"{out.name}.partial")
    _prepare(partial, resume)
    say_taken_as_exact("fit", shapes)
    from prism.model import PRISM

    with _keeping_what_helps(partial, resume), shown_progress() as progress:
        model = PRISM.fit(
            shapes,
            preset,
            config=config,
            seed=seed,
            device=device,
            precision=precision,
            folder=partial,
            resume=resume,
            progress=progress,
        )
        model.save(out)
    shutil.rmtree(partial, ignore_errors=True)
    say(f"{_summary(model)} Wrote {out}")


@contextmanager
def _keeping_what_helps(partial: Path, resume: bool) -> Iterator[None]:
    """Keep checkpoints when the disk is full; drop those of a fit that cannot succeed."""
    from safetensors import SafetensorError

    try:
        yield
    except PrismError:
        if not resume:
            shutil.rmtree(partial, ignore_errors=True)
        raise
    except (SafetensorError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and TORCH_FILE not in str(error):
            raise
        raise FitError(
            f"the model or a checkpoint could not be written beside {partial}: is the disk full?",
            "Make room, then run the same command with --resume.",
        ) from error


def _summary(model: PRISM) -> str:
    facts, (first, last) = model.provenance, model.ages
    ages = f"ages {first:.3g} to {in_unit(last, model.time_unit)}"
    inside = 100 * model.calibration.coverage["0.9"]
    seconds = sum(log.seconds for log in model.history.values())
    return (
        f"fit: {count(facts['subjects'], 'subject')}, {count(facts['shapes'], 'shape')}, {ages}; "
        f"90% intervals hold {inside:.0f}% of held-out points; trained {seconds:.0f} s."
    )


def configured(preset: str, settings: list[str]) -> PopulationConfig:
    """Apply NAME=VALUE to a preset."""
    from dataclasses import fields, replace

    from prism.population import PRESETS, PopulationConfig

    kinds = {field.name: str(field.type) for field in fields(PopulationConfig)}
    values: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if name not in kinds or not equals:
            raise QueryError(
                f"--set must be NAME=VALUE with a known name. Got {setting!r}.",
                f"Names are {', '.join(kinds)}.",
            )
        values[name] = _value(name, text, kinds[name])
    return replace(PRESETS[preset], **values)


def _value(name: str, text: str, kind: str) -> int | float:
    whole = kind.startswith("int")
    read, expected = (int, "a whole number") if whole else (float, "a finite number")
    try:
        value = read(text)
    except ValueError:
        value = float("nan")
    if not abs(value) < float("inf"):
        raise QueryError(
            f"{name} must be {expected}. Got {text!r}.", f"Write --set {name}=VALUE with one."
        )
    return value


def training_rows(cohort: Correspondence) -> Correspondence:
    """Rows to learn from: split train where there is one, and normal subjects only."""
    split = cohort.visits.columns.get("split")
    if split is not None and "train" in split:
        chosen = cohort.of_split("train")
        say(f"fit: learning from the {len(chosen)} of {len(cohort)} rows in split train.")
        cohort = chosen
    normal = is_normal(cohort)
    if not normal.any():
        raise FitError(
            "no row is left to learn from: the column group names no normal subject.",
            "Write normal, control or healthy in column group of visits.csv where it applies.",
        )
    if not normal.all():
        left_out = count(int((~normal).sum()), "row")
        say(f"fit: left out {left_out} whose group is not normal: the model is of normals.")
    return cohort[normal]


def _prepare(partial: Path, resume: bool) -> None:
    """Make way for checkpoints: keep those to resume from, discard old ones."""
    if not partial.exists():
        if resume:
            say(f"fit: nothing to resume in {partial}; starting from the beginning.")
        return
    if not partial.is_dir() or any(p.suffix not in (".ckpt", ".draft") for p in partial.iterdir()):
        raise QueryError(
            f"{partial} is in the way: it should hold nothing but checkpoints.",
            "Move it elsewhere, or choose another --out.",
        )
    if not resume:
        shutil.rmtree(partial)
        say(f"fit: discarded the unfinished fit in {partial} (--resume would go on with it).")
