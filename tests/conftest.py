"""What every test shares: one thread, and one tiny trained model."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported: tests run side by side

if TYPE_CHECKING:
    from prism.model import PRISM
    from prism.simulate.study import Study


@pytest.fixture(scope="session")
def tiny_study() -> Study:
    from tests.problems.tiny import tiny_cohort

    return tiny_cohort()


@pytest.fixture(scope="session")
def tiny_model(tiny_study: Study) -> PRISM:
    from tests.problems.tiny import fit_tiny

    return fit_tiny(tiny_study.correspondence, steps=300)


@pytest.fixture(scope="session")
def model_in_space() -> PRISM:
    from tests.problems.tiny import cohort_in_space, fit_tiny

    return fit_tiny(cohort_in_space(), steps=300)
