"""Provenance and safe folders: what made an output, and never half an output."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from prism.errors import QueryError


def fingerprint(*parts: Any) -> str:
    """Sixteen hex digits that change when any array, text or number among the parts does."""
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray) and part.dtype.kind in "fiub":
            digest.update(f"{part.shape}{part.dtype}".encode())
            digest.update(np.ascontiguousarray(part).data.cast("B"))
        elif isinstance(part, np.ndarray):
            digest.update(json.dumps(part.tolist()).encode())
        else:
            digest.update(json.dumps(part, sort_keys=True, default=str).encode())
    return digest.hexdigest()[:16]


def provenance(**facts: Any) -> dict[str, Any]:
    """Record of what made an output: version, platform, time, and the given facts."""
    from prism import __version__

    return {
        "prism": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        **facts,
    }


PROVENANCE = "provenance.json"
ANOTHER = "Choose another --out (or --maps), so that nothing of yours is lost."
LEARNED = ("*.safetensors", "card.md")  # in the folder of a model or of a registration
_OF_THE_DESKTOP = frozenset({".DS_Store", "Thumbs.db", "desktop.ini"})


def _foreign(folder: Path, ours: tuple[str, ...]) -> list[str]:
    """Entries of a folder that fit none of the patterns of what PRISM writes there."""
    folders = {parent.as_posix() for name in ours for parent in PurePath(name).parents}
    entries = {p.relative_to(folder).as_posix(): p for p in folder.rglob("*")}
    return sorted(
        name
        for name, entry in entries.items()
        if entry.name not in _OF_THE_DESKTOP
        and not (name in folders if entry.is_dir() else _matches(name, ours))
    )


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    """True where a pattern fits, folder by folder."""
    parts = PurePath(name).parts
    wanted = (PurePath(pattern).parts for pattern in patterns)
    return any(len(w) == len(parts) and all(map(fnmatchcase, parts, w)) for w in wanted)


@contextmanager
def fresh_folder(
    path: Path, mark: str, holds: tuple[str, ...] = LEARNED, verb: str = ""
) -> Iterator[Path]:
    """Yield a draft folder that takes its final name only when the block succeeds.

    Args:
        path: Final folder. An existing one is replaced only if it is empty, or holds `mark` and
            nothing that PRISM did not write.
        mark: File that tells a folder of this kind.
        holds: Patterns of the other files in such a folder, beside provenance.json.
        verb: The command whose folder it is, where several write this kind.
    """
    path = Path(path)
    check_folder(path, mark, holds, verb)
    draft = path.with_name(f".{path.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    try:
        yield draft
        if path.is_dir():
            shutil.rmtree(path)
        draft.rename(path)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def check_folder(folder: Path, mark: str, holds: tuple[str, ...], verb: str = "") -> None:
    """Refuse a folder of another kind, of another verb, or with files of the user in it."""
    if folder.exists() and not folder.is_dir():
        raise QueryError(f"{folder} is a file, a folder was expected.", "Choose another --out.")
    if not folder.is_dir() or not any(folder.iterdir()):
        return
    if not (folder / mark).exists():
        raise QueryError(f"folder {folder} is not empty and holds no {mark}.", ANOTHER)
    teller = verb_of(folder / PROVENANCE)
    if verb and teller != verb:
        by = f"was written by prism {teller}" if teller else f"was not written by prism {verb}"
        raise QueryError(f"folder {folder} {by}.", ANOTHER)
    foreign = _foreign(folder, (mark, PROVENANCE, *holds))
    if foreign:
        rest = f" and {len(foreign) - 1} more" if len(foreign) > 1 else ""
        raise QueryError(
            f"folder {folder} would be replaced, but {foreign[0]}{rest} in it was not written by "
            "PRISM.",
            "Move what is yours elsewhere, or choose another --out (or --maps).",
        )


def check_file(path: Path, verb: str) -> None:
    """Refuse a place where something lies that this verb has not written; an empty file is nothing.

    An earlier answer tells its verb itself (JSON) or in FILE.provenance.json beside it, which
    lists the files it speaks of.
    """
    path = Path(path)
    if path.is_dir():
        raise QueryError(f"{path} is a folder, a file was expected.", "Name a file for --out.")
    if not path.exists() or not path.stat().st_size or verb_of(path) == verb:
        return
    story = path.with_suffix(f".{PROVENANCE}")
    if verb_of(story) != verb or path.name not in _read(story).get("files", [path.name]):
        raise QueryError(f"{path} exists and was not written by prism {verb}.", ANOTHER)


def files_told(story: Path) -> list[str]:
    """Files beside it of which a provenance file speaks and that are still there."""
    told = _read(story).get("files", [])
    return [name for name in told if (story.parent / str(name)).exists()]


def verb_of(path: Path) -> str:
    """The command that a JSON file says has made it; nothing where it says none."""
    told = _read(path)
    inner = told.get("provenance")
    told = inner if isinstance(inner, dict) else told
    return str(told.get("command", ""))


def _read(path: Path) -> dict[str, Any]:
    if path.suffix.lower() != ".json" or not path.is_file():
        return {}
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}


@contextmanager
def fresh_file(path: Path, verb: str = "") -> Iterator[Path]:
    """Yield a draft file that takes its final name only when the block succeeds.

    Args:
        path: Final file.
        verb: The command whose earlier answer it may replace; without one the folder is known to
            be PRISM's, and so is the file.
    """
    path = Path(path)
    if verb:
        check_file(path, verb)
    elif path.is_dir():
        raise QueryError(f"{path} is a folder, a file was expected.", "Name a file for --out.")
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.stem}.draft{path.suffix}")
    try:
        yield draft
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
