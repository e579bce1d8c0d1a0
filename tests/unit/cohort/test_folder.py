"""Cohort folders: read with care, written whole or not at all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from prism.cohort import Cohort, Correspondence, Truth, Visits, require_correspondence
from prism.errors import CohortError
from tests.problems import good_cohort as problems
from tests.problems.broken_cohorts import BROKEN, UNFITTABLE
from tests.problems.good_cohort import FOLDER

NAME = 'a "b" \\ \n \x7f é \U0001f9d2'


def _correspondence(count: int = 4) -> Correspondence:
    visits = Visits(np.arange(count), np.full(count, "v"), np.arange(count, dtype=float))
    cells = np.array([[0, 1], [1, 2]])
    return Correspondence(
        problems.shapes(count), visits, cells=cells, time_unit="y", length_unit="mm", name=NAME
    )


def _truth(count: int) -> Truth:
    arrays = problems.good_truth()
    short = {name: arrays[name][:count] for name in ("tau", "clean", "abnormal")}
    return Truth(**{**arrays, **short})


def _tree(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_folders_are_refused_with_what_and_remedy(tmp_path: Path, kind: str) -> None:
    message = BROKEN[kind](tmp_path)
    with pytest.raises(CohortError) as caught:
        require_correspondence(Cohort.read(tmp_path / FOLDER))
    assert message in str(caught.value)
    assert str(tmp_path / FOLDER) in caught.value.what
    assert len(str(caught.value).splitlines()) == 2
    assert caught.value.remedy.endswith(".")


@pytest.mark.parametrize("kind", UNFITTABLE)
def test_unfittable_folders_can_be_read(tmp_path: Path, kind: str) -> None:
    assert UNFITTABLE[kind](tmp_path)
    assert len(require_correspondence(Cohort.read(tmp_path / FOLDER)))


def test_the_good_folder_is_good(tmp_path: Path) -> None:
    cohort = Cohort.read(problems.write(tmp_path))
    assert (cohort.name, cohort.time_unit, cohort.length_unit) == ("toy", "months", "mm")
    assert cohort.dimension == 2
    shapes = require_correspondence(cohort)
    np.testing.assert_array_equal(shapes.points, problems.shapes())
    np.testing.assert_allclose(shapes.template, problems.shapes().mean(axis=0))
    assert (shapes.name, shapes.time_unit, shapes.length_unit) == ("toy", "months", "mm")


def test_a_folder_needs_no_toml(tmp_path: Path) -> None:
    cohort = Cohort.read(problems.write(tmp_path, toml=None))
    assert (cohort.name, cohort.time_unit, cohort.length_unit) == (FOLDER, "", "")
    assert cohort.dimension == 2


def test_a_folder_needs_no_correspondence(tmp_path: Path) -> None:
    cohort = Cohort.read(problems.write(tmp_path, points=None, toml="dimension = 3"))
    assert cohort.correspondence is None
    assert cohort.dimension == 3


def test_ages_with_units_use_the_cohorts_unit(tmp_path: Path) -> None:
    table = "subject,visit,age\na,1,2 y\nb,1,3\n"
    folder = problems.write(tmp_path, visits=table, points=problems.shapes(2))
    assert Cohort.read(folder).visits.t.tolist() == [24.0, 3.0]


def test_write_then_read_is_the_identity(tmp_path: Path) -> None:
    shapes = _correspondence()
    written = Cohort.from_correspondence(shapes, _truth(4)).write(tmp_path / "new" / "out")
    assert written.path == tmp_path / "new" / "out"
    again = Cohort.read(written.path)
    assert (again.name, again.time_unit, again.length_unit) == (NAME, "y", "mm")
    for name in ("points", "template", "cells"):
        np.testing.assert_array_equal(getattr(again.correspondence, name), getattr(shapes, name))
    assert again.truth is not None
    for name, array in _truth(4).arrays().items():
        np.testing.assert_array_equal(getattr(again.truth, name), array)


def test_the_same_cohort_gives_the_same_bytes(tmp_path: Path) -> None:
    cohort = Cohort.from_correspondence(_correspondence(), _truth(4))
    assert _tree(cohort.write(tmp_path / "a").path) == _tree(cohort.write(tmp_path / "b").path)


def test_writing_over_a_cohort_keeps_its_other_files(tmp_path: Path) -> None:
    folder = Cohort.from_correspondence(_correspondence(), _truth(4)).write(tmp_path / "out").path
    assert folder is not None
    (folder / "shapes").mkdir()
    (folder / "shapes" / "a.ply").write_text("ply")
    (folder / "visits.csv").rename(folder / "visits.tsv")
    small = replace(Cohort.from_correspondence(_correspondence(3)), correspondence=None)
    small.write(folder)
    assert set(_tree(folder)) == {"cohort.toml", "visits.csv", "shapes/a.ply"}
    assert len(Cohort.read(folder).visits) == 3


@pytest.mark.parametrize("empty", [True, False])
def test_only_empty_folders_and_cohorts_are_written_over(tmp_path: Path, empty: bool) -> None:
    cohort = Cohort.from_correspondence(_correspondence())
    (tmp_path / "out").mkdir()
    if empty:
        cohort.write(tmp_path / "out")
        assert len(Cohort.read(tmp_path / "out").visits) == 4
        return
    (tmp_path / "out" / "thesis.doc").write_text("years of work")
    with pytest.raises(CohortError, match="not empty"):
        cohort.write(tmp_path / "out")
    assert set(_tree(tmp_path)) == {"out/thesis.doc"}


def test_a_file_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    with pytest.raises(CohortError, match="is a file"):
        Cohort.from_correspondence(_correspondence()).write(tmp_path / "out")


@pytest.mark.parametrize("existing", [True, False])
def test_a_failed_write_leaves_no_trace(tmp_path: Path, existing: bool, monkeypatch) -> None:
    cohort = Cohort.from_correspondence(_correspondence())
    if existing:
        cohort.write(tmp_path / "out")
    before = _tree(tmp_path)

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("prism.cohort.folder.write_correspondence", fail)
    with pytest.raises(CohortError, match="No space left"):
        Cohort.from_correspondence(_correspondence(3)).write(tmp_path / "out")
    assert _tree(tmp_path) == before
    assert {path.name for path in tmp_path.iterdir()} == ({"out"} if existing else set())


def test_a_visit_that_cannot_be_stored_is_named_by_its_table(tmp_path: Path) -> None:
    visits = Visits(np.array(["a "]), np.array(["1"]), np.array([0.0]))
    with pytest.raises(CohortError, match=r"^visits\.csv, row 2: 'a '"):
        Cohort("x", "", "", None, visits).write(tmp_path / "out")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "change", [{"name": "other"}, {"time_unit": "d"}, {"length_unit": "m"}, {"dimension": 3}]
)
def test_parts_must_belong_together(change: dict) -> None:
    cohort = Cohort.from_correspondence(_correspondence())
    with pytest.raises(CohortError, match=next(iter(change))):
        replace(cohort, **change)


def test_visits_must_belong_to_the_shapes() -> None:
    cohort = Cohort.from_correspondence(_correspondence())
    later = Visits(cohort.visits.subject, cohort.visits.visit, cohort.visits.t + 1)
    with pytest.raises(CohortError, match="different visits"):
        replace(cohort, visits=later)


def test_equal_visits_belong_to_the_shapes_though_ages_are_unknown() -> None:
    visits = Visits(np.array(["a"]), np.array(["1"]), np.array([np.nan]))
    shapes = Correspondence(problems.shapes(1), visits)
    again = Visits(visits.subject.copy(), visits.visit.copy(), visits.t.copy())
    assert Cohort(shapes.name, "", "", 2, again, shapes).correspondence is shapes


def test_truth_must_belong_to_the_shapes() -> None:
    with pytest.raises(CohortError, match=r"tau must have shape \(4, 2\)"):
        Cohort.from_correspondence(_correspondence(), _truth(3))
