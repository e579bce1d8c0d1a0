"""Places in words."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from prism.applications.places import place_in_words, region_of
from prism.model import PRISM
from prism.simulate.study import Study

TEMPLATE = np.array([[0.0, 0.0], [1.0, 0.0], [1.63456, -0.64], [10.0, 0.0]])
REGIONS = {"limb": np.array([1, 2]), "tip": np.array([2])}


def test_a_place_is_named_by_its_smallest_region() -> None:
    assert place_in_words(TEMPLATE, REGIONS, 2, "mm") == "tip, point 2 at (1.63, -0.64) mm"
    assert place_in_words(TEMPLATE, REGIONS, 1, "units") == "limb, point 1 at (1, 0)"


def test_a_place_in_no_region_is_near_one_or_bare() -> None:
    assert place_in_words(TEMPLATE, REGIONS, 0, "mm") == "near limb, point 0 at (0, 0) mm"
    assert place_in_words(TEMPLATE, REGIONS, 3, "mm") == "point 3 at template (10, 0) mm"
    assert place_in_words(TEMPLATE, {}, 1, "") == "point 1 at template (1, 0)"
    assert region_of(TEMPLATE, {}, 0) == ""


def test_no_negative_zero() -> None:
    assert "-0)" not in place_in_words(np.array([[0.0, -0.0]]), {}, 0, "mm")


def test_rounding_is_not_a_place() -> None:
    template = np.array([[3.65e-16, 5.96, -44.1], [40.0, 0.0, 1e-6]])
    assert place_in_words(template, {}, 0, "mm") == "point 0 at template (0, 5.96, -44.1) mm"
    assert "(40, 0, 1e-06)" in place_in_words(template, {}, 1, "mm")


def test_regions_live_in_the_model(tiny_study: Study, tiny_model: PRISM, tmp_path: Path) -> None:
    named = {name: points.tolist() for name, points in tiny_study.correspondence.regions.items()}
    assert set(named) == {"arm", "leg", "head"}
    tiny_model.save(tmp_path / "model")
    for model in (tiny_model, PRISM.load(tmp_path / "model")):
        assert {name: points.tolist() for name, points in model.regions.items()} == named
    toml = tmp_path / "model" / "model.toml"
    text = toml.read_text(encoding="utf-8")
    toml.write_text(text[: text.index("[regions]")], encoding="utf-8")
    assert PRISM.load(tmp_path / "model").regions == {}, "an older model has none"
