"""Cohort folders with raw shapes: opened without reading, read by row, checked by file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from prism.cohort import Cohort, RawShapes, check_cohort, in_parallel
from prism.cohort.parallel import Advance
from prism.errors import CohortError
from tests.problems.broken_shapes import BAD, NAMED, REFUSED, ROWS, Maker, ball, ply, write_raw
from tests.problems.good_cohort import FOLDER, TOML


def _shapes(folder: Path) -> RawShapes:
    shapes = Cohort.read(folder).shapes
    assert shapes is not None
    return shapes


def test_shapes_are_read_when_asked_for(tmp_path: Path) -> None:
    shapes = _shapes(write_raw(tmp_path, b"rubbish"))
    assert len(shapes) == ROWS
    np.testing.assert_allclose(shapes[3].points, ball(10.3)[0])
    assert shapes[3].length_unit == "mm"
    assert [file.path.name for file in shapes[[7, 1]].files] == ["7.ply", "1.ply"]
    assert len(list(shapes[:4])) == 4
    with pytest.raises(CohortError) as caught:
        shapes[BAD]
    assert caught.value.what.startswith("visits.csv, row 7 (subject 005, visit v0): ")
    assert str(Path("shapes") / f"{BAD}.ply") in caught.value.what


def test_blank_rows_count_as_a_spreadsheet_counts_them(tmp_path: Path) -> None:
    folder = write_raw(tmp_path)
    table = (folder / "visits.csv").read_text().replace("\n003", "\n\n\n003")
    (folder / "visits.csv").write_text(table)
    assert _shapes(folder).files[BAD].where.startswith("visits.csv, row 9 ")


def test_a_cohort_without_files_has_no_raw_shapes(tmp_path: Path) -> None:
    folder = write_raw(tmp_path)
    (folder / "visits.csv").write_text("subject,visit,t,path\na,1,0,\n")
    assert Cohort.read(folder).shapes is None


def test_units_of_the_cohort_win(tmp_path: Path) -> None:
    head = ply(*ball()).replace(b"ascii 1.0\n", b"ascii 1.0\ncomment UNIT=cm\n")
    shapes = _shapes(write_raw(tmp_path, head))
    np.testing.assert_allclose(shapes[BAD].points, 10 * ball()[0])


def test_masks_beside_images_and_labels_are_honoured(tmp_path: Path) -> None:
    folder = tmp_path / FOLDER
    folder.mkdir()
    rows = "a,1,0,ct.nii,seg.nii,3\nb,1,1,mesh.ply,seg.nii,\nc,1,2,,seg.nii,1\n"
    (folder / "visits.csv").write_text("subject,visit,t,path,mask,label\n" + rows)
    files = _shapes(folder).files
    assert [file.path.name for file in files] == ["seg.nii", "mesh.ply", "seg.nii"]
    assert [file.label for file in files] == [3, None, 1]
    table = (folder / "visits.csv").read_text().replace(",3\n", ",liver\n")
    (folder / "visits.csv").write_text(table)
    with pytest.raises(CohortError, match=r"row 2 .*label 'liver'"):
        _ = Cohort.read(folder).shapes


def test_a_copy_elsewhere_leads_to_the_same_files(tmp_path: Path) -> None:
    cohort = Cohort.read(write_raw(tmp_path))
    copy = cohort.write(tmp_path / "new" / "copy")
    again = Cohort.read(tmp_path / "new" / "copy")
    assert again.visits.columns["path"][0] == "../../cohort/shapes/0.ply"
    assert copy.shapes is not None
    np.testing.assert_array_equal(copy.shapes[3].points, _shapes(tmp_path / FOLDER)[3].points)
    cohort.write(tmp_path / FOLDER)
    assert Cohort.read(tmp_path / FOLDER).visits.columns["path"][0] == "shapes/0.ply"


def test_good_shapes_raise_no_suspicion(tmp_path: Path) -> None:
    result = check_cohort(write_raw(tmp_path))
    assert {finding.severity for finding in result.findings} == {"note"}


@pytest.mark.parametrize("make", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_used_is_an_error(make: Maker, tmp_path: Path) -> None:
    message = make(tmp_path)
    errors = [f for f in check_cohort(tmp_path / FOLDER).findings if f.severity == "error"]
    assert len(errors) == 1
    assert message in errors[0].what
    assert "row 7 (subject 005, visit v0)" in errors[0].what or "kinds" in message
    assert errors[0].remedy


@pytest.mark.parametrize("make", NAMED.values(), ids=NAMED)
def test_what_can_be_used_is_said_with_what_is_done(make: Maker, tmp_path: Path) -> None:
    message = make(tmp_path)
    result = check_cohort(tmp_path / FOLDER)
    assert result.ok
    said = [f for f in result.findings if message in f.what]
    assert len(said) == 1
    assert said[0].severity == "warning"
    assert f"row 7 (subject 005, visit v0): {BAD}.ply" in said[0].what
    assert said[0].remedy


def test_many_files_with_one_fault_make_one_warning(tmp_path: Path) -> None:
    folder = write_raw(tmp_path)
    for path in (folder / "shapes").iterdir():
        points, cells = ball()
        path.write_bytes(ply(points, cells[:-1]))
    (finding,) = [f for f in check_cohort(folder).findings if f.severity == "warning"]
    assert finding.what.startswith("holes in 12 of 12 shapes: ")
    assert finding.what.endswith(" and 7 more.")


def test_a_dimension_that_is_not_the_files_is_an_error(tmp_path: Path) -> None:
    result = check_cohort(write_raw(tmp_path, toml=TOML + "dimension = 2\n"))
    assert "not of dimension 2" in result.findings[0].what


def _half(item: int) -> int:
    if item == 6:
        raise CohortError("six.", "Take another.")
    return item // 2


@pytest.mark.parametrize("workers", [1, 2])
def test_work_over_processes_keeps_order_and_errors(workers: int) -> None:
    seen: list[Advance] = []
    assert list(in_parallel(_half, range(5), "half", workers, seen.append)) == [0, 0, 1, 1, 2]
    assert [advance.step for advance in seen] == [1, 2, 3, 4, 5]
    assert seen[-1].seconds_left == 0.0
    with pytest.raises(CohortError) as caught:
        list(in_parallel(_half, range(9), "half", workers))
    assert (caught.value.what, caught.value.remedy) == ("six.", "Take another.")
