from __future__ import annotations

import numpy as np
import pytest
import torch

from prism import fisher
from prism.errors import QueryError
from prism.fisher import fisher_information, spread_of, temporal_std
from prism.simulate.starman import SPREADS, StarmanLaw, outline
from tests.problems.linear_gaussian import (
    Curved,
    IsotropicSpread,
    LinearGaussian,
    points,
    starman_time_variance,
)

both = pytest.mark.parametrize("n", [2, 3])


@both
def test_linear_gaussian_has_its_information(n: int) -> None:
    law, p = LinearGaussian.example(n), points(7, n)
    for t in (-1.0, 0.3, 40.0):
        found = fisher_information(law, p, torch.tensor(t))
        torch.testing.assert_close(found, law.information(p))
    assert fisher_information(law, p, torch.tensor(0.0), "covariance").abs().max() < 1e-20


@both
def test_isotropic_spread_has_its_information(n: int) -> None:
    law, t = IsotropicSpread(n), torch.linspace(0.1, 3, 9, dtype=torch.float64)
    p = points(9, n)
    torch.testing.assert_close(fisher_information(law, p, t, "covariance"), law.information(t))
    torch.testing.assert_close(fisher_information(law, p, t, "full"), law.information(t))
    assert (fisher_information(law, p, t, "mean") == 0).all()


def test_starman_floor_adds_to_the_temporal_variance() -> None:
    law, p = StarmanLaw("global", 0.03), outline(60)
    t = np.linspace(0, 1, 60)
    found = np.asarray(temporal_std(law, p, t)) ** 2
    np.testing.assert_allclose(found, starman_time_variance(law, p, t), rtol=1e-8)


def test_the_separated_spread_of_starman_is_the_true_one_without_the_floor() -> None:
    law, p = StarmanLaw("global", 0.03), outline(60)
    t = np.linspace(0, 1, 60)
    truth = np.asarray(SPREADS["global"][0](t))
    bound = np.asarray(temporal_std(law, p, t))
    kept = truth > 0.2 * bound  # elsewhere rounding, and at last LEAST_SHARE, takes over
    found = np.asarray(temporal_std(law, p, t, kind="separated"))
    assert kept.sum() > 10
    np.testing.assert_allclose(found[kept], truth[kept], rtol=1e-6)
    assert (found >= fisher.LEAST_SHARE * bound * (1 - 1e-12)).all()
    assert (found <= bound).all()


@both
def test_information_agrees_with_the_matrix_formulas(n: int) -> None:
    law, p = Curved(n), points(20, n)
    t = torch.linspace(0, 1, 20, dtype=torch.float64)
    (_, Sigma), (mu_t, Sigma_t) = torch.func.jvp(
        lambda s: (law(p, s).mu, law(p, s).Sigma), (t,), (torch.ones_like(t),)
    )
    ratio = torch.linalg.solve(Sigma, Sigma_t)
    mean = (mu_t * torch.linalg.solve(Sigma, mu_t)).sum(-1)
    spread = 0.5 * (ratio @ ratio).diagonal(dim1=-2, dim2=-1).sum(-1)
    torch.testing.assert_close(fisher_information(law, p, t), mean)
    torch.testing.assert_close(fisher_information(law, p, t, "covariance"), spread)
    torch.testing.assert_close(fisher_information(law, p, t, "full"), mean + spread)


def test_time_that_cannot_be_read_is_infinitely_uncertain() -> None:
    p = points(3, 2)
    for kind in ("bound", "separated"):
        assert torch.isinf(temporal_std(IsotropicSpread(2), p, torch.tensor(1.0), kind)).all()
    assert np.isinf(np.asarray(spread_of(np.array([0.0, -1e-30])))).all()
    assert np.asarray(spread_of(np.array([0.25]))) == 2.0


def test_arrays_in_arrays_out_with_broadcast_axes() -> None:
    law, p, t = LinearGaussian.example(2), points(5, 2).numpy(), np.linspace(0, 1, 3)
    found = fisher_information(law, p, t[:, None])
    assert isinstance(found, np.ndarray)
    assert found.shape == (3, 5)


def test_chunks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    law, p, t = Curved(3), points(10, 3), torch.linspace(0, 1, 10, dtype=torch.float64)
    whole = fisher_information(law, p, t)
    monkeypatch.setattr(fisher, "CHUNK", 3)
    torch.testing.assert_close(fisher_information(law, p, t), whole, rtol=1e-14, atol=0)


def test_unknown_kind_is_refused() -> None:
    with pytest.raises(QueryError, match="kind must be one of"):
        temporal_std(LinearGaussian.example(2), points(1, 2), torch.tensor(0.0), "full")  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="kind must be one of"):
        fisher_information(LinearGaussian.example(2), points(1, 2), torch.tensor(0.0), "all")  # type: ignore[arg-type]
