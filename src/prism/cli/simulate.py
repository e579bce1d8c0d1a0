"""`prism simulate`: a cohort whose truth is known."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prism.cli._common import OutFolder, count, say
from prism.cli._write import PROVENANCE, check_cohort_place, record, write_json
from prism.errors import QueryError

if TYPE_CHECKING:
    from prism.simulate import Study

LARGEST_SEED = 2**31 - 1
Seed = Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="Same seed, same result.")]


class Kind(StrEnum):
    """Cohorts that can be simulated."""

    starman_g = "starman-g"
    starman_l = "starman-l"
    tubes = "tubes"
    anny = "anny"


def simulate(
    kind: Annotated[
        Kind,
        typer.Argument(
            help="A man with one pace for the body, or one a region; growing tubes; bodies 0-20 y."
        ),
    ],
    out: OutFolder,
    subjects: Annotated[
        int | None, typer.Option(help="Training subjects [default: 1000; tubes: 200].")
    ] = None,
    test_subjects: Annotated[
        int | None, typer.Option(help="Further subjects, split `test` [default: 0; anny: 100].")
    ] = None,
    seed: Seed = 0,
    noise: Annotated[
        float | None,
        typer.Option(help="Noise on every coordinate (length units) [default: 0; tubes: 0.2]."),
    ] = None,
    missing: Annotated[
        float | None, typer.Option(help="Share of points removed from a shape [default: 0].")
    ] = None,
    resolution: Annotated[
        int | None, typer.Option(help="Points: starman [default: 100], anny [default: 2500].")
    ] = None,
    visits: Annotated[
        int | None, typer.Option(help="Most visits a subject [default: 9; tubes: 1].")
    ] = None,
    traits: Annotated[
        float | None, typer.Option(help="Starman: spread of shape traits other than pace.")
    ] = None,
    drift: Annotated[
        float | None, typer.Option(help="Starman: rate at which a subject's pace forgets itself.")
    ] = None,
    abnormal: Annotated[
        int | None, typer.Option(help="Tubes: further subjects with a narrowing, split `test`.")
    ] = None,
    calibration: Annotated[
        str | None, typer.Option(help="ANNY: ages of `makehuman` [default] or of its `package`.")
    ] = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="Write the shapes as files too, for `prism register`.")
    ] = False,
) -> None:
    """Simulate a cohort with its truth."""
    from prism.runs import fresh_file

    check_cohort_place(out, "simulate")
    wishes = {
        "subjects": subjects,
        "test_subjects": test_subjects,
        "seed": seed,
        "noise": noise,
        "missing": missing,
        "resolution": resolution,
        "visits": visits,
        "traits": traits,
        "drift": drift,
        "abnormal": abnormal,
        "calibration": calibration,
    }
    maker = _maker(kind)
    options = _options(kind, maker, {name: v for name, v in wishes.items() if v is not None})
    study = maker(**options)
    study.write(out, raw)
    with fresh_file(out / PROVENANCE) as draft:
        write_json(
            draft,
            record("simulate", None, study.correspondence, **options | {"kind": kind, "raw": raw}),
        )
    people = count(len(study.correspondence.visits.subjects), "subject")
    shapes, points = count(len(study), "shape"), study.correspondence.points.shape[1]
    say(f"simulate: {people}, {shapes} of {points} points. Wrote {out}")


def _maker(kind: Kind) -> Callable[..., Study]:
    from prism.simulate import anny, starman, tubes

    if kind is Kind.tubes:
        return tubes
    if kind is Kind.anny:
        return anny
    return partial(starman, kind="global" if kind is Kind.starman_g else "local")


def _options(kind: Kind, maker: Callable[..., Study], wishes: dict[str, Any]) -> dict[str, Any]:
    """Every option of this kind: what was wished for, else its default."""
    defaults = {name: option.default for name, option in signature(maker).parameters.items()}
    for name in wishes.keys() - defaults.keys():
        option = f"--{name.replace('_', '-')}"
        raise QueryError(f"{kind} cohorts have no option {option}.", f"Leave {option} out.")
    return defaults | wishes
