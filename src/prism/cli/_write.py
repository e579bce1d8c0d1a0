"""Writing answers: tables, JSON, maps and their provenance, complete or not at all."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prism.errors import QueryError

if TYPE_CHECKING:
    import numpy as np

    from prism.cohort import Correspondence
    from prism.model import PRISM

PROVENANCE = "provenance.json"
MAPS, IN_MAPS = "maps.npz", ("visit-*.vtp",)


class _ProbeError(Exception):
    """Leaves a draft without finishing it."""


def check_place(path: Path, mark: str, holds: tuple[str, ...] | None = None) -> None:
    """Refuse now, before long work, what could not be written after it."""
    from prism.runs import LEARNED, fresh_folder

    made = [parent for parent in path.parents if not parent.exists()]
    try:
        with fresh_folder(path, mark, LEARNED if holds is None else holds):
            raise _ProbeError
    except _ProbeError:
        pass
    finally:
        for parent in made:
            if parent.exists():
                parent.rmdir()


def record(
    command: str,
    model: PRISM | None = None,
    cohort: Correspondence | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Provenance of an answer: what was asked, of which model, about which data."""
    from prism.runs import fingerprint, provenance

    facts: dict[str, Any] = {"command": command, "options": options}
    if model is not None:
        facts["model"] = model.provenance
    if cohort is not None:
        parts = (cohort.points, cohort.template, cohort.visits.t, cohort.visits.subject)
        facts["data"] = fingerprint(*parts)
        facts["shapes"] = len(cohort)
    return provenance(**facts)


def write_json(path: Path, content: Any) -> None:
    """Write strict JSON: what is not a finite number becomes null."""
    text = json.dumps(_strict(content), indent=2, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")


def _strict(value: Any) -> Any:
    """Replace arrays and numpy numbers by plain ones, and NaN and infinity by None."""
    if isinstance(value, Mapping):
        return {str(key): _strict(item) for key, item in value.items()}
    if isinstance(value, (str, bool, int)) or value is None:
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, (list, tuple)):
        return [_strict(item) for item in value]
    return _strict(value.tolist()) if hasattr(value, "tolist") else str(value)


def check_answer(path: Path, verb: str, maps: Path | None = None) -> None:
    """Refuse now, before long work, to write over what this verb has not written."""
    from prism.runs import check_file, check_folder

    for place in (path.with_suffix(f".{PROVENANCE}"), path):
        check_file(place, verb)
    if maps is not None:
        check_folder(maps, MAPS, IN_MAPS, verb)


def check_cohort_place(out: Path, verb: str) -> None:
    """Refuse now to write over a cohort that this verb has not written."""
    from prism.runs import ANOTHER, verb_of

    if (out / "cohort.toml").exists() and verb_of(out / PROVENANCE) != verb:
        raise QueryError(f"{out} holds a cohort that prism {verb} has not written.", ANOTHER)


@contextmanager
def answer_table(
    path: Path,
    columns: Mapping[str, Sequence[Any]],
    facts: dict[str, Any],
    picture: Path | None = None,
) -> Iterator[None]:
    """Write a CSV and the provenance of it and its picture; both appear only on success."""
    from prism.runs import files_told, fresh_file

    verb, place = facts["command"], path.with_suffix(f".{PROVENANCE}")
    files = {path.name, *([picture.name] if picture else []), *files_told(place)}
    with fresh_file(place, verb) as story, fresh_file(path, verb) as table:
        write_json(story, facts | {"files": sorted(files)})
        _write_csv(table, columns)
        yield


def _write_csv(path: Path, columns: Mapping[str, Sequence[Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_cell(v) for v in row] for row in zip(*columns.values(), strict=True))


def _cell(value: Any) -> str:
    """Text as it is; a number to its last digit; empty where there is no number."""
    if isinstance(value, str):
        return value
    return repr(float(value)) if math.isfinite(value) else ""


def write_maps(
    path: Path, cohort: Correspondence, arrays: Mapping[str, np.ndarray], facts: dict[str, Any]
) -> None:
    """Write per-point maps (N, M): one .npz, and one .vtp a visit, named by its row alone."""
    import numpy as np

    from prism.cohort.files import write_arrays
    from prism.cohort.vtp_file import write_vtp
    from prism.runs import fresh_folder

    with fresh_folder(path, MAPS, IN_MAPS, facts["command"]) as draft:
        named = {"subject": cohort.visits.subject, "visit": cohort.visits.visit}
        write_arrays(draft / MAPS, {**arrays, **named})
        write_json(draft / PROVENANCE, facts)
        index = np.arange(cohort.points.shape[1])
        for row, points in enumerate(cohort.points):
            data = {name: array[row] for name, array in arrays.items()}
            write_vtp(draft / f"visit-{row:04d}.vtp", points, cohort.cells, data | {"point": index})
