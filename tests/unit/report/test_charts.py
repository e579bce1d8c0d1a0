"""Growth charts on paper: complete, escaped, readable."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from prism.applications.charts import growth_chart
from prism.report.chart_page import write_chart
from prism.report.charts import (
    centile_text,
    chart_notes,
    draw_chart,
    label_lifts,
    ordinal,
    spaced,
)
from tests.problems.growing import growing_ball, growing_square

SQUARE: Any = growing_square()


def chart(**options: Any) -> Any:
    cohort = SQUARE.cohort([0.4, 1.0, 2.2, 1.0], [0.5, 1.0, 2.3, np.nan])
    points = cohort.points.copy()
    points[0, 2] = np.nan
    subject = np.where(cohort.visits.subject == "a", "<b>a</b>", "b")
    visits = replace(cohort.visits, subject=subject)
    return growth_chart(SQUARE, "area", replace(cohort, points=points, visits=visits), **options)


def texts(figure: Any) -> set[str]:
    from matplotlib.text import Text

    return {text.get_text() for text in figure.findobj(Text)}


def test_every_curve_is_named_and_every_visit_numbered() -> None:
    found = chart(subject="<b>a</b>", draws=500)
    words = texts(draw_chart(SQUARE, found))
    assert {"3rd", "10th", "50th", "97th", "age (years)", "enclosed area (mm²)"} <= words
    assert {"Enclosed area", "extrapolated"} <= words
    assert {centile_text(c) for c in found.centile[1:3]} <= words
    assert "subject <b>a</b>, centile at each visit" in words


def test_what_is_missing_is_said() -> None:
    notes = " ".join(chart_notes(chart(draws=500)))
    assert "1 visit not measured" in notes
    assert "1 visit of unknown age" in notes
    assert "1 visit outside the training ages" in notes
    assert chart_notes(growth_chart(SQUARE, "area", draws=500)) == []


def test_files_are_what_they_say_and_always_the_same() -> None:
    found = chart(draws=500)
    for ending, start in ((".png", b"\x89PNG"), (".svg", b"<?xml"), (".html", b"<!doctype html>")):
        content = write_chart(SQUARE, found, ending)
        assert content.startswith(start)
        assert content == write_chart(SQUARE, found, ending)


def test_the_page_is_self_contained_and_escaped() -> None:
    text = write_chart(SQUARE, chart(draws=500), ".html").decode("utf-8")
    assert "<td>&lt;b&gt;a&lt;/b&gt;</td>" in text
    assert "<b>a</b>" not in text
    assert "points missing" in text
    assert "not a medical device" in text
    assert '"Segoe UI"' in text, "the style sheet is not escaped"
    links = re.findall(r"(?:src|href|action)\s*=\s*[\"']?([^\"'\s>]{0,12})", text)
    assert all(link.startswith("data:image/") for link in links)
    assert not re.search(r"https?://|<script|@import|url\(", text)


def test_a_chart_in_space() -> None:
    model: Any = growing_ball()
    assert "Upper: surface area" in texts(
        draw_chart(model, growth_chart(model, "upper:area", draws=250))
    )


@pytest.mark.parametrize(
    ("centile", "text"),
    [(0.4, "< 0.4"), (0.7, "0.7"), (3.2, "3"), (62.4, "62"), (99.1, "99.1"), (99.6, "> 99.6")],
)
def test_centiles_without_false_digits(centile: float, text: str) -> None:
    assert centile_text(centile) == text
    assert centile_text(np.nan) == "-"


def test_ordinals() -> None:
    levels = [1, 2, 3, 4, 11, 12, 13, 21, 50, 91, 2.5, 0.4]
    assert " ".join(ordinal(level) for level in levels) == (
        "1st 2nd 3rd 4th 11th 12th 13th 21st 50th 91st 2.5th 0.4th"
    )


def test_names_are_moved_apart_as_little_as_possible() -> None:
    apart = spaced(np.array([0.1, 0.5, 0.5, 0.9]), 0.1)
    np.testing.assert_allclose(apart, [0.1, 0.45, 0.55, 0.9])


def test_numbers_do_not_cover_each_other() -> None:
    assert label_lifts(np.array([[0.0, 0.0], [100.0, 0.0]])) == [11.0, 11.0]
    crowd = label_lifts(np.array([[0.0, 0.0], [4.0, 1.0], [8.0, 2.0]]))
    assert crowd == [None, -11.0, 11.0], "the last visit chooses first"
    assert label_lifts(np.empty((0, 2))) == []
