"""Fisher information: closed form against Monte Carlo and against the divergence of two laws."""

from __future__ import annotations

import pytest
import torch
from torch.distributions import MultivariateNormal, kl_divergence

from prism.fisher import fisher_information, score
from prism.gaussian import Population
from prism.simulate.starman import StarmanLaw, outline
from tests.problems.linear_gaussian import Curved, IsotropicSpread, LinearGaussian, points

DRAWS = 40_000
CASES = {
    "linear": (LinearGaussian.example(3), points(3, 3)),
    "spread": (IsotropicSpread(2), points(3, 2)),
    "curved-2d": (Curved(2), points(3, 2)),
    "curved-3d": (Curved(3), points(3, 3)),
    "starman": (StarmanLaw("local", 0.1), torch.as_tensor(outline(3 * 7)[::7])),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> tuple[Population, torch.Tensor, torch.Tensor]:
    law, p = CASES[request.param]
    return law, p, torch.tensor([0.2, 0.5, 0.9], dtype=torch.float64)


def test_full_information_is_the_variance_of_the_score(case) -> None:
    law, p, t = case
    info = fisher_information(law, p, t, "full")
    p, t = p.expand(DRAWS, *p.shape), t.expand(DRAWS, -1)
    U = score(law, law(p, t).sample(torch.Generator().manual_seed(0)), p, t)
    # Standard errors measured on the draws themselves; three of them are allowed.
    assert (U.mean(0).abs() < 3 * U.std(0) / DRAWS**0.5).all()
    assert ((U**2).mean(0) - info).abs().le(3 * (U**2).std(0) / DRAWS**0.5).all()


def test_full_information_is_the_curvature_of_the_divergence(case) -> None:
    law, p, t = case
    info, h = fisher_information(law, p, t, "full"), 1e-3

    def normal(s: torch.Tensor) -> MultivariateNormal:
        field = law(p, s)
        return MultivariateNormal(field.mu, field.Sigma)

    both = [kl_divergence(normal(t), normal(t + step)) for step in (h, -h)]
    torch.testing.assert_close((both[0] + both[1]) / h**2, info, rtol=1e-3, atol=1e-6)
