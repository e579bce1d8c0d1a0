"""cohort.toml: name, time unit, length unit, dimension and named regions of a cohort."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from prism.cohort.files import naming, read_text, replacing
from prism.cohort.regions import as_regions
from prism.errors import CohortError

FILE = "cohort.toml"
_KINDS: dict[str, type] = {"name": str, "time_unit": str, "length_unit": str, "dimension": int}
REGIONS = "regions"
_BARE = re.compile("[A-Za-z0-9_-]+")  # a key that TOML reads without quotes


@dataclass(frozen=True)
class Settings:
    """What cohort.toml states; every entry is optional in the file.

    Attributes:
        name: Name of the cohort. Default: the folder's name.
        time_unit: Unit of the ages, e.g. "months".
        length_unit: Unit of the points, e.g. "mm".
        dimension: Space dimension, 2 or 3; None when the file does not say.
        regions: Name -> point indices, the table [regions].
        unknown: Keys of the file that have no meaning here.
    """

    name: str
    time_unit: str = ""
    length_unit: str = ""
    dimension: int | None = None
    regions: Mapping[str, np.ndarray] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()


def read_settings(folder: Path) -> Settings:
    """Read cohort.toml; a cohort without one has no units and the folder's name."""
    path = folder / FILE
    default = folder.resolve().name
    if not path.exists():
        return Settings(name=default)
    with naming(path):
        entries = _load(read_text(path))
        known = {key: _entry(key, entries[key]) for key in _KINDS if key in entries}
        regions = as_regions(entries.get(REGIONS, {}))
    unknown = tuple(key for key in entries if key not in (*_KINDS, REGIONS))
    return Settings(**{"name": default, **known}, regions=regions, unknown=unknown)


def write_settings(settings: Settings, folder: Path) -> None:
    """Write cohort.toml; an unknown dimension is left out."""
    values = {key: getattr(settings, key) for key in _KINDS}
    lines = [f"{key} = {_toml(value)}\n" for key, value in values.items() if value is not None]
    lines += [f"\n[{REGIONS}]\n"] if settings.regions else []
    lines += [f"{_key(k)} = {_toml(v.tolist())}\n" for k, v in settings.regions.items()]
    with replacing(folder / FILE) as part:
        part.write_bytes("".join(lines).encode("utf-8"))


def _load(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CohortError(
            f"not valid TOML: {error}.", 'Write lines such as time_unit = "months".'
        ) from error


def _entry(key: str, value: Any) -> Any:
    """Check one entry's type, and that the dimension is one the house can handle."""
    kind = _KINDS[key]
    if type(value) is not kind:
        expected = "text in quotes" if kind is str else "a whole number"
        example = f'{key} = "..."' if kind is str else f"{key} = 3"
        raise CohortError(f"{key} must be {expected}. Got {value!r} instead.", f"Write {example}.")
    if key == "dimension" and value not in (2, 3):
        raise CohortError(f"dimension must be 2 or 3. Got {value} instead.", "Correct it.")
    return value


def _key(name: str) -> str:
    """Write a name as a key, in quotes where TOML wants them."""
    return name if _BARE.fullmatch(name) else _toml(name)


def _toml(value: str | int | list[int]) -> str:
    """Write a value as TOML; its basic strings are JSON's, but that DEL must be escaped."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
