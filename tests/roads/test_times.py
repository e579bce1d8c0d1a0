"""Intrinsic time by scoring, closed form, grid search, table and encoder: one number."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from prism.fisher import field_and_rate
from prism.gaussian import solve_lower
from prism.intrinsic import EncoderConfig, InverseEncoder, TimeTable, joint_mle_time, mle_time
from prism.intrinsic.likelihood import maximum_likelihood
from prism.model import PRISM
from prism.training import Runtime
from tests.problems.linear_gaussian import Curved, LinearGaussian, points

both = pytest.mark.parametrize("n", [2, 3])
SPAN = (-3.0, 4.0)
STEP = (SPAN[1] - SPAN[0]) / 3999


def draw(law, p: Tensor, t: float, count: int, seed: int = 0) -> Tensor:
    """Displacements (count, M, n) of a population at one age."""
    times = torch.full((count, len(p)), t, dtype=torch.float64)
    return law(p, times).sample(torch.Generator().manual_seed(seed))


@both
def test_scoring_closed_form_and_search_agree_where_the_spread_is_constant(n: int) -> None:
    law, p = LinearGaussian.example(n), points(5, n)
    table, d = TimeTable.of(law, p.numpy(), SPAN), draw(law, p, 0.5, 20)
    exact = law.best_time(p, d).numpy()
    np.testing.assert_allclose(mle_time(table, d.numpy()).tau, exact, atol=1e-6)
    np.testing.assert_allclose(maximum_likelihood(table, d.numpy()), exact, atol=0.51 * STEP)


@both
def test_scoring_finds_the_root_a_search_finds(n: int) -> None:
    law, p = Curved(n), points(5, n)
    d = draw(law, p, 0.5, 8)
    grid = torch.linspace(*SPAN, 4000, dtype=torch.float64)
    rate = field_and_rate(law, p[:, None], grid)
    white = rate.field.whiten(d[:, :, None])  # (8, 5, 4000, n)
    slope = (white * solve_lower(rate.field.L, rate.mu_t)).sum(-1)
    crossing = (slope[..., :-1] > 0) & (slope[..., 1:] <= 0)
    tau = torch.as_tensor(mle_time(TimeTable.of(law, p.numpy(), SPAN, 257), d.numpy()).tau)
    # the root of the mean score nearest to the estimate, found by its change of sign
    away = torch.where(crossing, (grid[:-1] + STEP / 2 - tau[..., None]).abs(), torch.inf)
    assert float(away.amin(-1).max()) < STEP


@both
def test_the_literal_maximum_is_that_of_a_brute_search(n: int) -> None:
    law, p = Curved(n), points(5, n)
    d = draw(law, p, 0.5, 6)
    grid = torch.linspace(*SPAN, 4000, dtype=torch.float64)
    likely = law(p[:, None], grid).log_prob(d[:, :, None])
    brute = grid[likely.argmax(-1)].numpy()
    table = TimeTable.of(law, p.numpy(), SPAN, 257)
    np.testing.assert_allclose(maximum_likelihood(table, d.numpy()), brute, atol=1.01 * STEP)


@both
def test_the_best_time_varies_by_the_inverse_information(n: int) -> None:
    law, p, count = LinearGaussian.example(n), points(3, n), 10_000
    tau = mle_time(TimeTable.of(law, p.numpy(), SPAN), draw(law, p, 0.5, count).numpy()).tau
    bound = 1 / law.information(p).numpy()
    # relative standard error of a variance: sqrt(2 / count); three of them are allowed
    np.testing.assert_allclose(tau.var(axis=0), bound, rtol=3 * np.sqrt(2 / count))
    np.testing.assert_array_less(np.abs(tau.mean(axis=0) - 0.5), 3 * np.sqrt(bound / count))


@both
def test_joint_time_its_error_and_its_spread_agree(n: int) -> None:
    law, p, count = LinearGaussian.example(n), points(12, n), 5_000
    d = draw(law, p, 0.5, count)
    found = joint_mle_time(TimeTable.of(law, p.numpy(), SPAN), d.numpy())
    np.testing.assert_allclose(found.tau, law.best_joint_time(p, d), atol=1e-6)
    exact = 1 / float(law.information(p).sum())
    tolerance = 3 * np.sqrt(2 / count)
    assert found.tau.var() == pytest.approx(exact, rel=tolerance)
    spread = (found.se**2).std() / np.sqrt(count)  # the mean squared error is unbiased here
    assert (found.se**2).mean() == pytest.approx(exact, abs=3 * spread)


def test_table_and_model_say_the_same(tiny_model: PRISM) -> None:
    first, last = tiny_model.ages
    p = torch.as_tensor(tiny_model.template)
    shares = torch.tensor([-0.4, -0.1, 0.01, 0.37, 0.5, 0.99, 1.1, 1.4], dtype=torch.float64)
    t = first + (last - first) * shares[:, None]
    direct = field_and_rate(tiny_model, p, t)
    field, mu_t = tiny_model.table.at(t.expand(-1, len(p)))
    pairs = (field.mu, direct.field.mu), (field.L, direct.field.L), (mu_t, direct.mu_t)
    for found, exact in pairs:
        torch.testing.assert_close(found, exact, rtol=0, atol=1e-4 * float(exact.abs().max()))


def test_the_encoder_learns_the_likelihoods_answer_on_an_easy_law() -> None:
    law, p = LinearGaussian.example(2), points(6, 2)
    table = TimeTable.of(law, p.numpy(), (-1.0, 2.0))
    config = EncoderConfig(width=32, hidden=1, steps=500, batch=1024)
    runtime = Runtime(device="cpu")
    encoder, _ = InverseEncoder.fit(table, p.numpy(), (-0.2, 1.2), 0.01, config, 0, runtime)
    tau = torch.linspace(0, 1, 50, dtype=torch.float64)[:, None].expand(-1, 6)
    d = law(p, tau).mu + 0.01 * torch.randn(50, 6, 2, generator=torch.Generator().manual_seed(0))
    gap = encoder(p.numpy(), d.numpy()) - mle_time(table, d.numpy()).tau
    assert np.abs(gap).mean() < 0.02
