"""From raw contours to correspondence on the command line: learn, follow, resume, refuse."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from prism.cli.register import _warn_of_hours
from prism.cohort import Cohort, write_shape
from prism.errors import CohortError
from prism.registration import preset, read_quality
from prism.training import Runtime
from tests.problems.ellipses import axes, ellipse
from tests.stories.steps import arrays, assert_told, done, prism, read_json

SETTINGS = {
    "code": 4,
    "width": 24,
    "hidden": 1,
    "template_width": 24,
    "template_hidden": 1,
    "template_omega": 4,
    "steps": 220,
    "shapes": 6,
    "surface": 30,
    "near": 30,
    "box": 15,
    "jacobians": 15,
    "learning_rate": 0.01,
    "onto_steps": 40,
    "vertices": 30,
}
SMALL = [word for name, value in SETTINGS.items() for word in ("--set", f"{name}={value}")]


def raw_cohort(folder: Path, count: int = 9, columns: dict[str, list[str]] | None = None) -> Path:
    """Ellipses as .csv files beside a table that names them."""
    (folder / "shapes").mkdir(parents=True)
    (folder / "cohort.toml").write_text('name = "ovals"\ntime_unit = "years"\nlength_unit = "mm"\n')
    more = columns or {}
    with (folder / "visits.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["subject", "visit", "t", "path", *more])
        for i, (a, b) in enumerate(axes(count)):
            name = f"shapes/{i}.csv"
            write_shape(ellipse(a, b, (a, b)), folder / name)
            table.writerow([f"s{i}", "v1", i, name, *(column[i] for column in more.values())])
    return folder


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("register")
    raw_cohort(folder / "raw", columns={"split": ["train"] * 7 + ["test"] * 2})
    told = done("register", folder / "raw", "--out", folder / "done", "--device", "cpu", *SMALL)
    (folder / "said.txt").write_text(told.stdout)
    return folder


def test_a_cohort_in_correspondence_comes_out(home: Path) -> None:
    said = (home / "said.txt").read_text()
    assert "learned from 7 of 9 rows" in said
    assert "9 shapes of 30 points" in said
    cohort = Cohort.read(home / "done")
    assert cohort.correspondence is not None
    assert cohort.correspondence.points.shape == (9, 30, 2)
    assert (cohort.length_unit, cohort.time_unit, cohort.dimension) == ("mm", "years", 2)
    reach = np.ptp(cohort.correspondence.points, axis=1) / 2
    np.testing.assert_allclose(reach, axes(9), rtol=0.12)
    assert cohort.shapes is not None  # the table still leads to the raw shapes
    assert cohort.shapes[0].kind == "contour"
    assert not (home / "done.partial").exists()


def test_the_quality_is_told(home: Path) -> None:
    told = read_json(home / "done" / "quality.json")
    assert told["shapes"] == len(told["visits"]) == 9
    assert told["residual"]["mean_share"] < 0.03
    assert told["folds"] == 0
    assert {"subject", "visit", "residual", "round_trip", "folds", "outlier"} == set(
        told["visits"][0]
    )
    assert (home / "done" / "template.vtp").is_file()
    stored = arrays(home / "done" / "quality.npz")
    assert stored["residual"].shape == (9, 30)
    assert stored["subject"].tolist() == [f"s{i}" for i in range(9)]
    assert_told(home / "done" / "provenance.json", "register")


def test_the_report_shows_it(home: Path) -> None:
    done("fit", home / "done", "--out", home / "model", "--device", "cpu", "--preset", "fast",
         "--set", "steps=20", "--set", "members=1")  # fmt: skip
    done("report", home / "model", home / "done", "--out", home / "report")
    page = (home / "report" / "report.html").read_text()
    assert "How well the shapes were registered" in page
    assert (home / "report" / "figures" / "correspondence.png").is_file()


def test_a_broken_quality_file_is_refused_by_name(home: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "quality.npz", residual=np.ones((2, 3)))
    with pytest.raises(CohortError, match=r"quality\.npz: subject is missing"):
        read_quality(tmp_path)
    assert read_quality(tmp_path / "elsewhere") is None


def test_new_shapes_follow_the_known_template(home: Path, tmp_path: Path) -> None:
    raw_cohort(tmp_path / "new", count=3)
    done("register", tmp_path / "new", "--out", tmp_path / "out", "--onto", home / "done")
    first, second = (Cohort.read(f).correspondence for f in (home / "done", tmp_path / "out"))
    assert first is not None
    assert second is not None
    assert np.array_equal(first.template, second.template)
    reach = np.ptp(second.points, axis=1) / 2
    np.testing.assert_allclose(reach, axes(3), rtol=0.12)
    refused = prism(
        "register",
        tmp_path / "new",
        "--out",
        tmp_path / "x",
        "--onto",
        home / "done",
        "--set",
        "steps=3",
    )
    assert refused.exit_code == 2
    assert "--onto" in refused.stderr


def test_a_stopped_registration_goes_on_to_the_same_bits(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("register", home / "raw", "--out", tmp_path / "out", "--device", "cpu", *SMALL)

    def interrupt(update: Any) -> None:
        if update.step >= update.steps // 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("prism.cli._progress._line", interrupt)
        assert prism(*words).exit_code == 130
    assert not (tmp_path / "out").exists()
    done(*words, "--resume")
    whole, resumed = (
        Cohort.read(folder).correspondence for folder in (home / "done", tmp_path / "out")
    )
    assert whole is not None
    assert resumed is not None
    assert np.array_equal(whole.points, resumed.points)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--onto", "nowhere"], "not a registration"),
        (["--set", "nonsense=3"], "known name"),
        (["--set", "steps=0"], "at least 1"),
        (["--align", "affine"], "affine"),
    ],
)
def test_what_cannot_be_done_is_refused(tmp_path: Path, words: list[str], told: str) -> None:
    raw_cohort(tmp_path / "raw", count=3)
    result = prism("register", tmp_path / "raw", "--out", tmp_path / "out", *words)
    assert result.exit_code == 2
    assert told in result.stderr
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "out.partial").exists()


def test_a_cohort_without_raw_shapes_is_refused(home: Path, tmp_path: Path) -> None:
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "visits.csv").write_text("subject,visit,t\na,1,2\nb,1,3\n")
    result = prism("register", tmp_path / "bare", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "path" in result.stderr
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    result = prism("register", home / "raw", "--out", tmp_path / "full")
    assert result.exit_code == 2
    assert "not a cohort folder" in result.stderr


@pytest.mark.parametrize(("kind", "ending"), [("starman-g", ".csv"), ("tubes", ".ply")])
def test_a_simulated_cohort_goes_the_whole_way(tmp_path: Path, kind: str, ending: str) -> None:
    raw = tmp_path / "raw"
    done("simulate", kind, "--out", raw, "--subjects", 4, "--raw")
    cohort = Cohort.read(raw)
    assert cohort.shapes is not None
    assert cohort.correspondence is not None
    assert {Path(file).suffix for file in cohort.visits.columns["path"]} == {ending}
    for shape, points in zip(cohort.shapes, cohort.correspondence.points, strict=True):
        np.testing.assert_allclose(shape.points, points, atol=1e-5 * np.abs(points).max())
    assert "no errors" in done("check", raw).stdout
    if kind == "starman-g":
        done("register", raw, "--out", tmp_path / "done", "--device", "cpu", *SMALL)
        found = Cohort.read(tmp_path / "done").correspondence
        assert found is not None
        assert len(found) == len(cohort.visits)


@pytest.mark.parametrize(
    ("name", "dimension", "told"), [("default", 3, True), ("fast", 3, False), ("default", 2, False)]
)
def test_hours_are_told_of_before_they_pass(
    name: str, dimension: int, told: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    _warn_of_hours(preset(name, dimension), dimension, Runtime("cpu"))
    assert ("--preset fast" in capsys.readouterr().out) == told


def test_shapes_with_gaps_are_not_written_as_files(tmp_path: Path) -> None:
    words = ("--subjects", 4, "--missing", 0.2, "--raw")
    refused = prism("simulate", "starman-g", "--out", tmp_path / "raw", *words)
    assert refused.exit_code == 2
    assert "leave out --raw" in refused.stderr
    assert not (tmp_path / "raw").exists()
