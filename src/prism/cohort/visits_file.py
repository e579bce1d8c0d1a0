"""visits.csv and visits.tsv: who was seen, and when, as a spreadsheet writes it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from prism.cohort.ages import ERROR_COLUMN, parse_age, parse_age_error
from prism.cohort.files import naming, read_text, replacing
from prism.cohort.values import Visits
from prism.errors import CohortError

REQUIRED = ("subject", "visit", "t")
_ALIASES = {"age": "t"}
_KNOWN = frozenset({*REQUIRED, ERROR_COLUMN, "path", "group", "sex", "site", "split", "mask"})


@dataclass(frozen=True)
class _Table:
    """The cells of a file: `rows` maps the row number a spreadsheet shows to its cells."""

    path: Path
    delimiter: str
    header: list[str]
    rows: dict[int, list[str]]


def read_visits(path: Path, time_unit: str = "") -> Visits:
    """Read a visits table.

    Args:
        path: A UTF-8 file delimited by comma, semicolon or tab.
        time_unit: The cohort's time unit, into which ages that carry a unit are converted.

    Raises:
        CohortError: The first thing wrong with the table, with its row.
    """
    visits, problems = scan_visits(path, time_unit)
    if visits is None:
        raise problems[0]
    return visits


def scan_visits(path: Path, time_unit: str = "") -> tuple[Visits | None, list[CohortError]]:
    """Read a visits table and collect everything wrong with it; no visits if anything is."""
    try:
        return _parse(path, read_text(path), time_unit)
    except CohortError as error:
        return None, [error]


def write_visits(visits: Visits, path: Path) -> None:
    """Write a visits table, tab-delimited for .tsv, so that it reads back exactly.

    Raises:
        CohortError: A name or a cell would not survive the trip (e.g. it starts with a space).
    """
    text = _text(visits, "\t" if path.suffix == ".tsv" else ",")
    again, problems = _parse(Path(path.name), text, "")
    if again is None:
        raise problems[0]
    _check_survival(_cells(visits), _cells(again), path.name)
    with replacing(path) as part:
        part.write_bytes(text.encode("utf-8"))


def find_visits(folder: Path) -> Path:
    """Return the one visits table of a cohort folder."""
    found = [folder / name for name in ("visits.csv", "visits.tsv") if (folder / name).exists()]
    if len(found) == 1:
        return found[0]
    raise CohortError(
        f"{folder} must hold one table visits.csv (or visits.tsv). Found {len(found)}.",
        "Keep one of the two." if found else "Add visits.csv with columns subject, visit, t.",
    )


def row_numbers(path: Path) -> list[int]:
    """The row of each visit as a spreadsheet numbers it: blank rows count."""
    return list(_read_table(path, read_text(path)).rows)


def _parse(path: Path, text: str, time_unit: str) -> tuple[Visits | None, list[CohortError]]:
    """Turn text into visits, or into the list of what is wrong."""
    table = _read_table(path, text)
    grouping = _grouping(table)
    times, errors, problems = [], [], []
    for row in table.rows:
        try:
            with naming(f"{path}, row {row}"):
                _check_row(table, row)
                named = dict(zip(table.header, table.rows[row], strict=True))
                times.append(parse_age(named["t"], time_unit, grouping))
                errors.append(parse_age_error(named.get(ERROR_COLUMN, ""), time_unit, grouping))
        except CohortError as error:
            problems.append(error)
    problems += _repeats(table)
    return (None if problems else _visits(table, times, errors)), problems


def _read_table(path: Path, text: str) -> _Table:
    """Split text into a header and numbered rows, skipping rows that are wholly empty."""
    delimiter = _sniff(text)
    try:
        records = list(_reader(text, delimiter))
    except csv.Error as error:
        raise CohortError(f"{path}: {error}.", "Quote whole cells, and close quotes.") from error
    cells = {i: [c.strip() for c in record] for i, record in enumerate(records, start=1)}
    rows = {i: row for i, row in cells.items() if any(row)}
    if len(rows) < 2:
        raise CohortError(
            f"{path} holds no visits: {'only a header' if rows else 'the file is empty'}.",
            "Write a header subject, visit, t and one row a visit.",
        )
    first = min(rows)
    with naming(f"{path}, row {first}"):
        header = _header(rows.pop(first))
    return _Table(path, delimiter, header, rows)


def _reader(text: str, delimiter: str) -> Iterator[list[str]]:
    lines = io.StringIO(text, newline="")
    return csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=True)


def _sniff(text: str) -> str:
    """Return the delimiter that shows most of the required columns in the header."""
    header = next((line for line in text.splitlines() if line.strip(" \t,;")), "")

    def score(delimiter: str) -> tuple[int, int]:
        names = [_canonical(cell.strip(' \t"')) for cell in header.split(delimiter)]
        return len(set(names) & set(REQUIRED)), len(names)

    return max(",;\t", key=score)


def _canonical(name: str) -> str:
    """Lower-case the names the contract fixes; leave the user's own columns as they are."""
    lower = name.strip().lower()
    lower = _ALIASES.get(lower, lower)
    return lower if lower in _KNOWN else name.strip()


def _header(cells: list[str]) -> list[str]:
    """Check the column names and give the fixed ones their canonical spelling."""
    names = [_canonical(cell) for cell in cells]
    if "" in names:
        raise CohortError(
            f"column {names.index('') + 1} has no name.", "Name the column, or delete it."
        )
    folded = [name.lower() for name in names]
    for name in folded:
        if folded.count(name) > 1:
            twice = "t (or age)" if name == "t" else name
            raise CohortError(f"column {twice} appears more than once.", "Keep one of them.")
    for name in REQUIRED:
        if name not in names:
            raise CohortError(
                f"column {name} is missing. Found: {', '.join(names)}.",
                "The table needs the columns subject, visit and t (or age).",
            )
    return names


def _grouping(table: _Table) -> str:
    """Which mark may group thousands here: with semicolons, the one that is not decimal."""
    if table.delimiter != ";":
        return ","
    ages = [i for i, name in enumerate(table.header) if name in ("t", ERROR_COLUMN)]
    commas = any("," in row[i] for row in table.rows.values() for i in ages if len(row) > i)
    return "." if commas else ""


def _check_row(table: _Table, row: int) -> None:
    """A row has one cell a column and names its subject and visit."""
    cells = table.rows[row]
    if len(cells) != len(table.header):
        raise CohortError(
            f"{len(cells)} cells, but the header names {len(table.header)} columns.",
            "Give every row one cell a column; put quotation marks around a decimal comma.",
        )
    for name in ("subject", "visit"):
        if not cells[table.header.index(name)]:
            raise CohortError(f"{name} is empty.", f"Give the {name} a name, or delete the row.")


def _repeats(table: _Table) -> list[CohortError]:
    """Say which rows repeat a visit of a subject."""
    subject, visit = table.header.index("subject"), table.header.index("visit")
    seen: dict[tuple[str, str], int] = {}
    problems = []
    for row, cells in table.rows.items():
        if len(cells) != len(table.header) or not (cells[subject] and cells[visit]):
            continue
        first = seen.setdefault((cells[subject], cells[visit]), row)
        if first != row:
            what = f"row {row} repeats row {first}: subject {cells[subject]}, visit {cells[visit]}."
            remedy = "Give each visit of a subject its own name, or delete one of the rows."
            problems.append(CohortError(f"{table.path}, {what}", remedy))
    return problems


def _visits(table: _Table, times: list[float], errors: list[float]) -> Visits:
    """Turn checked cells into visits."""
    columns = dict(zip(table.header, zip(*table.rows.values(), strict=True), strict=True))
    further = {name: np.asarray(columns[name]) for name in table.header if name not in REQUIRED}
    if ERROR_COLUMN in further:
        further[ERROR_COLUMN] = np.asarray(errors)  # in the cohort's unit; Visits keeps its text
    subject, visit = np.asarray(columns["subject"]), np.asarray(columns["visit"])
    return Visits(subject, visit, np.asarray(times), further)


def _cells(visits: Visits) -> list[list[str]]:
    """The table as cells, header first; times as the shortest text that reads back exactly."""
    times = ["" if np.isnan(t) else repr(float(t)) for t in visits.t]
    columns = [visits.subject.tolist(), visits.visit.tolist(), times]
    columns += [column.tolist() for column in visits.columns.values()]
    return [[*REQUIRED, *visits.columns], *map(list, zip(*columns, strict=True))]


def _text(visits: Visits, delimiter: str) -> str:
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=delimiter, lineterminator="\n").writerows(_cells(visits))
    return out.getvalue()


def _check_survival(before: list[list[str]], after: list[list[str]], name: str) -> None:
    """Refuse cells that would come back from the file as something else."""
    for row, (old, new) in enumerate(zip(before, after, strict=True), start=1):
        for a, b in zip(old, new, strict=True):
            if a != b:
                raise CohortError(
                    f"{name}, row {row}: {a!r} would be read back as {b!r}.",
                    "Remove spaces around names; write the fixed columns in lower case.",
                )
