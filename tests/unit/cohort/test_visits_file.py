"""visits.csv as spreadsheets write it: read exactly, or refused with the row named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from prism.cohort import Visits
from prism.cohort.ages import parse_age, same_unit
from prism.cohort.visits_file import find_visits, read_visits, scan_visits, write_visits
from prism.errors import CohortError


def _read(tmp_path: Path, content: str | bytes, unit: str = "", name: str = "visits.csv") -> Visits:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_visits(path, unit)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_any_spreadsheet_dialect_gives_the_same_visits(
    tmp_path: Path, delimiter: str, newline: str, mark: bytes
) -> None:
    rows = [" Subject ", "VISIT", "Age", "Split", "MMSE"], ["001", "a", "1.5", "train", "28"]
    text = newline.join(delimiter.join(row) for row in (*rows, ["002", "a", "", "test", ""]))
    visits = _read(tmp_path, mark + text.encode())
    assert visits.subject.tolist() == ["001", "002"]
    assert visits.t[0] == 1.5
    assert np.isnan(visits.t[1])
    assert visits.columns["split"].tolist() == ["train", "test"]
    assert visits.columns["MMSE"].tolist() == ["28", ""]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2.5", 2.5),
        ("-0.75", -0.75),
        ("\N{MINUS SIGN}3", -3.0),
        ("1e-3", 1e-3),
        (" 7 ", 7.0),
        ("2,5", 2.5),
        ("0,125", 0.125),
        ("1234,5", 1234.5),
        ("23 months", 23.0),
        ("23months", 23.0),
        ("2.5 y", 30.0),
        ("2,5 Years", 30.0),
        ("365.25 d", 12.0),
        ("3 weeks", 3 * 7 / 30.4375),
    ],
)
def test_ages_are_read_in_months(text: str, value: float) -> None:
    assert parse_age(text, "months") == value


@pytest.mark.parametrize("text", ["", " ", "n/a", "N/A", "na", "NaN"])
def test_unknown_ages_are_nan(text: str) -> None:
    assert np.isnan(parse_age(text))


@pytest.mark.parametrize(
    "text", ["1,234", "-1,234", "12,345 d", "1_000", "1 000", "1.2.3", "1,2,3", "3,", "two", "0x1f"]
)
def test_ages_are_never_guessed(text: str) -> None:
    with pytest.raises(CohortError, match="age '"):
        parse_age(text, "months")


@pytest.mark.parametrize("text", ["inf", "-Infinity", "∞", "1e999", "1e308 y"])
def test_infinite_ages_are_refused(text: str) -> None:
    with pytest.raises(CohortError, match="infinite"):
        parse_age(text, "days")


@pytest.mark.parametrize("unit", ["", "normalised"])
def test_an_age_with_a_unit_needs_a_known_cohort_unit(unit: str) -> None:
    with pytest.raises(CohortError, match=r"'3 weeks' carries a unit.*\n.*time_unit"):
        parse_age("3 weeks", unit)


def test_an_age_in_the_cohorts_own_odd_unit_needs_no_conversion() -> None:
    assert parse_age("3 moons", "moons") == 3.0


def test_a_unit_of_time_has_several_names() -> None:
    assert same_unit("day", "Days ")
    assert same_unit("year", "years")
    assert same_unit("yr", "y")
    assert same_unit("moons", "moons")
    assert not same_unit("days", "weeks")
    assert not same_unit("moon", "moons")
    assert not same_unit("days", "")


def test_with_semicolons_a_comma_is_decimal(tmp_path: Path) -> None:
    assert _read(tmp_path, "subject;visit;t\na;1;1,234\n").t[0] == 1.234


def test_with_semicolons_and_points_a_point_is_decimal(tmp_path: Path) -> None:
    assert _read(tmp_path, "subject;visit;t\na;1;1.234\n").t[0] == 1.234


def test_with_semicolons_and_commas_a_point_may_group_thousands(tmp_path: Path) -> None:
    with pytest.raises(CohortError, match=r"row 3: age '1\.234' is ambiguous: 1234 or 1\.234"):
        _read(tmp_path, "subject;visit;t\na;1;0,5\nb;1;1.234\n")


def test_rows_are_numbered_as_a_spreadsheet_shows_them(tmp_path: Path) -> None:
    text = 'subject,visit,t,note\na,1,0,"two\nlines"\n\nb,1,soon,\n'
    with pytest.raises(CohortError, match=r"visits\.csv, row 4: age 'soon'"):
        _read(tmp_path, text)


@pytest.mark.parametrize("header", ["t_error", "T_error", " t_error "])
def test_errors_of_ages_are_read_as_ages_are(tmp_path: Path, header: str) -> None:
    text = f'subject,visit,t,{header}\na,1,2,"1,5"\nb,1,2,30.4375 days\nc,1,2,n/a\nd,1,,0\n'
    (tmp_path / "visits.csv").write_text(text)
    visits = read_visits(tmp_path / "visits.csv", "months")
    assert visits.t_error.tolist() == [1.5, 1.0, 0.0, 0.0]
    assert visits.columns["t_error"].tolist() == ["1.5", "1.0", "", "0.0"]
    write_visits(visits, tmp_path / "again.csv")
    assert read_visits(tmp_path / "again.csv").t_error.tolist() == visits.t_error.tolist()


@pytest.mark.parametrize(
    ("text", "message"),
    [("-1", "below zero"), ("soon", "not a number"), ("inf", "infinite"), ("2 days", "time unit")],
)
def test_errors_of_ages_are_refused_by_row(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(CohortError, match=rf"visits\.csv, row 3: t_error '{text}'.* {message}"):
        _read(tmp_path, f"subject,visit,t,t_error\na,1,0,\nb,1,1,{text}\n")


def test_scan_collects_every_problem(tmp_path: Path) -> None:
    path = tmp_path / "visits.csv"
    path.write_text("subject,visit,t\na,1,x\n,1,0\nb,1\na,1,0\nc,1,1\n")
    visits, problems = scan_visits(path)
    assert visits is None
    rows = [problem.what.split("visits.csv, ")[1].split(":")[0] for problem in problems]
    assert rows == ["row 2", "row 3", "row 4", "row 5 repeats row 2"]


@pytest.mark.parametrize("name", ["visits.csv", "visits.tsv"])
def test_written_visits_read_back_exactly(tmp_path: Path, name: str) -> None:
    t = np.array([0.1 + 0.2, np.nan, -1e-300])
    columns = {"site": np.array(["Köln", 'a "b", c;\td', ""]), "X y": np.array(["1", "2", "3"])}
    visits = Visits(np.array(["001", "1e5", "na"]), np.array(["1", "1", "1"]), t, columns)
    write_visits(visits, tmp_path / name)
    again = read_visits(tmp_path / name)
    np.testing.assert_array_equal(again.t, t)
    assert again.subject.tolist() == visits.subject.tolist()
    assert {k: v.tolist() for k, v in again.columns.items()} == {
        k: v.tolist() for k, v in columns.items()
    }
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_tsv_is_written_with_tabs(tmp_path: Path) -> None:
    write_visits(Visits(np.array(["a"]), np.array(["1"]), np.array([1.0])), tmp_path / "visits.tsv")
    assert (tmp_path / "visits.tsv").read_bytes() == b"subject\tvisit\tt\na\t1\t1.0\n"


@pytest.mark.parametrize(
    ("subject", "columns", "message"),
    [
        (" a", {}, "row 2: ' a' would be read back as 'a'"),
        ("", {}, "row 2: subject is empty"),
        ("a", {"Split": ["x"]}, "row 1: 'Split' would be read back as 'split'"),
        ("a", {"AGE": ["x"]}, "more than once"),
    ],
)
def test_what_would_not_survive_is_not_written(
    tmp_path: Path, subject: str, columns: dict, message: str
) -> None:
    visits = Visits(np.array([subject]), np.array(["1"]), np.array([1.0]), columns)
    with pytest.raises(CohortError, match=message):
        write_visits(visits, tmp_path / "visits.csv")
    assert not list(tmp_path.iterdir())


def test_a_failed_write_leaves_the_old_table(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "visits.csv"
    write_visits(Visits(np.array(["a"]), np.array(["1"]), np.array([1.0])), path)
    before = path.read_bytes()

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(CohortError, match="No space left"):
        write_visits(Visits(np.array(["b"]), np.array(["1"]), np.array([2.0])), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_holds_one_table(tmp_path: Path) -> None:
    with pytest.raises(CohortError, match="Found 0"):
        find_visits(tmp_path)
    (tmp_path / "visits.tsv").touch()
    assert find_visits(tmp_path).name == "visits.tsv"
