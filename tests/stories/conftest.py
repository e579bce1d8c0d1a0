"""A home with a cohort and a model, made by the command line itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stories.steps import POINTS, TEST, TRAIN, done, fitting


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a cohort of two splits and a model of it."""
    folder = tmp_path_factory.mktemp("home")
    words = ["--subjects", TRAIN, "--test-subjects", TEST, "--resolution", POINTS]
    more = ["--visits", 4, "--noise", 0.02, "--seed", 1]
    done("simulate", "starman-l", "--out", folder / "cohort", *map(str, words + more))
    result = fitting(folder / "cohort", folder / "model", "--set", "steps=300")
    (folder / "said.txt").write_text(result.stdout)
    (folder / "progress.txt").write_text(result.stderr)
    return folder


@pytest.fixture
def both(home: Path) -> tuple[Path, Path]:
    return home / "model", home / "cohort"
