"""Raw shapes a user can break: two lines and status 2, or a repair that is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from prism.cli import app
from tests.problems.broken_shapes import NAMED, REFUSED, Maker, write_raw
from tests.problems.good_cohort import FOLDER
from tests.stories.test_broken import assert_refused


@pytest.mark.parametrize("make", REFUSED.values(), ids=REFUSED)
def test_check_refuses_in_two_lines(make: Maker, tmp_path: Path) -> None:
    message = make(tmp_path)
    before = set(tmp_path.rglob("*"))
    result = CliRunner().invoke(app, ["check", str(tmp_path / FOLDER)])
    assert_refused(result, message)
    assert set(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("make", NAMED.values(), ids=NAMED)
def test_check_names_the_repair(make: Maker, tmp_path: Path) -> None:
    message = make(tmp_path)
    result = CliRunner().invoke(app, ["check", str(tmp_path / FOLDER)])
    assert result.exit_code == 0, (result.output, result.exception)
    assert result.stderr == ""
    assert message in result.stdout
    assert "no errors" in result.stdout


def test_fit_asks_for_registration_first(tmp_path: Path) -> None:
    folder = write_raw(tmp_path)
    words = ["fit", str(folder), "--out", str(tmp_path / "model")]
    assert_refused(CliRunner().invoke(app, words), "prism register")
