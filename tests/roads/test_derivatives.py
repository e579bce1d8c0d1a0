"""Rates of change by forward mode, by hand, by autograd and by differences: one number."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from prism.fisher import field_and_rate, forward_mode_rate, score, score_of
from prism.gaussian import Population
from prism.model import PRISM
from tests.problems.linear_gaussian import Curved, IsotropicSpread, LinearGaussian, points

PROBLEMS = [make(n) for n in (2, 3) for make in (LinearGaussian.example, IsotropicSpread, Curved)]
everyone = pytest.mark.parametrize("law", PROBLEMS, ids=lambda law: type(law).__name__)


def dimension(law: Population) -> int:
    return len(law.a) if isinstance(law, LinearGaussian) else law.n  # type: ignore[attr-defined]


def situation(law: Population) -> tuple[Tensor, Tensor, Tensor]:
    """Points, times and displacements away from the mean."""
    n = dimension(law)
    t = torch.linspace(0.1, 1.2, 12, dtype=torch.float64)
    draw = torch.Generator().manual_seed(5)
    return points(12, n), t, torch.randn(12, n, generator=draw, dtype=torch.float64)


@everyone
def test_rates_agree_with_central_differences(law: Population) -> None:
    p, t, _ = situation(law)
    rate, h = field_and_rate(law, p, t), 1e-5
    before, after = law(p, t - h), law(p, t + h)
    torch.testing.assert_close(rate.mu_t, (after.mu - before.mu) / (2 * h), rtol=1e-7, atol=1e-8)
    torch.testing.assert_close(rate.L_t, (after.L - before.L) / (2 * h), rtol=1e-7, atol=1e-8)


@everyone
def test_score_agrees_with_autograd_and_differences(law: Population) -> None:
    p, t, d = situation(law)
    found = score(law, d, p, t)
    time = t.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(law(p, time).log_prob(d).sum(), time)
    torch.testing.assert_close(found, gradient)
    h = 1e-5
    slope = (law(p, t + h).log_prob(d) - law(p, t - h).log_prob(d)) / (2 * h)
    torch.testing.assert_close(found, slope, rtol=1e-6, atol=1e-6)


@everyone
def test_score_agrees_with_the_papers_formula(law: Population) -> None:
    p, t, d = situation(law)
    rate = field_and_rate(law, p, t)
    (mu, Sigma), (mu_t, Sigma_t) = torch.func.jvp(
        lambda s: (law(p, s).mu, law(p, s).Sigma), (t,), (torch.ones_like(t),)
    )
    inverse, r = torch.linalg.inv(Sigma), (d - mu)[..., None]
    A = inverse @ Sigma_t @ inverse
    trace = (inverse @ Sigma_t).diagonal(dim1=-2, dim2=-1).sum(-1)
    quadratic = (r.mT @ A @ r)[..., 0, 0]
    expected = (mu_t[:, None] @ inverse @ r)[..., 0, 0] + 0.5 * quadratic - 0.5 * trace
    torch.testing.assert_close(score_of(rate, d), expected)


@pytest.fixture(params=["tiny_model", "model_in_space"])
def model(request: pytest.FixtureRequest) -> PRISM:
    return request.getfixturevalue(request.param)


def ages(model: PRISM, *shares: float) -> Tensor:
    """Ages as shares of the training range: below 0 and above 1 lie outside."""
    first, last = model.ages
    return torch.tensor([[first + s * (last - first)] for s in shares], dtype=torch.float64)


def test_networks_own_tangent_agrees_with_forward_mode(model: PRISM) -> None:
    p = torch.as_tensor(model.template)
    t = ages(model, -0.3, 0.0, 0.1, 0.6, 1.0, 1.2).expand(-1, len(p)).contiguous()
    by_hand, by_mode = field_and_rate(model, p, t), forward_mode_rate(model.population, p, t)
    assert not torch.equal(by_hand.mu_t, torch.zeros_like(by_hand.mu_t))
    for name in ("mu_t", "L_t"):
        ours, theirs = getattr(by_hand, name), getattr(by_mode, name)
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-5 * float(theirs.abs().max()))
    torch.testing.assert_close(by_hand.field.mu, by_mode.field.mu, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(by_hand.field.L, by_mode.field.L, rtol=1e-4, atol=1e-6)


def test_networks_tangent_agrees_with_differences_in_single_precision(model: PRISM) -> None:
    # Networks compute in single precision: with steps of 1% of the ages, rounding and curvature
    # leave about 0.1% of the largest rate.
    p, t = torch.as_tensor(model.template), ages(model, -0.3, 0.2, 0.5, 0.8, 1.3)
    rate, h = field_and_rate(model, p, t), 0.01 * (model.ages[1] - model.ages[0])
    slope = (model(p, t + h).mu - model(p, t - h).mu) / (2 * h)
    torch.testing.assert_close(rate.mu_t, slope, rtol=0, atol=3e-3 * float(slope.abs().max()))
    inside = t[1:4]
    slope = (model(p, inside + h).L - model(p, inside - h).L) / (2 * h)
    torch.testing.assert_close(rate.L_t[1:4], slope, rtol=0, atol=5e-3 * float(slope.abs().max()))
