"""A fit that is killed or interrupted goes on where it stopped, to the same bits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from prism.cli import app
from tests.problems.broken_models import SETTINGS, small_encoder

ROOT = Path(__file__).parents[2]
WEIGHTS = ("population.safetensors", "encoder.safetensors", "arrays.safetensors")
OPTIONS = ["--preset", "fast", "--device", "cpu", *SETTINGS]
STEPS = 400
# A job in the background of a shell is born deaf to SIGINT, and so are its children.
SCRIPT = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from tests.problems.broken_models import small_encoder
from prism.cli.main import run
with small_encoder():
    run()
"""


def command(cohort: Path, model: Path, *words: str) -> list[str]:
    steps = ["--set", f"steps={STEPS}", "--set", "patience=1000"]
    return ["fit", str(cohort), "--out", str(model), *OPTIONS, *steps, *words]


def start(words: list[str]) -> subprocess.Popen[str]:
    env = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "OMP_NUM_THREADS": "1"}
    call = [sys.executable, "-c", SCRIPT, *words]
    return subprocess.Popen(
        call, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def finish(words: list[str]) -> str:
    process = start(words)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return err


def stop_half_way(words: list[str], number: signal.Signals) -> tuple[int, str]:
    """Send a signal once the fifth of twenty checks has been told; return status and stderr."""
    process = start(words)
    assert process.stderr is not None
    told = []
    for line in process.stderr:
        told.append(line)
        if line.startswith(f"population {STEPS // 4}/"):
            process.send_signal(number)
            break
    else:
        pytest.fail(f"the fit ended by itself: {told}")
    rest = process.stderr.read()
    return process.wait(timeout=60), rest


def bits(model: Path) -> dict[str, bytes]:
    return {name: (model / name).read_bytes() for name in WEIGHTS}


@pytest.fixture(scope="module")
def cohort(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("resume") / "cohort"
    words = ["--subjects", "20", "--resolution", "24", "--visits", "4", "--noise", "0.02"]
    result = CliRunner().invoke(app, ["simulate", "starman-g", "--out", str(folder), *words])
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture(scope="module")
def whole(cohort: Path) -> dict[str, bytes]:
    """Weights of a fit that nothing disturbed."""
    model = cohort.parent / "whole"
    finish(command(cohort, model))
    return bits(model)


def test_killed_and_resumed_is_the_same_to_the_bit(
    cohort: Path, whole: dict[str, bytes], tmp_path: Path
) -> None:
    model = tmp_path / "model"
    status, _ = stop_half_way(command(cohort, model), signal.SIGKILL)
    assert status == -signal.SIGKILL
    assert not model.exists()
    assert (tmp_path / "model.partial" / "population.ckpt").exists()
    told = finish(command(cohort, model, "--resume"))
    assert f"population {STEPS // 20}/" not in told, "the first checks were not repeated"
    assert bits(model) == whole
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_interrupt_says_how_to_go_on_to_the_same_bits(
    cohort: Path, whole: dict[str, bytes], tmp_path: Path
) -> None:
    model = tmp_path / "model"
    status, told = stop_half_way(command(cohort, model), signal.SIGINT)
    assert status == 130
    last = told.splitlines()[-2:]
    assert last[0].startswith("prism: stopped")
    assert "--resume" in last[1]
    assert "Traceback" not in told
    assert [path.name for path in tmp_path.iterdir()] == ["model.partial"]
    finish(command(cohort, model, "--resume"))
    assert bits(model) == whole
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def fit_here(
    cohort: Path, model: Path, *words: str, steps: int = 60, seed: int = 0
) -> tuple[int, str]:
    call = ["fit", str(cohort), "--out", str(model), *OPTIONS, "--seed", str(seed)]
    with small_encoder():
        result = CliRunner().invoke(app, [*call, "--set", f"steps={steps}", *words])
    return result.exit_code, result.output


@pytest.mark.parametrize(
    ("phase", "members"), [("population", 1), ("population-2", 3), ("encoder", 1)]
)
def test_interrupted_between_steps_is_the_same_to_the_bit(
    phase: str, members: int, cohort: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["--set", f"members={members}"]
    assert fit_here(cohort, tmp_path / "whole", *words)[0] == 0

    def interrupt(update: Any) -> None:
        if update.phase == phase and update.step >= update.steps // 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("prism.cli._progress._line", interrupt)
        status, told = fit_here(cohort, tmp_path / "model", *words)
    assert status == 130
    assert "--resume" in told
    assert not (tmp_path / "model").exists()
    assert fit_here(cohort, tmp_path / "model", "--resume", *words)[0] == 0
    assert bits(tmp_path / "model") == bits(tmp_path / "whole")


def test_resume_refuses_another_run_and_keeps_its_checkpoints(
    cohort: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(update: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("prism.cli._progress._line", interrupt)
        fit_here(cohort, tmp_path / "model")
    status, told = fit_here(cohort, tmp_path / "model", "--resume", seed=1)
    assert status == 2
    assert "another cohort, configuration or seed" in told
    assert (tmp_path / "model.partial" / "population.ckpt").exists()
    (tmp_path / "model.partial" / "population.ckpt").write_bytes(b"damaged")
    status, told = fit_here(cohort, tmp_path / "model", "--resume")
    assert status == 2
    assert "cannot be read" in told
    assert "Traceback" not in told


def test_nothing_to_resume_starts_from_the_beginning(cohort: Path, tmp_path: Path) -> None:
    status, told = fit_here(cohort, tmp_path / "model", "--resume", steps=20)
    assert status == 0
    assert "nothing to resume" in told
