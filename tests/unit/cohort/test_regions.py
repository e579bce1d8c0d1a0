"""Named regions: checked at birth, carried with the shapes, written and read."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from prism.cohort import Cohort, Correspondence, check_cohort, require_correspondence
from prism.cohort.regions import as_regions
from prism.errors import CohortError
from prism.simulate import starman, tubes
from tests.problems import good_cohort

TOML = good_cohort.TOML + '\n[regions]\narm = [3, 1, 1]\n"left é" = 6\n'


def _plain(cohort: Correspondence) -> dict[str, list[int]]:
    return {name: points.tolist() for name, points in cohort.regions.items()}


def test_regions_are_read_and_travel_with_the_shapes(tmp_path: Path) -> None:
    shapes = require_correspondence(Cohort.read(good_cohort.write(tmp_path, toml=TOML)))
    named = {"arm": [1, 3], "left é": [6]}
    parts = [shapes, shapes[0], shapes[::2], shapes.of_subjects(["003"])]
    parts += [*shapes.split_subjects(0.5), replace(shapes, name="x")]
    parts += [pickle.loads(pickle.dumps(shapes))]
    assert all(_plain(part) == named for part in parts)
    assert check_cohort(tmp_path / good_cohort.FOLDER).ok


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    cohort = Cohort.read(good_cohort.write(tmp_path, toml=TOML))
    again = cohort.write(tmp_path / "again")
    assert again.path is not None
    assert _plain(require_correspondence(Cohort.read(again.path))) == {"arm": [1, 3], "left é": [6]}
    text = (again.path / "cohort.toml").read_text(encoding="utf-8")
    assert text.endswith('\n[regions]\narm = [1, 3]\n"left é" = [6]\n')


def test_a_cohort_without_regions_has_none_and_writes_none(tmp_path: Path) -> None:
    cohort = Cohort.read(good_cohort.write(tmp_path))
    assert _plain(require_correspondence(cohort)) == {}
    cohort.write(tmp_path / "again")
    assert "regions" not in (tmp_path / "again" / "cohort.toml").read_text()


def test_check_warns_of_regions_before_correspondence(tmp_path: Path) -> None:
    folder = good_cohort.write(tmp_path, toml=TOML, points=None)
    found = [finding.what for finding in check_cohort(folder).findings]
    assert any("names regions" in what for what in found)


def test_regions_cannot_be_changed() -> None:
    given = np.array([2, 0])
    region = as_regions({"arm": given}, 3)["arm"]
    assert given.tolist() == [2, 0]
    with pytest.raises(ValueError, match="read-only"):
        region[0] = 1


@pytest.mark.parametrize("name", ["", " arm", "a\nb", "12", "3-4", 5])
def test_names_that_would_mislead_are_refused(name: object) -> None:
    with pytest.raises(CohortError, match="name"):
        as_regions({name: [0]})


@pytest.mark.parametrize("resolution", [16, 24, 100])
def test_starman_has_limbs_and_a_head(resolution: int) -> None:
    study = starman("local", subjects=2, resolution=resolution)
    cohort, truth = study.correspondence, study.truth
    assert set(cohort.regions) == {"arm", "leg", "head"}
    for name, landmark in zip(truth.regions, truth.landmarks, strict=True):
        assert landmark in cohort.regions[str(name)]
        x = cohort.template[cohort.regions[str(name)], 0]
        assert x.min() < 0 < x.max(), "both sides"
    assert (cohort.template[cohort.regions["head"], 1] > 1.0).all()


@pytest.mark.parametrize("rings", [2, 3, 40])
def test_tubes_have_thirds(rings: int) -> None:
    cohort = tubes(subjects=2, rings=rings).correspondence
    parts = np.concatenate(list(cohort.regions.values()))
    assert sorted(parts.tolist()) == list(range(len(cohort.template)))
    z = cohort.template[:, 2]
    assert z[cohort.regions["upper"]].min() > z[cohort.regions["lower"]].max()
