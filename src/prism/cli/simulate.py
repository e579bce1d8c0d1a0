"""`prism simulate`: a cohort whose truth is known."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from prism.cli._common import OutFolder, count, say
from prism.cli._write import PROVENANCE, record, write_json

LARGEST_SEED = 2**31 - 1
Seed = Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="Same seed, same result.")]


class Kind(StrEnum):
    """Cohorts that can be simulated."""

    starman_g = "starman-g"
    starman_l = "starman-l"


def simulate(
    kind: Annotated[Kind, typer.Argument(help="One pace for the whole body, or one a region.")],
    out: OutFolder,
    subjects: Annotated[int, typer.Option(help="Training subjects.")] = 1000,
    test_subjects: Annotated[int, typer.Option(help="Further subjects, split `test`.")] = 0,
    seed: Seed = 0,
    noise: Annotated[float, typer.Option(help="Noise on every coordinate (units).")] = 0.0,
    missing: Annotated[float, typer.Option(help="Share of points removed from a shape.")] = 0.0,
    resolution: Annotated[int, typer.Option(help="Points of the outline.")] = 100,
    visits: Annotated[int, typer.Option(help="Most visits a subject.")] = 9,
) -> None:
    """Simulate a cohort with its truth."""
    from prism.runs import fresh_file
    from prism.simulate import starman

    options = {
        "subjects": subjects,
        "test_subjects": test_subjects,
        "seed": seed,
        "noise": noise,
        "missing": missing,
        "resolution": resolution,
        "visits": visits,
    }
    study = starman("global" if kind is Kind.starman_g else "local", **options)
    study.write(out)
    with fresh_file(out / PROVENANCE) as draft:
        write_json(draft, record("simulate", None, study.correspondence, kind=kind, **options))
    people = count(len(study.correspondence.visits.subjects), "subject")
    say(f"simulate: {people}, {count(len(study), 'shape')} of {resolution} points. Wrote {out}")
