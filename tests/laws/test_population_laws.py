"""Laws of populations, true for every weight, point, time and unit."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from prism.fisher import field_and_rate, fisher_information, temporal_std
from prism.gaussian import diagonal_indices
from prism.population import Units
from prism.population.field import FieldNetworks, NeuralPopulation
from tests.problems.linear_gaussian import Curved, LinearGaussian, Mapped, OtherClock, points
from tests.problems.tiny import CONFIG

few = settings(max_examples=12, deadline=None)
dimensions = st.sampled_from([2, 3])
seeds = st.integers(0, 999)
FLOOR = 0.01


def population(n: int, seed: int, shake: float = 0.3) -> NeuralPopulation:
    """A neural population with random weights, in months and millimetres far from the origin."""
    draw = torch.Generator().manual_seed(seed)
    networks = FieldNetworks(n, CONFIG, FLOOR)
    with torch.no_grad():
        for weight in networks.parameters():
            weight.copy_(shake * torch.randn(weight.shape, generator=draw))
    units = Units((500.0,) * n, 20.0, 3.0, t_first=12.0, t_range=60.0)
    return NeuralPopulation(networks, units, CONFIG)


def places(n: int, count: int = 5) -> torch.Tensor:
    return 500 + 40 * (points(count, n) - 0.5)


@few
@given(n=dimensions, seed=seeds, shake=st.floats(0.0, 2.0), t=st.floats(-100, 200))
def test_covariance_is_positive_definite_for_any_weights(n, seed, shake, t) -> None:
    field = population(n, seed, shake)(places(n), torch.tensor(t, dtype=torch.float64))
    assert (field.L[..., diagonal_indices(n)] >= 0.99 * FLOOR * 3.0).all()
    assert (torch.linalg.eigvalsh(field.Sigma) > 0).all()


@few
@given(n=dimensions, seed=seeds)
def test_at_the_first_age_the_mean_is_the_covariate_free_network(n, seed) -> None:
    law, p = population(n, seed), places(n)
    found = law(p, torch.tensor(12.0, dtype=torch.float64))
    x = law.units.points(p)
    assert torch.equal(found.mu, (3.0 * law.networks.mean.h(x)).double())
    raw = law.networks.shape_factor(law.networks.cholesky.h(x))
    assert torch.equal(found.L, (3.0 * raw).double())


@few
@given(n=dimensions, seed=seeds, t=st.floats(0, 1))
def test_information_survives_invertible_linear_maps(n, seed, t) -> None:
    draw = torch.Generator().manual_seed(seed)
    B = torch.randn(n, n, generator=draw, dtype=torch.float64) + 3 * torch.eye(n)
    law, p, time = Curved(n, seed), points(6, n), torch.tensor(t, dtype=torch.float64)
    for kind in ("mean", "covariance", "full"):
        torch.testing.assert_close(
            fisher_information(Mapped(law, B), p, time, kind),
            fisher_information(law, p, time, kind),
            rtol=1e-8,
            atol=1e-10,
        )


@few
@given(n=dimensions, scale=st.floats(0.01, 400), t=st.floats(0, 1))
def test_temporal_spread_follows_the_time_unit(n, scale, t) -> None:
    for law in (LinearGaussian.example(n), Curved(n)):
        p = points(4, n)
        for kind in ("bound", "separated"):
            here = temporal_std(law, p, torch.tensor(t, dtype=torch.float64), kind)
            there = temporal_std(
                OtherClock(law, scale), p, torch.tensor(scale * t, dtype=torch.float64), kind
            )
            torch.testing.assert_close(there, scale * here, rtol=1e-8, atol=0)


@few
@given(n=dimensions, seed=seeds, scale=st.sampled_from([1 / 12, 7.0, 365.25]))
def test_a_model_rewritten_in_another_time_unit_says_the_same(n, seed, scale) -> None:
    law, p = population(n, seed), places(n)
    units = replace(law.units, t_first=12.0 * scale, t_range=60.0 * scale)
    other = NeuralPopulation(law.networks, units, CONFIG)
    for t in (5.0, 12.0, 40.0, 80.0):  # before, at, within and beyond the training ages
        times = [torch.tensor(t * c, dtype=torch.float64) for c in (1.0, scale)]
        here, there = temporal_std(law, p, times[0]), temporal_std(other, p, times[1])
        torch.testing.assert_close(there, scale * here, rtol=1e-3, atol=0)
        torch.testing.assert_close(other(p, times[1]).mu, law(p, times[0]).mu, rtol=1e-4, atol=1e-4)


@few
@given(n=dimensions, seed=seeds, scale=st.sampled_from([0.001, 0.1, 25.4]))
def test_covariance_scales_with_length_squared_and_time_with_nothing(n, seed, scale) -> None:
    law, p = population(n, seed), places(n)
    lengths = {"centre": (500.0 * scale,) * n, "scale": 20 * scale, "displacement": 3 * scale}
    units = replace(law.units, **lengths)
    other = NeuralPopulation(law.networks, units, CONFIG)
    t = torch.tensor(33.0, dtype=torch.float64)
    here, there = law(p, t), other(scale * p, t)
    expected = scale**2 * here.Sigma
    least = 1e-5 * float(expected.abs().max())  # entries that cancel are known no better
    torch.testing.assert_close(there.Sigma, expected, rtol=1e-4, atol=least)
    assert other.floor == pytest.approx(scale * law.floor)
    spreads = temporal_std(other, scale * p, t), temporal_std(law, p, t)
    torch.testing.assert_close(*spreads, rtol=1e-3, atol=0)


@few
@given(n=dimensions, seed=seeds, after=st.booleans(), far=st.floats(1, 500))
def test_beyond_the_ages_the_mean_runs_straight_and_the_spread_stands(n, seed, after, far) -> None:
    law, p = population(n, seed), places(n)
    end, sign = (72.0, 1.0) if after else (12.0, -1.0)
    times = end + sign * torch.tensor([0.0, 1.0, 2.0], dtype=torch.float64)[:, None] * far
    rate = field_and_rate(law, p, times)
    mu = rate.field.mu
    close = {"rtol": 1e-4, "atol": 1e-4 * float(mu.abs().max())}
    torch.testing.assert_close(mu[2] - mu[1], mu[1] - mu[0], **close)
    torch.testing.assert_close(mu[1] - mu[0], sign * far * rate.mu_t[0], **close)
    single = {"rtol": 1e-5, "atol": 1e-5}
    torch.testing.assert_close(rate.mu_t[1:], rate.mu_t[:1].expand(2, -1, -1), **single)
    torch.testing.assert_close(rate.field.L[1:], rate.field.L[:1].expand(2, -1, -1), **single)
    assert (rate.L_t[1:] == 0).all()


@few
@given(n=dimensions, seed=seeds, end=st.sampled_from([12.0, 72.0]))
def test_nothing_jumps_at_the_ends_of_the_ages(n, seed, end) -> None:
    law, p = population(n, seed), places(n)
    times = end + torch.tensor([-1e-4, 1e-4], dtype=torch.float64)[:, None]
    rate = field_and_rate(law, p, times)
    torch.testing.assert_close(rate.field.mu[0], rate.field.mu[1], rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(rate.field.L[0], rate.field.L[1], rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(rate.mu_t[0], rate.mu_t[1], rtol=1e-3, atol=1e-4)
