"""The report: complete, self-contained, escaped, anonymous in its file names, deterministic."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from prism.applications import anomaly, evaluate, intrinsic_time, predict_shape
from prism.cohort import Correspondence, Truth, Visits
from prism.errors import QueryError
from prism.model import PRISM
from prism.population import PopulationConfig
from prism.registration import Quality
from prism.report import write_report
from prism.report.bands import places_of
from prism.report.forecasts import longest_forecasts, prediction_overlay
from prism.report.plates import Findings
from prism.report.shapes import edges_of, paths_of
from prism.report.style import labelled
from prism.report.tables import evaluation_rows, number, visit_rows
from prism.report.visits import most_unusual_first
from prism.report.write import MOST_EVALUATED, whole_subjects
from prism.simulate import starman

FIGURES = {
    "anomaly_ranking.png",
    "information_ablation.png",
    "information_map.png",
    "prediction_overlay.png",
    "shape_fan.png",
    "spread_bands.png",
    "time_scatter.png",
}
SECTIONS = ["Key numbers", "Figures", "How well it does", "Every visit", "Limits", "Provenance"]
NASTY = "<b>x</b>"
Case = tuple[PRISM, Correspondence, Truth | None]


def fitted(cohort: Correspondence, steps: int = 60) -> PRISM:
    config = PopulationConfig(width=16, hidden=1, steps=steps, members=1)
    return PRISM.fit(cohort, "fast", config=config, seed=0, device="cpu")


def renamed(cohort: Correspondence, name: str) -> Correspondence:
    """The same cohort, its first subject called otherwise."""
    subject = cohort.visits.subject.astype("<U32")
    subject[subject == subject[0]] = name
    return replace(cohort, visits=replace(cohort.visits, subject=subject))


def bean(cells: bool) -> Correspondence:
    """25 subjects with two visits each: points of a growing ellipsoid in space."""
    rng = np.random.default_rng(0)
    turn, height = np.meshgrid(2 * np.pi * np.arange(8) / 8, np.linspace(-0.8, 0.8, 5))
    across = np.sqrt(1 - height**2)
    parts = [across * np.cos(turn), across * np.sin(turn), 2 * height]
    template = np.stack(parts, axis=-1).reshape(-1, 3)
    t = np.sort(rng.uniform(1, 9, (25, 2)), axis=1).ravel()
    size = 10 + t + 0.3 * np.repeat(rng.standard_normal(25), 2)
    noise = 0.05 * rng.standard_normal((50, len(template), 3))
    points = size[:, None, None] * template + noise
    subject = np.repeat([f"s{k:02d}" for k in range(25)], 2)
    i = np.arange(32)
    after = i - i % 8 + (i + 1) % 8
    lower, upper = np.stack([i, after, i + 8], 1), np.stack([after, after + 8, i + 8], 1)
    return Correspondence(
        points,
        Visits(subject, np.tile(["v1", "v2"], 25), t),
        cells=np.concatenate([lower, upper]) if cells else None,
        time_unit="months",
        length_unit="mm",
        name="bean",
    )


@pytest.fixture(scope="module")
def with_truth() -> Case:
    study = starman("local", subjects=25, seed=0, resolution=40, noise=0.01, visits=4)
    return fitted(study.correspondence, 200), renamed(study.correspondence, NASTY), study.truth


@pytest.fixture(scope="module")
def with_gaps(with_truth: Case) -> Case:
    study = starman("local", subjects=25, seed=1, resolution=40, noise=0.01, missing=0.2, visits=4)
    cohort = renamed(study.correspondence, "Jane Doe")
    t = np.where(np.arange(len(cohort)) % 7 == 3, np.nan, cohort.visits.t)
    return with_truth[0], replace(cohort, visits=replace(cohort.visits, t=t)), None


@pytest.fixture(scope="module")
def in_space() -> Case:
    cohort = bean(cells=False)
    return fitted(cohort), cohort, None


@pytest.fixture(scope="module")
def reports(
    with_truth: Case, with_gaps: Case, in_space: Case, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    cases = {"with_truth": with_truth, "with_gaps": with_gaps, "in_space": in_space}
    folder = tmp_path_factory.mktemp("reports")
    return {name: write_report(*case, folder / name) for name, case in cases.items()}


def test_every_report_is_complete(reports: dict[str, Path]) -> None:
    for name, page in reports.items():
        assert page.name == "report.html", name
        assert {file.name for file in (page.parent / "figures").iterdir()} == FIGURES, name
        text = page.read_text(encoding="utf-8")
        assert re.findall(r"<h2>(.*?)</h2>", text) == SECTIONS, name
        assert text.count('src="data:image/png;base64,') == len(FIGURES), name
        assert "not a medical device" in text, name


def test_no_report_reaches_out(reports: dict[str, Path]) -> None:
    for page in reports.values():
        text = page.read_text(encoding="utf-8")
        links = re.findall(r"(?:src|href|action)\s*=\s*[\"']?([^\"'\s>]{0,12})", text)
        assert all(link.startswith("data:image/") for link in links)
        assert not re.search(r"https?://|<script|@import|url\(", text)


def test_every_interval_and_rule_is_told_by_its_name(with_truth: Case) -> None:
    model, cohort, truth = with_truth
    scores = evaluate(model, cohort, truth, emd=False)
    rows = {name: value for name, value, _ in evaluation_rows(scores, model)}
    held = {name.partition(": inside the 90%")[0] for name in rows if "inside the 90%" in name}
    rules = ("Forecast (pooled)", "Forecast (paper's rule)", "Population average")
    assert held >= {f"{rule} at later visits" for rule in rules}
    assert held >= {f"Intrinsic time, {region}" for region in ("arm", "leg")}
    arm = scores["time"]["at_arm"]["coverage"]["0.9"]
    assert rows["Intrinsic time, arm: inside the 90% interval"] == f"{100 * arm:.1f}%"
    about = scores["coverage"]["time"]["0.9"]
    told = rows["Intrinsic time about the age: inside the 90% interval"]
    assert told == f"{100 * about:.1f}%"
    bound = scores["sigma_tau"]["leg"]
    assert rows["Temporal spread (paper's bound), leg: relative error"] == f"{100 * bound:.1f}%"
    assert "Temporal spread, leg: relative error" in rows


def test_names_are_escaped_and_stay_out_of_file_names(reports: dict[str, Path]) -> None:
    text = reports["with_truth"].read_text(encoding="utf-8")
    assert "<td>&lt;b&gt;x&lt;/b&gt;</td>" in text
    assert NASTY not in text
    gaps = reports["with_gaps"].parent
    assert "Jane Doe" in (gaps / "report.html").read_text(encoding="utf-8")
    names = [str(file.relative_to(gaps)) for file in gaps.rglob("*")]
    assert not any("jane" in name.lower() or "s00" in name for name in names)


def test_units_gaps_and_unknown_ages_are_told(reports: dict[str, Path]) -> None:
    space = reports["in_space"].read_text(encoding="utf-8")
    assert re.search(r"ages 1\.?\d* to [89]\.?\d* months", space)
    assert re.search(r"<dd>[\d.]+ mm</dd>", space)
    gaps = reports["with_gaps"].read_text(encoding="utf-8")
    assert "20.0% of the points were missing" in gaps
    assert re.search(r"\(of \d+ visits, those of \d+ unknown\): the middle of what shape", gaps)
    assert not re.search(r"<dd>[^<]* units</dd>|to [\d.]+ units", gaps)


def test_same_model_same_report(with_truth: Case, reports: dict[str, Path], tmp_path: Path) -> None:
    from matplotlib.image import imread

    again, before = write_report(*with_truth, tmp_path / "again"), reports["with_truth"]
    words = [re.sub(r"base64,[^\"]+", "", page.read_text("utf-8")) for page in (again, before)]
    assert words[0] == words[1]
    for name in FIGURES:
        pictures = [imread(page.parent / "figures" / name) for page in (again, before)]
        np.testing.assert_allclose(*pictures, atol=2 / 255)  # the last bit of an edge may differ


def test_a_report_is_replaced_but_nothing_else(in_space: Case, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep me")
    with pytest.raises(QueryError, match="not empty"):
        write_report(*in_space, tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]


def registered(cohort: Correspondence, names: bool) -> Quality:
    """A registration of a cohort, its third shape much worse than the others."""
    N, M = cohort.points.shape[:2]
    off = np.full((N, M), 0.01)
    off[2] = 0.4
    who = np.array([f"{NASTY}{i}" for i in range(N)]) if names else np.empty(0, dtype=np.str_)
    outlier, size = off[:, 0] > 0.1, np.full(N, 2.0)
    flat = np.zeros(N)
    return Quality(off, 0.02 + flat, flat, flat, size, outlier, cohort.length_unit, who)


@pytest.mark.parametrize("names", [True, False])
def test_a_registration_is_judged_and_its_outliers_named(
    in_space: Case, tmp_path: Path, names: bool
) -> None:
    page = write_report(*in_space, tmp_path / "out", registered(in_space[1], names))
    text = page.read_text()
    assert "How well the shapes were registered" in text
    assert ("&lt;b&gt;x&lt;/b&gt;2" if names else "shape 3") in text
    assert "<b>x</b>" not in text
    assert (page.parent / "figures" / "correspondence.png").is_file()


def test_a_registration_of_other_points_has_no_picture(with_truth: Case, tmp_path: Path) -> None:
    other = registered(replace(with_truth[1], points=with_truth[1].points[:, :30],
                               template=None, cells=None, regions={}), True)  # type: ignore[arg-type]  # fmt: skip
    page = write_report(*with_truth, tmp_path / "out", other)
    assert "How well the shapes were registered" in page.read_text()
    assert not (page.parent / "figures" / "correspondence.png").exists()


def test_drawing_leaves_matplotlib_as_it_was(reports: dict[str, Path]) -> None:
    import matplotlib as mpl

    assert reports
    assert mpl.rcParams["axes.spines.top"] == mpl.rcParamsDefault["axes.spines.top"]


def test_triangles_and_a_single_visit_a_subject(
    in_space: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MOST_EVALUATED, 3, 2)
    cohort = bean(cells=True)
    model = replace(in_space[0], cells=cohort.cells)
    page = write_report(model, cohort[::2], None, tmp_path / "out")
    assert "No later visit was there to compare with" in page.read_text(encoding="utf-8")
    assert {file.name for file in (page.parent / "figures").iterdir()} == FIGURES


def test_forecast_surfaces_tell_how_far_off_they_were(in_space: Case) -> None:
    cohort = bean(cells=True)
    model = replace(in_space[0], cells=cohort.cells)
    ahead = predict_shape(model, cohort)
    row = longest_forecasts(ahead)[0]
    off = ahead.points[row] - cohort.points[ahead.row1[row]]
    figure = prediction_overlay(model, cohort, ahead)
    title = figure.axes[0].get_title(loc="center")
    assert f"off by {np.sqrt(np.square(off).sum(-1).mean()):.2g} mm" in title


def test_import_needs_no_drawing_library() -> None:
    code = "import sys, prism.report; sys.exit(bool({'matplotlib', 'jinja2'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_places_are_far_apart(in_space: Case) -> None:
    model = in_space[0]
    places = [m for m, _ in places_of(model, None)]
    assert 1 <= len(places) <= 3
    extent = float(np.ptp(model.template, axis=0).max())
    for i, m in enumerate(places):
        for other in places[:i]:
            assert np.linalg.norm(model.template[m] - model.template[other]) >= 0.35 * extent


def test_visits_are_ranked_by_p_value_then_by_score(with_truth: Case) -> None:
    model, cohort, _ = with_truth
    found = anomaly(model, cohort[:4])
    given = {"score": [3.0, 9.0, np.nan, 4.0], "p_value": [0.1, 0.3, np.nan, 0.1]}
    ranked = replace(found, **{name: np.array(values) for name, values in given.items()})
    assert most_unusual_first(ranked).tolist() == [3, 0, 1]


def test_a_long_table_keeps_the_most_unusual_visits(
    with_truth: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, cohort, _ = with_truth
    times, flags = intrinsic_time(model, cohort), anomaly(model, cohort)
    p_value = np.linspace(1, 0.01, len(cohort))
    p_value[-1] = np.nan  # nothing of it was seen
    found = Findings(model, cohort, None, times, replace(flags, p_value=p_value), None)
    every = [f"{row['subject']}/{row['visit']}" for row in visit_rows(found)]
    assert every == [
        f"{s}/{v}" for s, v in zip(cohort.visits.subject, cohort.visits.visit, strict=True)
    ]
    monkeypatch.setattr("prism.report.tables.MOST_ROWS", 3)
    assert [f"{row['subject']}/{row['visit']}" for row in visit_rows(found)] == every[-4:-1]


@pytest.mark.parametrize("most", [1, 9, 20, 10_000])
def test_chosen_subjects_are_whole(with_truth: Case, most: int) -> None:
    cohort = with_truth[1]
    rows = whole_subjects(cohort, most)
    assert 1 <= len(rows) <= most
    if len(rows) > 1:
        chosen = cohort[rows].visits.subjects
        assert len(cohort.of_subjects(chosen)) == len(rows)


def test_pen_follows_cells() -> None:
    ring = np.array([[0, 1], [1, 2], [2, 0], [5, 6]])
    assert [path.tolist() for path in paths_of(ring)] == [[0, 1, 2, 0], [5, 6]]
    assert paths_of(None) == []
    square = np.array([[0, 1, 2], [0, 2, 3]])
    assert edges_of(square).tolist() == [[0, 1], [0, 3], [1, 2], [2, 3]]


@pytest.mark.parametrize("unit", ["", "units", " Units "])
def test_no_unit_is_written_where_there_is_none(unit: str) -> None:
    assert labelled("age", unit) == "age"
    assert labelled("age", "months") == "age (months)"


@pytest.mark.parametrize(
    ("value", "written"),
    [(0.05171, "0.0517"), (421.4, "421"), (-1030.2, "-1,030"), (6e8, "6e+08"), (np.inf, "\u2013")],
)
def test_numbers_are_written_as_people_write_them(value: float, written: str) -> None:
    assert number(value) == written
