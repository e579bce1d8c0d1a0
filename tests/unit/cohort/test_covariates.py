from __future__ import annotations

import numpy as np
import pytest

from prism.cohort import Visits, known_covariates, unfamiliar


def visits(**columns: list[str]) -> Visits:
    count = len(next(iter(columns.values()), ["", ""]))
    names = np.array([f"s{i}" for i in range(count)])
    return Visits(
        names, names, np.arange(float(count)), {k: np.array(v) for k, v in columns.items()}
    )


def test_values_that_describe_people_are_listed_and_names_are_not() -> None:
    found = known_covariates(
        visits(sex=["f", "m", "", "f"], site=["B", "A", "A", "A"], initials=["XY", "Q", "R", "S"])
    )
    assert found == {"sex": ["f", "m"], "site": ["A", "B"]}
    assert known_covariates(visits(sex=["", ""])) == {}
    assert known_covariates(visits()) == {}


def test_people_the_model_has_not_met_are_counted_and_told() -> None:
    known = {"sex": ["f"], "site": ["A", "B"]}
    told = unfamiliar(visits(sex=["f", "m", "m", ""], site=["A", "B", "B", "A"]), known)
    assert len(told) == 1
    assert told[0].startswith("2 visit(s) have sex m,")
    assert told[0].endswith("(f).")
    both = unfamiliar(visits(sex=["x", "f"], site=["C", "A"]), known)
    assert [sentence.split(" have ")[1][:4] for sentence in both] == ["sex ", "site"]


@pytest.mark.parametrize(
    "columns", [{}, {"sex": ["f", "f"]}, {"sex": ["", ""]}, {"eye": ["b", "g"]}]
)
def test_familiar_people_and_missing_columns_are_passed_over(columns: dict[str, list[str]]) -> None:
    assert unfamiliar(visits(**columns), {"sex": ["f"]}) == []
    assert unfamiliar(visits(**columns), {}) == []
