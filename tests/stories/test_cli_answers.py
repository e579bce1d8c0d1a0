"""The questions of a tiny cohort: columns, keys, shapes, provenance, units."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from prism.errors import FitError
from tests.stories.steps import (
    POINTS,
    TEST,
    TRAIN,
    arrays,
    assert_told,
    done,
    prism,
    read_csv,
    read_json,
    visits,
)

pytest.importorskip("pyvista")
TIMES = ["subject", "visit", "t", "tau", "tau_se", "tau_mean", "tau_fisher", "tau_mle", "z"]
ANOMALY = ["subject", "visit", "t", "score", "p_value", "score_paper", "where"]


def test_trajectory(home: Path, tmp_path: Path) -> None:
    import pyvista

    out = tmp_path / "deep" / "trajectory"
    result = done("trajectory", home / "model", "--at", "0.2,0.7,3", "--out", out)
    assert "1 age outside the training ages" in result.stdout
    stored = arrays(out / "trajectory.npz")
    shapes = {
        "t": (3,),
        "points": (3, POINTS, 2),
        "sigma_tau": (3, POINTS),
        "sigma_tau_bound": (3, POINTS),
        "info": (3, POINTS),
        "Sigma": (3, POINTS, 2, 2),
    }
    assert {name: array.shape for name, array in stored.items()} == shapes
    assert stored["t"].tolist() == [0.2, 0.7, 3.0]
    series = read_json(out / "trajectory.vtp.series")
    assert [entry["time"] for entry in series["files"]] == [0.2, 0.7, 3.0]
    mesh = pyvista.read(out / series["files"][1]["name"])
    assert set(mesh.point_data.keys()) == {"sigma_tau", "sigma_tau_bound", "info", "Sigma"}
    np.testing.assert_allclose(mesh.points[:, :2], stored["points"][1], atol=1e-6)
    np.testing.assert_allclose(mesh.point_data["info"], stored["info"][1])
    bound = np.where(np.isinf(stored["sigma_tau"][1]), np.nan, stored["sigma_tau"][1])
    np.testing.assert_allclose(mesh.point_data["sigma_tau"], bound)
    assert mesh.n_lines == POINTS
    assert assert_told(out / "provenance.json", "trajectory")["options"]["at"] == [0.2, 0.7, 3.0]
    done("trajectory", home / "model", "--at", "0.5", "--out", out)
    assert len(list(out.glob("*.vtp"))) == 1, "an earlier answer is replaced as a whole"


def test_time(both: tuple[Path, Path], tmp_path: Path) -> None:
    import prism as library

    out, maps = tmp_path / "times.csv", tmp_path / "maps"
    result = done("time", *both, "--out", out, "--maps", maps)
    columns, rows = read_csv(out)
    assert columns == TIMES
    study = library.Cohort.read(both[1]).correspondence
    found = library.intrinsic_time(library.PRISM.load(both[0]), study)
    np.testing.assert_array_equal([float(row["tau"]) for row in rows], found.tau)
    assert [(r["subject"], r["visit"], float(r["t"])) for r in rows] == [
        (r["subject"], r["visit"], float(r["t"])) for r in visits(both[1])
    ]
    assert f"{len(rows)} visits of {len(rows)} dated" in result.stdout
    assert "units" in result.stdout
    stored = arrays(maps / "maps.npz")
    assert set(stored) == {"tau", "se", "tau_mle", "subject", "visit"}
    np.testing.assert_array_equal(stored["tau"], found.point_tau)
    np.testing.assert_array_equal(stored["se"], found.point_se)
    assert_told(tmp_path / "times.provenance.json", "time")
    assert_told(maps / "provenance.json", "time")
    names = [path.name for path in sorted(maps.glob("*.vtp"))]
    assert names == [f"visit-{row:04d}.vtp" for row in range(len(rows))]


def test_time_of_unknown_ages_and_missing_points(both: tuple[Path, Path], tmp_path: Path) -> None:
    import pyvista

    cohort = tmp_path / "cohort"
    shutil.copytree(both[1], cohort)
    lines = (cohort / "visits.csv").read_text().splitlines()
    first = lines[1].split(",")
    lines[1] = ",".join([*first[:2], "", *first[3:]])
    (cohort / "visits.csv").write_text("\n".join(lines) + "\n")
    stored = arrays(cohort / "correspondence.npz")
    stored["points"][0, [2, 3]] = np.nan
    np.savez(cohort / "correspondence.npz", **stored)
    done("time", both[0], cohort, "--out", tmp_path / "t.csv", "--maps", tmp_path / "maps")
    row = read_csv(tmp_path / "t.csv")[1][0]
    assert (row["t"], row["z"]) == ("", "")
    assert np.isfinite(float(row["tau"]))
    assert "nan" not in (tmp_path / "t.csv").read_text().lower()
    mesh = pyvista.read(tmp_path / "maps" / "visit-0000.vtp")
    assert mesh.point_data["point"].tolist() == [m for m in range(POINTS) if m not in (2, 3)]
    assert "1 age unknown" in done("anomaly", both[0], cohort, "--out", tmp_path / "a.csv").stdout


def test_an_uncertain_age_gets_columns_of_its_own(both: tuple[Path, Path], tmp_path: Path) -> None:
    cohort = tmp_path / "cohort"
    shutil.copytree(both[1], cohort)
    lines = (cohort / "visits.csv").read_text().splitlines()
    errors = ["t_error", "0.1", *[""] * (len(lines) - 2)]
    text = "\n".join(f"{line},{error}" for line, error in zip(lines, errors, strict=True))
    (cohort / "visits.csv").write_text(text + "\n")
    done("time", both[0], cohort, "--out", tmp_path / "t.csv")
    columns, rows = read_csv(tmp_path / "t.csv")
    assert columns == [*TIMES, "age", "age_se", "age_lower", "age_upper"]
    assert 0 < float(rows[0]["age_se"]) <= 0.1
    assert float(rows[0]["age_lower"]) < float(rows[0]["age"]) < float(rows[0]["age_upper"])
    assert rows[1]["age"] == rows[1]["t"]
    told = done("anomaly", both[0], cohort, "--out", tmp_path / "a.csv").stdout
    assert "1 age unknown or uncertain" in told
    exact = done("predict", both[0], cohort, "--out", tmp_path / "p").stdout
    assert "predict: 1 age with a t_error is taken as exact." in exact
    done("report", both[0], cohort, "--out", tmp_path / "report")
    page = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    assert "those of 1 uncertain): the middle of what shape and record say" in page
    (cohort / "visits.csv").write_text(text.replace(",0.1\n", ",soon\n") + "\n")
    for words in (("check", cohort), ("time", both[0], cohort, "--out", tmp_path / "t.csv")):
        refused = prism(*words)
        assert refused.exit_code == 2
        assert "visits.csv, row 2: t_error 'soon' is not a number" in refused.stderr


def test_fit_says_that_uncertain_ages_are_taken_as_exact(
    both: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cohort = tmp_path / "cohort"
    shutil.copytree(both[1], cohort)
    lines = (cohort / "visits.csv").read_text().splitlines()
    errors = ["T_error", *["0,5" for _ in lines[1:]]]
    text = "\n".join(f'{line},"{error}"' for line, error in zip(lines, errors, strict=True))
    (cohort / "visits.csv").write_text(text + "\n")

    def stop(*_: object, **__: object) -> None:
        raise FitError("enough.", "This is a test.")

    monkeypatch.setattr("prism.model.PRISM.fit", stop)
    told = prism("fit", cohort, "--out", tmp_path / "model").stdout
    rows = sum(row["split"] == "train" for row in visits(cohort))
    assert f"fit: {rows} ages with a t_error are taken as exact." in told


def test_what_is_not_of_prism_is_never_overwritten(both: tuple[Path, Path], tmp_path: Path) -> None:
    cohort = tmp_path / "cohort"
    shutil.copytree(both[1], cohort)
    (tmp_path / "area.csv").write_text("mine")
    before = (cohort / "visits.csv").read_bytes()
    asked = (
        (("time", both[0], cohort), cohort / "visits.csv"),
        (("anomaly", both[0], cohort), cohort / "visits.csv"),
        (("evaluate", both[0], cohort, "--no-emd"), cohort / "visits.csv"),
        (("chart", both[0], "--at", "area"), tmp_path / "area.png"),
    )
    for words, out in asked:
        refused = prism(*words, "--out", out)
        assert refused.exit_code == 2
        assert f"not written by prism {words[0]}" in refused.stderr
        assert "another --out" in refused.stderr
    assert (cohort / "visits.csv").read_bytes() == before
    assert (tmp_path / "area.csv").read_text() == "mine"
    assert not (tmp_path / "area.png").exists()
    (cohort / "provenance.json").unlink()
    refused = prism("simulate", "starman-g", "--out", cohort, "--subjects", 3)
    assert "that prism simulate has not written" in refused.stderr
    assert (cohort / "visits.csv").read_bytes() == before


def test_the_same_command_may_be_run_again(both: tuple[Path, Path], tmp_path: Path) -> None:
    maps = tmp_path / "maps"
    asked = (
        ("time", *both, "--out", tmp_path / "t.csv", "--maps", maps),
        ("anomaly", *both, "--out", tmp_path / "a.csv"),
        ("predict", *both, "--out", tmp_path / "p"),
        ("trajectory", both[0], "--at", "0.5", "--out", tmp_path / "j"),
        ("evaluate", *both, "--no-emd", "--out", tmp_path / "m.json"),
        ("chart", both[0], "--at", "area", "--cohort", both[1], "--out", tmp_path / "c.png"),
        ("chart", both[0], "--at", "area", "--out", tmp_path / "c.svg"),
        ("report", *both, "--out", tmp_path / "r"),
        ("simulate", "starman-g", "--subjects", 3, "--out", tmp_path / "s"),
    )
    for words in (*asked, *asked):
        done(*words)
    assert "prism time" in prism(*asked[1], "--maps", maps).stderr
    for words, folder in zip((asked[2], asked[3], asked[7]), "pjr", strict=True):
        (tmp_path / folder / "notes.txt").write_text("mine")
        assert "notes.txt in it was not written" in prism(*words).stderr
        assert (tmp_path / folder / "notes.txt").read_text() == "mine"


def test_people_the_model_has_not_met_are_noted(both: tuple[Path, Path], tmp_path: Path) -> None:
    model, cohort = tmp_path / "model", tmp_path / "cohort"
    shutil.copytree(both[0], model)
    shutil.copytree(both[1], cohort)
    facts = read_json(model / "provenance.json")
    (model / "provenance.json").write_text(json.dumps({**facts, "covariates": {"sex": ["f"]}}))
    lines = (cohort / "visits.csv").read_text().splitlines()
    sexes = ["sex", "m", *["f"] * (len(lines) - 2)]
    text = "\n".join(f"{line},{sex}" for line, sex in zip(lines, sexes, strict=True))
    (cohort / "visits.csv").write_text(text + "\n")
    told = done("time", model, cohort, "--out", tmp_path / "t.csv")
    assert "note: 1 visit(s) have sex m" in told.stderr
    assert "note:" not in done("time", *both, "--out", tmp_path / "t.csv").stderr


def test_predict(both: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "predictions"
    result = done("predict", *both, "--out", out)
    stored = arrays(out / "predictions.npz")
    assert set(stored) == {"points", "lower", "upper", "subject", "from_visit", "t0", "t1"}
    rows = visits(both[1])
    number = len(rows) - len({row["subject"] for row in rows})  # each visit after the first
    assert {len(array) for array in stored.values()} == {number}
    assert stored["points"].shape == (number, POINTS, 2)
    assert (stored["lower"] < stored["points"]).all()
    assert (stored["points"] < stored["upper"]).all()
    assert (stored["t0"] < stored["t1"]).all()
    assert len(list(out.glob("prediction-*.vtp"))) == number
    assert f"{number} forecasts" in result.stdout
    assert assert_told(out / "provenance.json", "predict")["options"]["rule"] == "pooled"
    names = [row["subject"] for row in rows]
    once = sum(names.count(name) == 1 for name in set(names))
    assert f"left out: {once} subjects without a later visit. Wrote" in result.stdout


def test_who_is_not_forecast_is_told(both: tuple[Path, Path], tmp_path: Path) -> None:
    cohort, out = tmp_path / "cohort", tmp_path / "out"
    shutil.copytree(both[1], cohort)
    lines = (cohort / "visits.csv").read_text().splitlines()
    names = [line.split(",")[0] for line in lines]
    once = sum(names.count(name) == 1 for name in set(names[1:]))
    nobody, somebody = [name for name in dict.fromkeys(names[1:]) if names.count(name) > 1][:2]
    keep = names.index(somebody)  # one of its visits
    for i in [k for k, name in enumerate(names) if name in (nobody, somebody) and k != keep]:
        cells = lines[i].split(",")
        lines[i] = ",".join([*cells[:2], "", *cells[3:]])
    (cohort / "visits.csv").write_text("\n".join(lines) + "\n")
    gone = sum(line.split(",")[2] == "" for line in lines)
    told = done("predict", both[0], cohort, "--out", out).stdout
    every = f"left out: {gone} visits without an age, 1 subject without an age"
    assert f"{every}, {once + 1} subjects without a later visit" in told
    assert read_json(out / "provenance.json")["left_out"] == {
        "visits without an age": gone,
        "subjects without an age": 1,
        "subjects without a later visit": once + 1,
    }
    told = done("predict", both[0], cohort, "--out", out, "--at", "0.5").stdout
    assert f"; {every}. Wrote" in told


@pytest.mark.parametrize("rule", ["paper", "mean"])
def test_one_visit_rules_have_no_history(
    both: tuple[Path, Path], tmp_path: Path, rule: str
) -> None:
    words = ("predict", *both, "--out", tmp_path / "p", "--rule", rule, "--history")
    refused = prism(*words, "all")
    assert refused.exit_code == 2
    assert "history 'all' cannot be had" in refused.stderr
    done(*words, "first")


def test_units_that_a_cohort_does_not_state_are_told(
    both: tuple[Path, Path], tmp_path: Path
) -> None:
    cohort = tmp_path / "cohort"
    shutil.copytree(both[1], cohort)
    toml = cohort / "cohort.toml"
    kept = [line for line in toml.read_text().splitlines() if "_unit" not in line]
    toml.write_text("\n".join(kept) + "\n")
    told = done("time", both[0], cohort, "--out", tmp_path / "t.csv").stderr
    for kind in ("time", "length"):
        assert re.search(f"the cohort states no {kind} unit; taken as .+, like the model", told)
    assert "unit" not in done("time", *both, "--out", tmp_path / "t.csv").stderr


def test_a_cohort_without_ages_cannot_be_measured_on(
    both: tuple[Path, Path], tmp_path: Path
) -> None:
    cohort = tmp_path / "cohort"
    shutil.copytree(both[1], cohort)
    shutil.rmtree(cohort / "truth")
    lines = [line.split(",") for line in (cohort / "visits.csv").read_text().splitlines()]
    bare = [lines[0], *([*cells[:2], "", *cells[3:]] for cells in lines[1:])]
    (cohort / "visits.csv").write_text("\n".join(map(",".join, bare)) + "\n")
    refused = prism("evaluate", both[0], cohort, "--out", tmp_path / "m.json", "--split", "all")
    assert refused.exit_code == 2
    assert "has an age to measure the model by" in refused.stderr
    assert "prism time" in refused.stderr
    shutil.copy(both[1] / "visits.csv", cohort / "visits.csv")
    told = done("evaluate", both[0], cohort, "--out", tmp_path / "m.json", "--no-emd").stdout
    assert "mean distance from age" in told
    told = done("evaluate", *both, "--out", tmp_path / "m.json", "--no-emd").stdout
    assert "mean distance" not in told


def test_long_work_says_how_far_it_is(
    both: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("evaluate", *both, "--out", tmp_path / "m.json", "--no-emd")
    assert not done(*words).stderr
    monkeypatch.setattr("prism.cli._advance.SILENCE", 0)
    assert re.search(r"^shapes at the age \d+/\d+: \d+ s left$", done(*words).stderr, re.M)


def test_predict_at_ages_by_the_mean(both: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "predictions"
    done("predict", *both, "--out", out, "--at", "0.3,0.9", "--rule", "mean")
    stored = arrays(out / "predictions.npz")
    assert stored["t1"].tolist() == [0.3, 0.9] * (TRAIN + TEST)
    np.testing.assert_array_equal(stored["points"][0], stored["points"][2])


def test_anomaly(both: tuple[Path, Path], tmp_path: Path) -> None:
    out, maps = tmp_path / "anomaly.csv", tmp_path / "maps"
    result = done("anomaly", *both, "--out", out, "--maps", maps)
    columns, rows = read_csv(out)
    assert columns == ANOMALY
    assert len(rows) == len(visits(both[1]))
    p = np.array([float(row["p_value"]) for row in rows])
    assert ((p > 0) & (p <= 1)).all()
    assert all(float(row["score_paper"]) <= 0 for row in rows)
    assert all(re.search(r"\bpoint \d+ at", row["where"]) for row in rows)
    assert f"{(p < 0.05).sum()} visit" in result.stdout
    stored = arrays(maps / "maps.npz")
    assert set(stored) == {"z", "p", "q", "subject", "visit"}
    assert stored["z"].shape == stored["p"].shape == (len(rows), POINTS)
    assert_told(tmp_path / "anomaly.provenance.json", "anomaly")


@pytest.mark.parametrize("split", [None, "train", "all"])
def test_evaluate(both: tuple[Path, Path], tmp_path: Path, split: str | None) -> None:
    out = tmp_path / "metrics.json"
    done("evaluate", *both, "--out", out, "--no-emd", *(["--split", split] if split else []))
    result = read_json(out)
    names = [row["split"] for row in visits(both[1])]
    expected = len(names) if split == "all" else names.count(split or "test")
    assert result["shapes"] == expected
    assert {"trajectory", "time", "coverage", "sigma_tau", "provenance"} <= set(result)
    assert result["provenance"]["command"] == "evaluate"


def test_report(both: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "report"
    result = done("report", *both, "--out", out, "--split", "test")
    page = out / "report.html"
    assert page.stat().st_size > 1000
    assert str(page) in result.stdout
    assert_told(out / "provenance.json", "report")
    subjects = {row["subject"] for row in visits(both[1])}
    assert not any(name in str(path) for path in out.rglob("*") for name in subjects)


def test_a_report_on_one_subject(both: tuple[Path, Path], tmp_path: Path) -> None:
    rows = visits(both[1])
    who, other = rows[0]["subject"], rows[-1]["subject"]
    result = done("report", *both, "--out", tmp_path / "r", "--subject", who)
    text = (tmp_path / "r" / "report.html").read_text(encoding="utf-8")
    number = sum(row["subject"] == who for row in rows)
    assert f"report: {number} visits against" in result.stdout
    assert f"sets {number} visits of 1 subject against it" in " ".join(text.split())
    assert f"<td>{who}</td>" in text
    assert f"<td>{other}</td>" not in text
    assert text.index('id="shape_fan"') < text.index('id="time_scatter"')
    assert "How well it does" not in text
    told = assert_told(tmp_path / "r" / "provenance.json", "report")
    assert told["options"]["one_subject"] is True
    assert who not in json.dumps(told["options"])
    refused = prism("report", *both, "--out", tmp_path / "x", "--subject", "nobody")
    assert refused.exit_code == 2
    assert "no subject 'nobody'" in refused.stderr
    assert who in refused.stderr
    assert not (tmp_path / "x").exists()


def test_meshes_without_pyvista_are_refused_before_the_work(
    both: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prism.cohort.vtp_file.find_spec", lambda name: None)
    result = prism("trajectory", both[0], "--at", "1", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "pip install pyvista" in result.stderr
    done("time", *both, "--out", tmp_path / "times.csv")
