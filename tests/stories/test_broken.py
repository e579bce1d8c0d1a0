"""What a user can break ends in two lines and status 2, with nothing left behind."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from prism.cli import app
from tests.problems import broken_cohorts, broken_models
from tests.problems.good_cohort import FOLDER, write

SEEN_BY_FIT_ALONE = {"correspondence missing"}  # a cohort to be registered is no error to check


def prism(*words: str | Path) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def assert_refused(result: Result, message: str) -> None:
    """Two lines on stderr, the first saying what, the second how; status 2; no traceback."""
    assert result.exit_code == 2, (result.output, result.exception)
    lines = result.stderr.splitlines()
    assert len(lines) == 2, result.stderr
    assert lines[0].startswith("prism: ")
    assert lines[1].startswith("  ")
    assert len(lines[1].strip()) > 3
    assert message in result.stderr


def listing(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


@pytest.mark.parametrize("make", broken_cohorts.BROKEN.values(), ids=broken_cohorts.BROKEN)
def test_fit_refuses_a_broken_cohort(make: broken_cohorts.Maker, tmp_path: Path) -> None:
    message = make(tmp_path)
    before = listing(tmp_path)
    assert_refused(prism("fit", tmp_path / FOLDER, "--out", tmp_path / "new" / "model"), message)
    assert listing(tmp_path) == before


READ = {k: v for k, v in broken_cohorts.BROKEN.items() if k not in SEEN_BY_FIT_ALONE}


@pytest.mark.parametrize("make", READ.values(), ids=READ)
def test_check_finds_what_is_broken(make: broken_cohorts.Maker, tmp_path: Path) -> None:
    message = make(tmp_path)
    result = prism("check", tmp_path / FOLDER)
    assert_refused(result, "")
    assert message in result.output
    assert "error: " in result.stdout


@pytest.mark.parametrize("make", broken_cohorts.UNFITTABLE.values(), ids=broken_cohorts.UNFITTABLE)
def test_fit_refuses_what_cannot_be_learned(make: broken_cohorts.Maker, tmp_path: Path) -> None:
    message = make(tmp_path)
    assert prism("check", tmp_path / FOLDER).exit_code == 0
    before = listing(tmp_path)
    assert_refused(prism("fit", tmp_path / FOLDER, "--out", tmp_path / "new" / "model"), message)
    assert listing(tmp_path) == before


def test_fit_names_the_visit_without_age_among_held_out_subjects(tmp_path: Path) -> None:
    # Whichever subject is held out, its missing age must be seen.
    from tests.problems.good_cohort import table

    for row in (1, 5, 23):
        place = tmp_path / str(row)
        place.mkdir()
        subject = table().splitlines()[row].split(",")[0]
        write(place, visits=table(lambda x, row=row: x.__setitem__(row, x[row][:6] + ",")))
        result = prism("fit", place / FOLDER, "--out", place / "model")
        assert_refused(result, f"subject {subject}")


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A good cohort and a good model of it."""
    folder = tmp_path_factory.mktemp("good")
    words = ["--subjects", "20", "--resolution", "24", "--visits", "4", "--noise", "0.02"]
    assert prism("simulate", "starman-g", "--out", folder / "cohort", *words).exit_code == 0
    with broken_models.small_encoder():
        words = ["--preset", "fast", "--set", "steps=20", *broken_models.SETTINGS]
        result = prism("fit", folder / "cohort", "--out", folder / "model", *words)
    assert result.exit_code == 0, (result.output, result.exception)
    return folder


@pytest.mark.parametrize("make", broken_models.BROKEN.values(), ids=broken_models.BROKEN)
def test_a_broken_model_is_refused(make: broken_models.Maker, good: Path, tmp_path: Path) -> None:
    model, cohort = tmp_path / "model", tmp_path / "cohort"
    shutil.copytree(good / "model", model)
    shutil.copytree(good / "cohort", cohort)
    message = make(model, cohort)
    before = listing(tmp_path)
    assert_refused(prism("time", model, cohort, "--out", tmp_path / "new" / "t.csv"), message)
    assert listing(tmp_path) == before


@pytest.mark.parametrize("verb", ["predict", "anomaly", "evaluate", "report"])
def test_every_verb_refuses_a_cohort_that_does_not_fit(
    verb: str, good: Path, tmp_path: Path
) -> None:
    pytest.importorskip("pyvista")
    cohort = tmp_path / "cohort"
    shutil.copytree(good / "cohort", cohort)
    message = broken_models.BROKEN["cohort of other points"](good / "model", cohort)
    rule = ["--rule", "mean"] if verb == "predict" else []
    out = tmp_path / "out"
    assert_refused(prism(verb, good / "model", cohort, "--out", out, *rule), message)
    assert not out.exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("fly", "No such command"),
        ("--fly", "No such option"),
        ("fit", "Missing argument"),
        ("fit COHORT", "--out"),
        ("fit COHORT --out OUT --preset huge", "huge"),
        ("fit COHORT --out OUT --device tpu", "tpu"),
        ("fit COHORT --out OUT --seed -1", "--seed"),
        ("fit COHORT --out OUT --set wings=2", "wings"),
        ("fit COHORT --out OUT --set steps", "NAME=VALUE"),
        ("fit COHORT --out OUT --set steps=1.5", "whole number"),
        ("fit COHORT --out OUT --set steps=0", "steps must be at least 1"),
        ("fit COHORT --out OUT --set smoothness=nan", "finite number"),
        ("fit COHORT --out COHORT", "model.toml"),
        ("fit COHORT --out COHORT/visits.csv", "is a file"),
        ("fit COHORT --out COHORT/visits.csv/model", "Not a directory"),
        ("trajectory MODEL --at one --out OUT", "--at"),
        ("trajectory MODEL --at 1,inf --out OUT", "finite"),
        ("trajectory MODEL --at 1,, --out OUT", "--at"),
        ("time MODEL COHORT --out COHORT", "is a folder"),
        ("time MODEL COHORT --out COHORT/visits.csv/t.csv", "visits.csv"),
        ("time MODEL COHORT --out OUT/t.csv --maps COHORT", "maps.npz"),
        ("predict MODEL COHORT --out OUT --rule hope", "hope"),
        ("evaluate MODEL COHORT --out OUT --split dev", "dev"),
        ("simulate starman-x --out OUT", "starman-x"),
        ("simulate starman-g --out OUT --subjects 0", "subjects"),
        ("simulate starman-g --out MODEL --subjects 3", "not a cohort folder"),
    ],
)
def test_a_wrong_request_is_refused(words: str, message: str, good: Path, tmp_path: Path) -> None:
    if "--maps" in words or words.startswith("predict"):
        pytest.importorskip("pyvista")
    for name in ("model", "cohort"):
        shutil.copytree(good / name, tmp_path / name)
    before = listing(tmp_path)
    places = {
        "MODEL": tmp_path / "model",
        "COHORT": tmp_path / "cohort",
        "OUT": tmp_path / "out",
    }
    for name, path in places.items():
        words = words.replace(name, str(path))
    assert_refused(prism(*words.split()), message)
    assert listing(tmp_path) - before <= {tmp_path / "out"}
    assert not list(tmp_path.glob("out/*"))


def test_full_disk_takes_two_lines(
    good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", "t.csv")

    monkeypatch.setattr("prism.cli._write._write_csv", full)
    out = tmp_path / "t.csv"
    assert_refused(prism("time", good / "model", good / "cohort", "--out", out), "No space left")
    assert not listing(tmp_path)


def test_a_defect_of_prism_is_not_hidden(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr("prism.cohort.check_cohort", fail)
    result = prism("check", tmp_path)
    assert result.exit_code == 1
    assert isinstance(result.exception, ZeroDivisionError)
