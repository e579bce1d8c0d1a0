"""Growth charts from the command line: pictures, pages, tables, refusals."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.stories.steps import arrays, assert_told, done, prism, read_csv, visits
from tests.stories.test_broken import assert_refused

CURVES = ["t", "p3", "p10", "p25", "p50", "p75", "p90", "p97", "extrapolated"]
VISITS = ["subject", "visit", "t", "value", "centile"]


def busiest(cohort: Path) -> str:
    """The subject with the most visits."""
    names = [row["subject"] for row in visits(cohort)]
    return max(dict.fromkeys(names), key=names.count)


def test_a_subject_on_its_chart(both: tuple[Path, Path], tmp_path: Path) -> None:
    out, who = tmp_path / "deep" / "chart.png", busiest(both[1])
    result = done(
        *("chart", both[0], "--at", "arm", "--cohort", both[1], "--subject", who, "--out", out)
    )
    assert out.read_bytes().startswith(b"\x89PNG")
    columns, rows = read_csv(out.with_suffix(".csv"))
    assert columns == CURVES
    values = np.array([[float(row[name]) for name in CURVES[:-1]] for row in rows])
    assert (np.diff(values[:, 0]) > 0).all()
    assert (np.diff(values[:, 1:], axis=1) > 0).all()
    columns, rows = read_csv(tmp_path / "deep" / "chart.visits.csv")
    assert columns == VISITS
    assert [row["subject"] for row in rows] == [who] * len(rows)
    assert all(0 < float(row["centile"]) < 100 for row in rows)
    assert f"{len(rows)} visits of {len(rows)} placed (centiles " in result.stdout
    told = assert_told(tmp_path / "deep" / "chart.provenance.json", "chart")
    assert told["options"]["at"] == "arm"
    assert not any(who in str(file) for file in tmp_path.rglob("*"))


def test_a_page_and_a_drawing(both: tuple[Path, Path], tmp_path: Path) -> None:
    page, drawing = tmp_path / "chart.html", tmp_path / "chart.svg"
    done("chart", both[0], "--at", "area", "--cohort", both[1], "--out", page)
    text = page.read_text(encoding="utf-8")
    assert "<h1>Enclosed area</h1>" in text
    assert "not a medical device" in text
    assert not re.search(r"https?://|<script|@import|url\(", text)
    done("chart", both[0], "--at", "3-12", "--centiles", "2.5,50,97.5", "--out", drawing)
    assert b"<svg" in drawing.read_bytes()[:1000]
    assert read_csv(tmp_path / "chart.csv")[0] == ["t", "p2.5", "p50", "p97.5", "extrapolated"]


def test_the_default_file_and_missing_points(
    both: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cohort, who = tmp_path / "cohort", busiest(both[1])
    shutil.copytree(both[1], cohort)
    stored = arrays(cohort / "correspondence.npz")
    first = next(i for i, row in enumerate(visits(cohort)) if row["subject"] == who)
    stored["points"][first, 5] = np.nan
    np.savez(cohort / "correspondence.npz", **stored)
    words = ("--cohort", cohort, "--subject", who)
    assert "1 visit not measured" in done("chart", both[0], "--at", "5:x", *words).stdout
    assert Path("chart.png").exists()
    row = read_csv(Path("chart.visits.csv"))[1][0]
    assert (row["value"], row["centile"]) == ("", "")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "--at"),
        ("--at wing", "regions arm, leg, head"),
        ("--at 24", "points 0 to 23"),
        ("--at 3:area", "'area' cannot be measured of point 3"),
        ("--at 3:wings", "wings"),
        ("--at volume", "in 2D"),
        ("--at leg:area", "not closed"),
        ("--at arm --subject s0001", "--cohort"),
        ("--at arm --cohort COHORT --subject nobody", "no subject 'nobody'"),
        ("--at arm --centiles few", "--centiles"),
        ("--at arm --centiles 0,50", "centiles must lie within"),
        ("--at arm --out OUT.pdf", ".png, .svg, .html"),
    ],
)
def test_a_wrong_request_is_refused(
    words: str, message: str, both: tuple[Path, Path], tmp_path: Path
) -> None:
    parts = words.replace("COHORT", str(both[1])).replace("OUT", str(tmp_path / "x")).split()
    out = [] if "--out" in parts else ["--out", tmp_path / "chart.png"]
    assert_refused(prism("chart", both[0], *parts, *out), message)
    assert not list(tmp_path.iterdir())


def test_help_tells_the_grammar() -> None:
    text = done("chart", "--help").stdout
    for word in ("growth", "12-40", "31:x", "volume", "PLACE:MEASURE"):
        assert word in text
