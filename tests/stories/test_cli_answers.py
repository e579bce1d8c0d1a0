"""The questions of a tiny cohort: columns, keys, shapes, provenance, units."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

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
    (cohort / "visits.csv").write_text(text.replace(",0.1\n", ",soon\n") + "\n")
    refused = prism("time", both[0], cohort, "--out", tmp_path / "t.csv")
    assert refused.exit_code == 2
    first = visits(cohort)[0]
    assert f"t_error of subject {first['subject']}, visit {first['visit']}" in refused.stderr


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


def test_meshes_without_pyvista_are_refused_before_the_work(
    both: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prism.cohort.vtp_file.find_spec", lambda name: None)
    result = prism("trajectory", both[0], "--at", "1", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "pip install pyvista" in result.stderr
    done("time", *both, "--out", tmp_path / "times.csv")
