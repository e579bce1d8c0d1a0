"""A folder of landmark files, from 3D Slicer to a model: matched, posed, dated."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from prism.cohort import Cohort, Shape, match_landmarks, write_shape
from prism.cohort.values import Visits
from prism.errors import CohortError
from tests.stories.steps import done, prism

NAMES = ("nasion", "bregma", "lambda", "inion", "left ear", "right ear")
FORM = np.random.default_rng(3).normal(size=(6, 3)) * 30


def skull(size: float, seed: int) -> np.ndarray:
    """A skull of some size anywhere in the scanner, turned."""
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    Q[:, -1] *= np.linalg.det(Q)
    return size * FORM @ Q.T + 500 * rng.normal(size=3)


def landmark_cohort(folder: Path, count: int, first: int = 0) -> Path:
    """One file a visit; lists begin anywhere, and the second visit has not seen the lambda."""
    (folder / "lm").mkdir(parents=True)
    (folder / "cohort.toml").write_text('name = "skulls"\ntime_unit = "years"\n')
    with (folder / "visits.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["subject", "visit", "t", "path"])
        for i in range(first, first + count):
            points, order = skull(1 + 0.1 * i, i), np.roll(np.arange(6), i)
            if i == 1:
                order = order[order != 2]
            shape = Shape(points[order], None, "mm", "LPS", tuple(NAMES[k] for k in order))
            write_shape(shape, folder / f"lm/{i}.mrk.json")
            table.writerow([f"s{i}", "v1", i, f"lm/{i}.mrk.json"])
    return folder


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("landmarks")
    landmark_cohort(folder / "raw", 8)
    told = done("register", folder / "raw", "--out", folder / "done", "--align", "rigid")
    (folder / "said.txt").write_text(told.stdout)
    return folder


def test_landmarks_are_matched_by_name_and_laid_upon_one_another(home: Path) -> None:
    assert "6 landmarks of 8 visits matched by name" in (home / "said.txt").read_text()
    found = Cohort.read(home / "done").correspondence
    assert found is not None
    assert set(found.regions) == set(NAMES)
    row = found.regions["lambda"][0]
    assert np.isnan(found.points[1, row]).all()
    assert np.isnan(found.points).any(axis=-1).sum() == 1
    names = list(found.regions)
    form = FORM[[NAMES.index(name) for name in names]]
    apart = np.linalg.norm(found.points[4, 0] - found.points[4, 1])
    assert apart == pytest.approx(1.4 * np.linalg.norm(form[0] - form[1]))  # size is kept
    grown = found.points[4] - found.points[0]
    centred = found.points[0] - found.points[0].mean(axis=0)
    np.testing.assert_allclose(grown - grown.mean(axis=0), 0.4 * centred, atol=1e-6)


def test_new_visits_take_the_order_and_the_pose_of_known_ones(home: Path, tmp_path: Path) -> None:
    landmark_cohort(tmp_path / "new", 3, first=3)
    done("register", tmp_path / "new", "--out", tmp_path / "out", "--onto", home / "done")
    old, new = (Cohort.read(f).correspondence for f in (home / "done", tmp_path / "out"))
    assert old is not None
    assert new is not None
    np.testing.assert_allclose(new.points, old.points[3:6], atol=1e-4)
    np.testing.assert_array_equal(new.template, old.template)


def test_a_model_can_be_fitted_to_them(home: Path) -> None:
    done("fit", home / "done", "--out", home / "model", "--preset", "fast", "--device", "cpu",
         "--set", "steps=20", "--set", "members=1")  # fmt: skip
    done("time", home / "model", home / "done", "--out", home / "times.csv")


def shapes(*names: tuple[str, ...]) -> list[Shape]:
    return [Shape(np.arange(3.0 * len(n)).reshape(-1, 3), None, "mm", "", n) for n in names]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (shapes(("a", "b"), ("a", "a")), "shape 2: two landmarks are called 'a'"),
        (shapes(("a", "b"), ("a", "")), "shape 2: a landmark has no name"),
        ([*shapes(("a", "b")), Shape(np.ones((2, 3)))], "shape 2: landmarks of 3D without names"),
        ([*shapes(("a", "b")), Shape(np.ones((2, 2)), None, "", "", ("a", "b"))], "of 2D with"),
        ([Shape(np.ones((2, 3))), Shape(np.ones((3, 3)))], "shape 2: 3 landmarks without names"),
        ([*shapes(("a", "b")), Shape(np.eye(3), np.array([[0, 1, 2]]))], "surface among landmarks"),
    ],
)
def test_what_cannot_be_matched_is_refused_by_name(given: list[Shape], told: str) -> None:
    visits = Visits(np.array(["x", "y"]), np.array(["1", "1"]), np.arange(2.0))
    with pytest.raises(CohortError, match=told):
        match_landmarks(given, visits)


def test_landmarks_with_other_names_are_refused(home: Path, tmp_path: Path) -> None:
    raw = landmark_cohort(tmp_path / "new", 2)
    write_shape(shapes(("p", "q"))[0], raw / "lm/0.mrk.json")
    words = ("--out", tmp_path / "out", "--onto", home / "done")
    refused = prism("register", raw, *words)
    assert refused.exit_code == 2
    assert "row 2 (subject s0, visit v1)" in refused.stderr
    assert not (tmp_path / "out").exists()
