"""Provenance and safe folders: what made an output, and never half an output."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
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


@contextmanager
def fresh_folder(path: Path, mark: str) -> Iterator[Path]:
    """Yield a draft folder that takes its final name only when the block succeeds.

    Args:
        path: Final folder. An existing one is replaced only if it is empty or holds `mark`.
        mark: File that tells a folder of this kind.
    """
    path = Path(path)
    if path.exists() and not path.is_dir():
        raise QueryError(f"{path} is a file, a folder was expected.", "Choose another --out.")
    if path.is_dir() and any(path.iterdir()) and not (path / mark).exists():
        raise QueryError(
            f"folder {path} is not empty and holds no {mark}.",
            "Choose a new folder for --out, so that nothing of yours is overwritten.",
        )
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


@contextmanager
def fresh_file(path: Path) -> Iterator[Path]:
    """Yield a draft file that takes its final name only when the block succeeds."""
    path = Path(path)
    if path.is_dir():
        raise QueryError(f"{path} is a folder, a file was expected.", "Name a file for --out.")
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.stem}.draft{path.suffix}")
    try:
        yield draft
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
