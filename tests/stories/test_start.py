"""The first second: help and import come at once."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src"


def best_of_three(*words: str) -> float:
    env = {**os.environ, "PYTHONPATH": str(SRC)}
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        subprocess.run([sys.executable, *words], check=True, capture_output=True, env=env)
        seconds.append(time.perf_counter() - started)
    return min(seconds)


@pytest.mark.parametrize(
    ("words", "limit"),
    [
        (("-m", "prism", "--help"), 0.5),
        (("-m", "prism", "--version"), 0.5),
        (("-c", "import prism"), 1.0),
    ],
    ids=["help", "version", "import"],
)
def test_start_is_fast(words: tuple[str, ...], limit: float) -> None:
    assert best_of_three(*words) < limit
