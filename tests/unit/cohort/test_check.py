"""`prism check`: every error is found, good data raise no suspicion, odd data do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from prism.cohort import check_cohort
from tests.problems.broken_cohorts import BROKEN, UNFITTABLE
from tests.problems.good_cohort import FOLDER, SUBJECTS, VISITS, shapes, table, write

COUNT = SUBJECTS * VISITS


def _said(tmp_path: Path, severity: str, **parts: Any) -> list[str]:
    result = check_cohort(write(tmp_path, **parts))
    return [finding.what for finding in result.findings if finding.severity == severity]


def _changed(change: Callable[[np.ndarray], Any]) -> np.ndarray:
    points = shapes()
    change(points)
    return points


def _column(name: str, values: list[str]) -> str:
    return table(
        lambda x: x.__setitem__(
            slice(None), [f"{a},{b}" for a, b in zip(x, [name, *values], strict=True)]
        )
    )


def _ages(t: np.ndarray) -> str:
    rows = [f"{row:03d},v,{time}" for row, time in enumerate(t)]
    return "\n".join(["subject,visit,t", *rows])


def test_good_data_raise_no_suspicion(tmp_path: Path) -> None:
    result = check_cohort(write(tmp_path))
    assert result.ok
    assert [finding.severity for finding in result.findings] == ["note"]
    expected = "toy: 12 subjects, 24 visits, ages 0 to 8.75 months, 7 points, dimension 2."
    assert result.findings[0].what == expected


@pytest.mark.parametrize("kind", sorted(set(BROKEN) - {"correspondence missing"}))
def test_every_broken_folder_is_an_error(tmp_path: Path, kind: str) -> None:
    message = BROKEN[kind](tmp_path)
    result = check_cohort(tmp_path / FOLDER)
    assert not result.ok
    assert result.findings[0].severity == "error"
    assert any(message in f.what for f in result.findings if f.severity == "error")


@pytest.mark.parametrize("kind", UNFITTABLE)
def test_every_unfittable_folder_is_a_warning(tmp_path: Path, kind: str) -> None:
    message = UNFITTABLE[kind](tmp_path)
    result = check_cohort(tmp_path / FOLDER)
    assert result.ok
    assert any(message in f.what for f in result.findings if f.severity == "warning")


def test_errors_of_several_files_are_collected(tmp_path: Path) -> None:
    visits = table(lambda x: x.__setitem__(slice(1, 3), ["000,v0,soon", "000,v1,late"]))
    folder = write(tmp_path, toml="dimension = 'x'", visits=visits)
    (folder / "correspondence.npz").write_bytes(b"PK")
    errors = [f.what for f in check_cohort(folder).findings if f.severity == "error"]
    assert len(errors) == 4
    for part in ("cohort.toml", "row 2", "row 3", "correspondence.npz"):
        assert any(part in what for what in errors)


def test_a_flood_of_errors_is_cut_short(tmp_path: Path) -> None:
    errors = _said(tmp_path, "error", visits=_ages(np.array(["x"] * 50)), points=shapes(50))
    assert len(errors) == 21
    assert errors[-1] == "30 more errors are not shown."


def test_a_folder_without_shapes_is_told_to_register(tmp_path: Path) -> None:
    result = check_cohort(write(tmp_path, points=None))
    assert result.ok
    assert any("prism register" in finding.remedy for finding in result.findings)


def test_raw_shapes_are_not_read_once_there_is_correspondence(tmp_path: Path) -> None:
    visits = _column("path", ["shapes/a.ply"] * COUNT)
    assert check_cohort(write(tmp_path, visits=visits)).ok
    (tmp_path / FOLDER / "correspondence.npz").unlink()
    assert not check_cohort(tmp_path / FOLDER).ok


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ('length_unit = "mm"', "time_unit"),
        ('time_unit = "y"', "length_unit"),
        ('time_unit = "y"\nlength_unit = "mm"\ntimeunit = "d"', "timeunit"),
    ],
)
def test_unstated_units_are_a_warning(tmp_path: Path, toml: str, message: str) -> None:
    (warning,) = _said(tmp_path, "warning", toml=toml)
    assert message in warning


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: p.__setitem__(5, p[2]), "shape 3 (subject 001, visit v0) and shape 6"),
        (lambda p: p.__setitem__((3, slice(4)), np.nan), "shape 4 (subject 001, visit v1) misses"),
        (lambda p: p.__setitem__(8, 1e3 * p[8]), "times the usual size"),
        (lambda p: p.__setitem__(8, 4.0 * p[8]), "shape 9 (subject 004, visit v0) is 3.6"),
        (lambda p: p.__setitem__(8, 0.25 * p[8]), "shape 9 (subject 004, visit v0) is 0.2"),
        (lambda p: p.__setitem__((slice(None), 2), 1.0), "points that never move: 2 (1 in all)"),
        (lambda p: p.__setitem__((7, 5), 30.0), "shape 8 (subject 003, visit v1) has points"),
    ],
)
def test_one_oddity_gives_one_warning(
    tmp_path: Path, change: Callable[[np.ndarray], Any], message: str
) -> None:
    (warning,) = _said(tmp_path, "warning", points=_changed(change))
    assert message in warning


def test_flat_shapes_in_space_are_not_still(tmp_path: Path) -> None:
    flat = np.concatenate([shapes(), np.zeros((COUNT, shapes().shape[1], 1))], axis=-1)
    assert not _said(tmp_path, "warning", points=flat)


def test_growth_is_not_a_unit_error(tmp_path: Path) -> None:
    t = np.linspace(0.0, 18.0, 60)
    growing = shapes(60) * (1 + t / 4)[:, None, None]
    assert not _said(tmp_path, "warning", visits=_ages(t), points=growing)


def test_one_unit_for_the_young_and_another_for_the_old_is_seen(tmp_path: Path) -> None:
    t = np.linspace(0.0, 18.0, 60)
    mixed = shapes(60) * np.where(t < 6, 1e-3, 1.0)[:, None, None]
    assert len(_said(tmp_path, "warning", visits=_ages(t), points=mixed)) >= (t < 6).sum()


@pytest.mark.parametrize(
    ("t", "message"),
    [
        ([*np.linspace(1, 3, 23), 300.0], "ages far from the others: 300 of subject 023"),
        ([*np.linspace(0, 1, 12), *np.linspace(9, 10, 12)], "no visit between the ages 1 and 9"),
        ([np.nan, *np.linspace(0, 1, 23)], "unknown age: 1 of 24 visits"),
        ([2.0] * 24, "only one age (2)"),
    ],
)
def test_odd_ages_give_one_warning(tmp_path: Path, t: list[float], message: str) -> None:
    (warning,) = _said(tmp_path, "warning", visits=_ages(np.array(t)))
    assert message in warning


def test_few_subjects_are_a_warning(tmp_path: Path) -> None:
    visits = table(lambda x: x.__delitem__(slice(-6, None)))
    (warning,) = _said(tmp_path, "warning", visits=visits, points=shapes(18))
    assert warning.startswith("only 9 subjects")


def test_single_visits_are_a_note(tmp_path: Path) -> None:
    notes = _said(tmp_path, "note", visits=_ages(np.linspace(0, 1, COUNT)))
    assert "every subject has one visit: no longitudinal information." in notes


def test_some_single_visits_are_counted(tmp_path: Path) -> None:
    visits = table(lambda x: x.pop())
    notes = _said(tmp_path, "note", visits=visits, points=shapes(COUNT - 1))
    assert "1 of 12 subjects have one visit only." in notes


def test_splits_are_summarised(tmp_path: Path) -> None:
    visits = _column("split", ["train"] * 20 + ["test"] * 4)
    assert "visits by split: train 20, test 4." in _said(tmp_path, "note", visits=visits)


def test_a_subject_in_two_splits_is_an_error(tmp_path: Path) -> None:
    visits = _column("split", ["train"] * 19 + ["test"] * 5)
    (error,) = _said(tmp_path, "error", visits=visits)
    assert error == "subject 009 is in several splits: test, train."
