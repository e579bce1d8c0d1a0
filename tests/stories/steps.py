"""Steps of the command line's stories: run a verb, read what it wrote."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
from typer.testing import CliRunner, Result

from prism.cli import app
from tests.problems.broken_models import SETTINGS, small_encoder

POINTS, TRAIN, TEST = 24, 24, 6


def prism(*words: str | Path) -> Result:
    with small_encoder():
        return CliRunner().invoke(app, [str(word) for word in words])


def done(*words: str | Path) -> Result:
    """Run a command that must succeed."""
    result = prism(*words)
    assert result.exit_code == 0, (result.output, result.exception)
    return result


def fitting(cohort: Path, model: Path, *words: str) -> Result:
    return done("fit", cohort, "--out", model, "--preset", "fast", *SETTINGS, *words)


def read_csv(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    with path.open(newline="") as file:
        reader = csv.DictReader(file)
        rows = list(reader)
    return list(reader.fieldnames or []), rows


def read_json(path: Path) -> dict:
    def refuse(text: str) -> None:
        raise ValueError(f"{text} is not JSON")

    return json.loads(path.read_text(), parse_constant=refuse)


def arrays(path: Path) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as stored:
        return dict(stored)


def visits(cohort: Path) -> list[dict[str, str]]:
    return read_csv(cohort / "visits.csv")[1]


def assert_told(path: Path, command: str) -> dict:
    facts = read_json(path)
    assert facts["command"] == command
    assert {"prism", "created", "options"} <= set(facts)
    return facts
