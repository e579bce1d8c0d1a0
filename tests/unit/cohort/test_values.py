"""Visits, Correspondence and Truth: checked at birth, selected together."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from prism.cohort import Correspondence, Truth, Visits
from prism.errors import CohortError, QueryError
from tests.problems.good_cohort import good_truth, shapes


def _visits(count: int = 6) -> Visits:
    subject = [f"s{row // 2}" for row in range(count)]
    split = np.where(np.arange(count) < 4, "train", "test")
    visit = np.arange(count) % 2
    return Visits(np.array(subject), visit, np.arange(count, dtype=float), {"split": split})


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((["a"], ["1"], [np.inf]), "subject a, visit 1.*infinite"),
        ((["a"], ["1"], ["two"]), "t must hold real numbers"),
        ((["a"], ["1"], [1j]), "t must hold real numbers"),
        ((["a", "a"], ["1", "1"], [0.0, 1.0]), "row 2 repeats row 1"),
        ((["a", "b"], ["1", "1"], [0.0]), "t must have one entry a visit"),
        ((["a"], ["1"], [0.0], {"sex": ["f", "m"]}), "sex must have one entry a visit"),
        (([["a"]], [["1"]], [[0.0]]), "subject must be a list"),
    ],
)
def test_visits_that_do_not_hold_together_are_refused(parts: Any, message: str) -> None:
    with pytest.raises(CohortError, match=message):
        Visits(*parts)


def test_unknown_ages_are_nan() -> None:
    np.testing.assert_array_equal(Visits(["a", "b"], ["1", "1"], [None, 2]).t, [np.nan, 2.0])


@pytest.mark.parametrize("index", [0, -1, slice(1, 4), np.array([4, 1]), np.arange(6) > 2])
def test_visits_shapes_and_truth_are_selected_in_step(index: Any) -> None:
    truth = Truth(**{**good_truth(), "tau": np.arange(48.0).reshape(24, 2)})[:6]
    rows = np.atleast_1d(np.arange(6)[index])
    part = Correspondence(shapes(6), _visits(), shapes(1)[0])[index]
    assert part.visits.t.tolist() == rows.tolist()
    assert part.visits.columns["split"].tolist() == [_visits().columns["split"][r] for r in rows]
    np.testing.assert_array_equal(part.points, shapes(6)[rows])
    np.testing.assert_array_equal(part.template, shapes(1)[0])
    np.testing.assert_array_equal(truth[index].tau[:, 0], 2.0 * rows)
    assert len(truth[index].clean) == len(truth[index].abnormal) == len(rows)


def test_values_travel_to_worker_processes() -> None:
    part = pickle.loads(pickle.dumps(Correspondence(shapes(6), _visits())))
    np.testing.assert_array_equal(part.points, shapes(6))
    assert part.visits.columns["split"].tolist() == _visits().columns["split"].tolist()


def test_the_default_template_is_the_mean_of_what_was_seen() -> None:
    points = shapes(6)
    points[0, 3] = np.nan
    shape = Correspondence(points, _visits())
    np.testing.assert_allclose(shape.template, np.nanmean(points, axis=0))
    np.testing.assert_allclose(np.nanmean(shape.displacements, axis=0), 0.0, atol=1e-12)
    assert (~shape.observed).sum() == 1
    assert not shape.observed[0, 3]


def test_inputs_are_not_touched() -> None:
    points, before = shapes(6), shapes(6)
    points.setflags(write=False)
    Correspondence(points, _visits(), cells=[[0, 1]])
    np.testing.assert_array_equal(points, before)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"points": [[[0.0, 1.0]], [[0.0]]]}, "points must be a regular array"),
        ({"points": shapes(6) * 1j}, "complex128"),
        ({"points": np.zeros((6, 0, 3))}, "M > 0"),
        ({"points": shapes(5)}, "5 shapes, the visits table 6"),
        ({"cells": [[0.0, 1.5]]}, "cells must hold whole numbers"),
        ({"cells": [[0, 7]]}, "points 0 to 7, but there are points 0 to 6"),
        ({"template": np.zeros((7, 3))}, "template must have shape"),
    ],
)
def test_shapes_that_do_not_hold_together_are_refused(entries: Any, message: str) -> None:
    with pytest.raises(CohortError, match=message):
        Correspondence(**{"points": shapes(6), "visits": _visits(), **entries})


def test_subjects_are_split_whole_and_completely() -> None:
    both = Correspondence(shapes(6), _visits())
    rest, held = both.split_subjects(1 / 3, seed=3)
    assert len(held.visits.subjects) == 1
    assert not set(rest.visits.subjects) & set(held.visits.subjects)
    assert sorted([*rest.visits.t, *held.visits.t]) == both.visits.t.tolist()
    again = both.split_subjects(1 / 3, seed=3)[1]
    assert again.visits.subjects == held.visits.subjects


def test_splits_and_subjects_are_found_by_name() -> None:
    both = Correspondence(shapes(6), _visits())
    assert both.of_split("test").visits.t.tolist() == [4.0, 5.0]
    assert both.of_subjects(["s2", "s0"]).visits.subjects == ["s0", "s2"]
    with pytest.raises(QueryError, match=r"no subject 's9'.\n.*: s0, s1, s2\."):
        both.of_subjects(["s2", "s9"])
    with pytest.raises(CohortError, match="split 'validation'"):
        both.of_split("validation")


def test_tau_is_global_only_where_all_regions_share_it() -> None:
    shared = Truth(**good_truth())
    assert shared.tau_global is not None
    own = np.stack([np.zeros(24), np.ones(24)], axis=-1)
    assert Truth(**{**good_truth(), "tau": own}).tau_global is None


def test_errors_of_ages_are_numbers_of_the_visit() -> None:
    three = np.array(["a", "b", "c"]), np.array(["1", "1", "2"]), np.arange(3.0)
    assert Visits(*three).t_error.tolist() == [0, 0, 0]
    visits = Visits(*three, {"t_error": np.array([0.10, np.nan, 2])})
    assert visits.t_error.tolist() == [0.1, 0, 2]
    assert visits[1:].t_error.tolist() == [0, 2]
    with pytest.raises(CohortError, match=r"subject c, visit 2: t_error '-1' is below zero"):
        Visits(*three, {"t_error": np.array(["", "0,5", "-1"])})
