"""Landmarks of `prism register`: matched by their names, nothing is learned."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from prism.cli._common import count
from prism.cli._write import PROVENANCE, record, write_json
from prism.errors import CohortError

if TYPE_CHECKING:
    from prism.cohort import Cohort
    from prism.cohort.pose import Keep

ENDING = ".mrk.json"
KEEPS: dict[str, Keep | None] = {"none": None, "rigid": "size", "similarity": "form"}


def are_landmarks(source: Cohort) -> bool:
    """True where every visit names a file of landmarks."""
    raw = source.shapes
    return raw is not None and all(f.path.name.lower().endswith(ENDING) for f in raw.files)


def register_landmarks(source: Cohort, out: Path, align: str | None, onto: Path | None) -> str:
    """Match landmarks by name, take off their pose if asked, write the cohort; say what was done.

    New visits are posed as the known ones were.
    """
    from prism.cohort import Cohort, match_landmarks, require_correspondence
    from prism.cohort import align as lay_upon
    from prism.runs import fresh_file

    raw = source.shapes
    if raw is None:
        raise CohortError("no raw shapes are named.", "Add a column path to visits.csv.")
    known = None if onto is None else require_correspondence(Cohort.read(onto))
    align = align or _aligned(onto)
    matched = match_landmarks(list(raw), source.visits, known, [f.name for f in raw.files])
    keep = KEEPS[align]
    if keep is not None:
        matched = lay_upon(matched, keep, None if known is None else known.template)
    unit = source.length_unit or raw[0].length_unit
    shapes = replace(
        matched,
        time_unit=source.time_unit, length_unit=unit, name=source.name,
    )  # fmt: skip
    replace(
        source, length_unit=unit, dimension=shapes.dimension, correspondence=shapes, truth=None
    ).write(out)
    with fresh_file(out / PROVENANCE) as draft:
        write_json(draft, record("register", None, shapes, align=align, onto=str(onto or "")))
    gone = 100 * float((~shapes.observed).mean())
    landmarks = count(len(shapes.template), "landmark")
    return (
        f"register: {landmarks} of {count(len(shapes), 'visit')} matched"
        f"{' by name' if shapes.regions else ''}, {gone:.2g}% of them missing. Wrote {out}"
    )


def _aligned(known: Path | None) -> str:
    """How a cohort matched before was posed."""
    file = None if known is None else known / PROVENANCE
    if file is None or not file.is_file():
        return "none"
    try:
        align = json.loads(file.read_text(encoding="utf-8"))["options"].get("align", "none")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CohortError(f"{file} cannot be read: {error}.", "Give --align.") from error
    return align if align in KEEPS else "none"
