"""`prism register`: bring raw shapes into correspondence."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from prism.cli._advance import shown_advance
from prism.cli._common import NORMAL_GROUPS, CohortFolder, count, say
from prism.cli._landmarks import are_landmarks, register_landmarks
from prism.cli._progress import shown_progress
from prism.cli._write import PROVENANCE, check_cohort_place, record, write_json
from prism.cli.fit import Device
from prism.cli.fit import _value as setting_value
from prism.cli.simulate import Seed
from prism.errors import PrismError, QueryError

if TYPE_CHECKING:
    import numpy as np

    from prism.cohort import Cohort, SDFSamples, Visits
    from prism.registration import Maps, Quality, Registration, RegistrationConfig
    from prism.training import Runtime

FOLDER, MARK = "registration", "registration.toml"
QUALITY, PICTURE = "quality.json", "template.vtp"
SAMPLES = "samples"
NETWORK = "network"  # the setting that a preset decides


class Align(StrEnum):
    """What is taken off the shapes."""

    none = "none"
    rigid = "rigid"
    similarity = "similarity"


class Preset(StrEnum):
    """The networks of a registration."""

    default = "default"
    fast = "fast"
    hyper = "hyper"
    paper = "paper"


class RegisterCommand(TyperCommand):
    """`prism register`, whose help lists every setting."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """List the settings with their defaults for shapes in space."""
        from dataclasses import fields

        from prism.registration import RegistrationConfig

        super().format_epilog(ctx, formatter)
        with formatter.section("Settings for --set, with the values of preset default in space"):
            known = [f for f in fields(RegistrationConfig) if f.name != NETWORK]
            formatter.write_dl([(f"{f.name}={f.default}", f.metadata["help"]) for f in known])


@dataclass(frozen=True)
class _Wishes:
    """What the user asked for."""

    onto: Path | None
    align: Align | None
    preset: Preset
    settings: list[str]
    seed: int


def register(
    cohort: CohortFolder,
    out: Annotated[
        Path, typer.Option("--out", metavar="COHORT", resolve_path=True, help="Cohort to write.")
    ],
    onto: Annotated[
        Path | None,
        typer.Option(metavar="MODEL", help="Keep the template of a cohort registered before."),
    ] = None,
    align: Annotated[
        Align | None,
        typer.Option(help="Find the pose and take it off; similarity: the size too [none]."),
    ] = None,
    preset: Annotated[
        Preset,
        typer.Option(
            help="fast: minutes without a GPU; hyper: the paper's networks; paper: its weights too."
        ),
    ] = Preset.default,
    device: Annotated[Device, typer.Option(help="Where to train.")] = Device.auto,
    seed: Seed = 0,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where a registration stopped.")
    ] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Change a setting; may be repeated."),
    ] = None,
) -> None:
    """Bring raw shapes into correspondence.

    Learns a template from the shapes that the column path of visits.csv names (the normal ones of
    split `train`, where it says so; the others follow). Writes a cohort with correspondence.npz,
    quality.json, and a folder `registration` that --onto takes. Landmarks (.mrk.json) are matched
    by their names; nothing is learned.
    """
    from prism.cohort import Cohort
    from prism.training import Runtime

    wishes = _Wishes(onto, align, preset, settings or [], seed)
    source = Cohort.read(cohort)
    _check_out(cohort, out)
    if are_landmarks(source):
        say(register_landmarks(source, out, align, onto))
        return
    known = None if onto is None else _open(wishes)
    partial = out.with_name(f"{out.name}.partial")
    _prepare(partial, resume)
    try:
        samples = _samples(source, seed, partial)
        with shown_progress() as progress:
            runtime = Runtime(device, folder=partial, resume=resume, progress=progress)
            found, maps = _register(known, samples, source.visits, wishes, runtime)
        judged = _write(source, out, found, maps, samples, wishes)
    except PrismError:
        if not resume:
            shutil.rmtree(partial, ignore_errors=True)
        raise
    shutil.rmtree(partial, ignore_errors=True)
    say(f"{_summary(judged)} Wrote {out}")


def _check_out(cohort: Path, out: Path) -> None:
    """Refuse now, before long work, what could not be written after it."""
    from prism.runs import LEARNED, check_folder

    empty = not out.exists() or (out.is_dir() and not any(out.iterdir()))
    if not empty and not (out / "cohort.toml").is_file():
        raise QueryError(
            f"{out} is not empty and is not a cohort folder.", "Choose a new folder for --out."
        )
    if out != cohort.resolve():
        check_cohort_place(out, "register")
    check_folder(out / FOLDER, MARK, LEARNED)


def _open(wishes: _Wishes) -> Registration:
    """The registration that --onto names: its folder, or a cohort that holds one."""
    from prism.registration import Registration

    taken = [name for name in ("align", "settings") if getattr(wishes, name)]
    if taken or wishes.preset is not Preset.default or wishes.onto is None:
        raise QueryError(
            "--onto takes preset, settings and alignment from the model.",
            "Leave out --preset, --set and --align.",
        )
    inside = wishes.onto / FOLDER
    return Registration.load(inside if (inside / MARK).is_file() else wishes.onto)


def _prepare(partial: Path, resume: bool) -> None:
    """Make way for checkpoints and samples: keep those to resume from, discard old ones."""
    if not partial.exists():
        if resume:
            say(f"register: nothing to resume in {partial}; starting from the beginning.")
        return
    known = partial.is_dir() and all(
        entry.suffix in (".ckpt", ".draft") or entry.name == SAMPLES for entry in partial.iterdir()
    )
    if not known:
        raise QueryError(
            f"{partial} is in the way: it should hold nothing but checkpoints.",
            "Move it elsewhere, or choose another --out.",
        )
    if not resume:
        shutil.rmtree(partial)
        say(f"register: discarded unfinished work in {partial} (--resume would go on with it).")


def _samples(source: Cohort, seed: int, partial: Path) -> list[SDFSamples]:
    from prism.preprocess import sample_cohort

    with shown_advance() as progress:
        return sample_cohort(source, seed=seed, cache=partial / SAMPLES, progress=progress)


def _register(
    known: Registration | None,
    samples: list[SDFSamples],
    visits: Visits,
    wishes: _Wishes,
    runtime: Runtime,
) -> tuple[Registration, Maps]:
    """Learn from some rows and let the others follow; or let all follow what is known."""
    import numpy as np

    from prism.registration import Maps, Registration

    if known is not None:
        return known, known.onto(samples, seed=wishes.seed, runtime=runtime)
    learning = _learning_rows(visits)
    rows = np.flatnonzero(learning)
    config = _configured(wishes, samples[0].dimension)
    align = wishes.align or Align.none
    _warn_of_hours(config, samples[0].dimension, runtime)
    chosen = [samples[row] for row in rows]
    found = Registration.fit(chosen, config, seed=wishes.seed, align=align, runtime=runtime)
    others = np.flatnonzero(~learning)
    if not len(others):
        return found, found.maps
    say(f"register: learned from {len(rows)} of {len(samples)} rows; the others follow.")
    follow = found.onto([samples[row] for row in others], seed=wishes.seed, runtime=runtime)
    order = np.argsort(np.concatenate([rows, others]))
    return found, Maps.joined([found.maps, follow])[order]


def _warn_of_hours(config: RegistrationConfig, dimension: int, runtime: Runtime) -> None:
    """Say so where a GPU is missed, before the bar does."""
    from prism.registration import preset
    from prism.training import choose_device

    slow = dimension == 3 and config == preset(Preset.default, dimension)
    if slow and choose_device(runtime.device).type == "cpu":
        say("register: without a GPU this takes hours; --preset fast takes minutes.")


def _learning_rows(visits: Visits) -> np.ndarray:
    """(N,) True for rows of split train, where there are any, and of normal groups."""
    import numpy as np

    split, group = visits.columns.get("split"), visits.columns.get("group")
    chosen = np.ones(len(visits), dtype=bool)
    if split is not None and "train" in split:
        chosen &= split == "train"
    if group is not None:
        chosen &= np.isin(np.char.lower(np.char.strip(group)), NORMAL_GROUPS)
    return chosen if chosen.any() else ~chosen


def _configured(wishes: _Wishes, dimension: int) -> RegistrationConfig:
    """Apply NAME=VALUE to a preset."""
    from dataclasses import fields

    from prism.registration import RegistrationConfig, preset

    kinds = {f.name: str(f.type) for f in fields(RegistrationConfig) if f.name != NETWORK}
    values: dict[str, Any] = {}
    for setting in wishes.settings:
        name, equals, text = setting.partition("=")
        if name not in kinds or not equals:
            raise QueryError(
                f"--set must be NAME=VALUE with a known name. Got {setting!r}.",
                f"Names are {', '.join(kinds)}.",
            )
        values[name] = setting_value(name, text, kinds[name])
    return replace(preset(wishes.preset, dimension), **values)


def _write(
    source: Cohort,
    out: Path,
    found: Registration,
    maps: Maps,
    samples: Sequence[SDFSamples],
    wishes: _Wishes,
) -> Quality:
    """Write the cohort, its quality, and the registration if it is new."""
    from prism.cohort.files import write_arrays
    from prism.cohort.vtp_file import write_vtp
    from prism.registration import quality
    from prism.registration.quality import FILE
    from prism.runs import fresh_file

    judged = quality(found, maps, samples)
    shapes = found.correspondence(maps, source.visits, source.time_unit, source.name)
    written = replace(
        source,
        length_unit=found.length_unit,
        dimension=found.dimension,
        correspondence=shapes,
        truth=None,  # it speaks of other points
    ).write(out)
    visits = written.visits
    named = {"subject": visits.subject, "visit": visits.visit}
    facts = record("register", None, shapes, seed=wishes.seed, onto=str(wishes.onto or ""))
    with fresh_file(out / QUALITY) as draft:
        people = zip(visits.subject.tolist(), visits.visit.tolist(), judged.rows(), strict=True)
        each = [{"subject": s, "visit": v, **figures} for s, v, figures in people]
        write_json(draft, judged.summary() | {"visits": each})
    with fresh_file(out / PICTURE) as draft:
        data = {"residual": judged.residual.mean(axis=0)}
        write_vtp(draft, found.template, found.cells, data)
    write_arrays(out / FILE, {**judged.arrays(), **named})
    with fresh_file(out / PROVENANCE) as draft:
        write_json(draft, facts | {"registration": found.provenance})
    if wishes.onto is None:
        found.save(out / FOLDER)
    return judged


def _summary(judged: Quality) -> str:
    figures = judged.summary()
    residual, back = (100 * figures[name]["mean_share"] for name in ("residual", "round_trip"))
    outliers = count(len(figures["outliers"]), "outlier")
    advice = " Poor: training went astray; try a smaller learning_rate, or look at the shapes."
    return (
        f"register: {count(figures['shapes'], 'shape')} of {figures['points']} points; off the "
        f"surface by {residual:.2g}% of the size, round trip {back:.2g}%, "
        f"folds {100 * figures['folds']:.2g}%, {outliers}.{advice if judged.poor else ''}"
    )
