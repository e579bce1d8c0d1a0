"""One tiny cohort from simulate to demo: files, messages, exit codes."""

from __future__ import annotations

import shutil
from dataclasses import fields
from pathlib import Path

import pytest

from prism.cli import demo
from tests.problems.broken_models import SETTINGS
from tests.stories.steps import (
    POINTS,
    TEST,
    TRAIN,
    arrays,
    assert_told,
    done,
    fitting,
    prism,
    read_json,
    visits,
)


def test_simulate_writes_a_cohort_with_truth(home: Path) -> None:
    cohort = home / "cohort"
    rows = visits(cohort)
    assert arrays(cohort / "correspondence.npz")["points"].shape == (len(rows), POINTS, 2)
    assert arrays(cohort / "truth" / "truth.npz")["tau"].shape == (len(rows), 2)
    assert len({row["subject"] for row in rows if row["split"] == "test"}) == TEST
    facts = assert_told(cohort / "provenance.json", "simulate")
    assert facts["options"]["seed"] == 1
    assert "no errors" in done("check", cohort).stdout


def test_fit_learns_from_split_train_and_cleans_up(home: Path) -> None:
    train = sum(row["split"] == "train" for row in visits(home / "cohort"))
    facts = read_json(home / "model" / "provenance.json")
    assert (facts["subjects"], facts["shapes"]) == (TRAIN, train)
    said = (home / "said.txt").read_text()
    assert f"{train} of {len(visits(home / 'cohort'))} rows in split train" in said
    assert f"Wrote {home / 'model'}" in said
    assert not (home / "model.partial").exists()
    last = (home / "progress.txt").read_text().splitlines()[-1]
    assert last.startswith("encoder 40/40: loss")
    assert "held-out" in (home / "progress.txt").read_text()


def test_fit_leaves_out_patients(home: Path, tmp_path: Path) -> None:
    cohort = tmp_path / "cohort"
    shutil.copytree(home / "cohort", cohort)
    lines = (cohort / "visits.csv").read_text().splitlines()
    groups = ["group", *["Healthy", "", "control", "normal"] * 100]
    for row in (3, 4):
        groups[row] = "stenosis"
    table = [",".join([line, group]) for line, group in zip(lines, groups, strict=False)]
    (cohort / "visits.csv").write_text("\n".join(table) + "\n")
    result = fitting(cohort, tmp_path / "model", "--set", "steps=20")
    assert "left out 2 rows" in result.stdout
    train = sum(row["split"] == "train" for row in visits(cohort))
    assert read_json(tmp_path / "model" / "provenance.json")["shapes"] == train - 2
    sick = "\n".join([table[0], *(line + "x" for line in table[1:])])
    (cohort / "visits.csv").write_text(sick + "\n")
    refused = prism("fit", cohort, "--out", tmp_path / "none")
    assert refused.exit_code == 2
    assert "names no normal subject" in refused.stderr


def test_fit_discards_an_old_unfinished_fit(home: Path, tmp_path: Path) -> None:
    partial = tmp_path / "model.partial"
    partial.mkdir()
    (partial / "population.ckpt").write_bytes(b"old")
    result = fitting(home / "cohort", tmp_path / "model", "--set", "steps=20")
    assert "discarded the unfinished fit" in result.stdout
    assert not partial.exists()


def test_fit_never_deletes_what_is_not_a_checkpoint(home: Path, tmp_path: Path) -> None:
    partial = tmp_path / "model.partial"
    partial.mkdir()
    (partial / "thesis.docx").write_text("years of work")
    result = prism("fit", home / "cohort", "--out", tmp_path / "model")
    assert result.exit_code == 2
    assert (partial / "thesis.docx").exists()


def test_a_setting_reaches_the_model(home: Path, tmp_path: Path) -> None:
    fitting(home / "cohort", tmp_path / "m", "--set", "steps=20", "--set", "noise_floor=0.5")
    config = read_json(tmp_path / "m" / "provenance.json")["config"]
    assert (config["steps"], config["noise_floor"], config["width"]) == (20, 0.5, 16)


def test_help_of_fit_lists_every_setting() -> None:
    from prism.population import PopulationConfig

    text = " ".join(done("fit", "--help").stdout.split())
    for setting in fields(PopulationConfig):
        assert f"{setting.name}={setting.default} " in text
        assert setting.metadata["help"].split(";")[0] in text


def test_doctor_never_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(doctor_extras(), "wings", ("no-such-package-here", "flying"))
    result = done("doctor")
    assert "no-such-package-here missing (flying)" in " ".join(result.stdout.split())
    assert "pip install no-such-package-here" in result.stdout
    assert "torch" in result.stdout


def doctor_extras() -> dict:
    from prism.cli import doctor

    return doctor.EXTRAS


def test_demo_ends_with_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyvista")
    from dataclasses import replace

    from prism.population import PRESETS

    small = {"SUBJECTS": 24, "TEST_SUBJECTS": 6}
    for name, value in small.items():
        monkeypatch.setattr(demo, name, value)
    monkeypatch.setitem(
        PRESETS, "fast", replace(PRESETS["fast"], width=16, hidden=1, steps=250, members=1)
    )
    result = done("demo", "--out", tmp_path / "demo")
    assert result.stdout.splitlines()[-1] == str(tmp_path / "demo" / "report" / "report.html")
    assert (tmp_path / "demo" / "report" / "report.html").exists()
    names = {path.name for path in (tmp_path / "demo").iterdir()}
    files = {"times.csv", "times.provenance.json", "anomaly.csv", "anomaly.provenance.json"}
    folders = {"cohort", "model", "trajectory", "predictions", "report"}
    assert names == files | folders | {"metrics.json"}


def test_a_terminal_shows_a_bar(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "150")
    result = fitting(home / "cohort", tmp_path / "model", "--set", "steps=40")
    assert "\x1b[" in result.stderr
    assert all(text in result.stderr for text in ("population", "encoder", "loss", "held-out"))


def test_version_and_bare_call() -> None:
    import prism as library

    assert done("--version").stdout == f"prism {library.__version__}\n"
    assert done().stdout == done("--help").stdout
    assert all(verb in done("--help").stdout for verb in ("fit", "time", "doctor"))


def test_full_disk_keeps_the_checkpoints(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import safetensors.torch
    from safetensors import SafetensorError

    def full(*_: object) -> None:
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    with monkeypatch.context() as patch:
        patch.setattr(safetensors.torch, "save_file", full)
        words = ["--preset", "fast", *SETTINGS, "--set", "steps=20"]
        result = prism("fit", home / "cohort", "--out", tmp_path / "model", *words)
    assert result.exit_code == 2
    assert "is the disk full?" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["model.partial"]
    fitting(home / "cohort", tmp_path / "model", "--set", "steps=20", "--resume")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
