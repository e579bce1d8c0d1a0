"""The first second: help and import come at once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src"


def best_of_three(*words: str) -> float:
    """Seconds at work, which others on the machine do not stretch as they do the clock's."""
    env = {**os.environ, "PYTHONPATH": str(SRC)}
    seconds = []
    for _ in range(3):
        started = _children_worked()
        subprocess.run([sys.executable, *words], check=True, capture_output=True, env=env)
        seconds.append(_children_worked() - started)
    return min(seconds)


def _children_worked() -> float:
    spent = os.times()
    return spent.children_user + spent.children_system


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
