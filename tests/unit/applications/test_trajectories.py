from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from prism.applications import trajectory
from prism.errors import QueryError
from prism.fisher import fisher_information
from prism.model import PRISM


@pytest.fixture(params=["tiny_model", "model_in_space"])
def model(request: pytest.FixtureRequest) -> PRISM:
    return request.getfixturevalue(request.param)


def test_the_answers_are_the_models_own(model: PRISM) -> None:
    ages = np.linspace(*model.ages, 4)
    found = trajectory(model, ages)
    field = model(model.template, torch.as_tensor(ages)[:, None])
    np.testing.assert_allclose(found.points, model.template + field.mu.numpy(), rtol=1e-6)
    np.testing.assert_allclose(found.Sigma, field.Sigma.numpy(), rtol=1e-4, atol=1e-9)
    for kind, info in (("mean", found.info), ("full", found.info_full)):
        exact = fisher_information(model, model.template, ages[:, None], kind)  # type: ignore[arg-type]
        np.testing.assert_allclose(info, exact, rtol=1e-3)
    assert found.cells is model.cells


def test_spread_is_the_bound_or_infinite_beyond_the_range(model: PRISM) -> None:
    found = trajectory(model, np.linspace(*model.ages, 5))
    readable = np.isfinite(found.sigma_tau_bound)
    expected = found.info[readable] ** -0.5
    np.testing.assert_allclose(found.sigma_tau_bound[readable], expected, rtol=0.05)
    age_range = model.ages[1] - model.ages[0]
    assert (found.sigma_tau_bound[readable] < age_range).all()
    assert (found.info[~readable] ** -0.5 > 0.9 * age_range).all()


def test_the_interval_lies_around_the_mean_and_grows_with_its_level(model: PRISM) -> None:
    ages = np.linspace(*model.ages, 3)
    half, found = trajectory(model, ages, 0.5), trajectory(model, ages)
    assert (half.lower < half.upper).all()
    assert (half.upper - half.lower < found.upper - found.lower).all()
    np.testing.assert_allclose((found.lower + found.upper) / 2, found.points)


def test_ages_outside_the_range_are_flagged(model: PRISM) -> None:
    first, last = model.ages
    found = trajectory(model, np.array([first - 1e-3, first, last, last + 1e-3]))
    assert found.extrapolated.tolist() == [True, False, False, True]


def test_one_age_is_enough_and_no_age_is_refused(tiny_model: PRISM) -> None:
    assert trajectory(tiny_model, 0.5).points.shape == (1, 24, 2)
    for wrong in (np.nan, np.inf, np.zeros((2, 2)), [], "soon", [[1], [2, 3]]):
        with pytest.raises(QueryError, match="finite numbers"):
            trajectory(tiny_model, wrong)  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="level must be one of"):
        trajectory(tiny_model, 0.5, level=0.7)


def test_the_separated_spread_is_without_the_noise_that_was_found(tiny_model: PRISM) -> None:
    def spread(share: float) -> np.ndarray:
        factors = replace(tiny_model.covariation.factors, q=1.0)
        how = replace(tiny_model.covariation, factors=factors, noise_share=share, wider=1.0)
        return trajectory(replace(tiny_model, covariation=how), np.array([0.3, 0.7])).sigma_tau

    none, most = spread(0.0), spread(0.9)
    told = np.isfinite(none)
    assert (most[told] <= none[told]).all()
    assert np.median(most[told] / none[told]) < 0.99
