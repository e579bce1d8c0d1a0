"""Bytes in, bytes out: text and .npz files read with care and written all or not at all."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.lib.npyio import NpzFile

from prism.errors import CohortError

_CORRUPT = (
    *(ValueError, EOFError, OSError, KeyError, RuntimeError, MemoryError),
    *(zipfile.BadZipFile, zlib.error),
)


@contextmanager
def naming(where: object) -> Iterator[None]:
    """Put the file, or the row of it, in front of any cohort error raised inside."""
    try:
        yield
    except CohortError as error:
        raise CohortError(f"{where}: {error.what}", error.remedy) from error


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say in the user's words that a place cannot be written to."""
    try:
        yield
    except OSError as error:
        raise CohortError(
            f"{path} cannot be written: {error.strerror or error}.",
            "Choose a place you may write to that has free space.",
        ) from error


def beside(path: Path) -> Path:
    """Return a fresh hidden name next to the path, with the same suffix, for work in progress."""
    return path.with_name(f".{path.stem}-{uuid4().hex[:8]}{path.suffix}")


def read_text(path: Path) -> str:
    """Read UTF-8 text, with or without a byte-order mark."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CohortError(
            f"{path} is not UTF-8 text: byte {error.start + 1} does not belong there.",
            "Save it again as UTF-8 (in Excel: Save As, CSV UTF-8).",
        ) from error
    except OSError as error:
        raise _unreadable(path, error) from error


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary file that takes the path's place only if nothing goes wrong."""
    part = beside(path)
    with writing(path):
        try:
            yield part
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Read every array of an .npz file; never runs code stored in it."""
    try:
        with path.open("rb") as file, NpzFile(file, allow_pickle=False) as stored:
            return {name: _entry(path, stored, name) for name in stored.files}
    except (FileNotFoundError, PermissionError, IsADirectoryError) as error:
        raise _unreadable(path, error) from error
    except _CORRUPT as error:
        raise CohortError(
            f"{path} is not a complete .npz file: {_first_line(error)}.",
            "Write it again with np.savez; if it was copied, copy it again.",
        ) from error


def _entry(path: Path, stored: NpzFile, name: str) -> np.ndarray:
    """Read one array; say so when it holds Python objects."""
    try:
        return np.asarray(stored[name])
    except ValueError as error:
        if "allow_pickle" not in str(error):
            raise
        raise CohortError(
            f"{path}: {name} holds Python objects, not numbers.",
            f"Store np.asarray({name}, dtype=float); rows of unequal length cannot be stored.",
        ) from error


def write_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write an .npz file: the same arrays give the same bytes."""
    with replacing(path) as part, zipfile.ZipFile(part, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asarray(array), allow_pickle=False)


def _first_line(error: BaseException) -> str:
    """Say in one line what a library complained about."""
    return (str(error) or type(error).__name__).splitlines()[0].rstrip(".")


def _unreadable(path: Path, error: OSError) -> CohortError:
    return CohortError(
        f"{path} cannot be read: {error.strerror or error}.",
        "Check that the file is there and that you may read it.",
    )
