from __future__ import annotations

import math

import pytest
import torch

from prism.gaussian import (
    GaussianField,
    add_noise,
    diagonal_indices,
    log_det_lower,
    multiply_lower,
    pack,
    packed_size,
    solve_lower,
    unpack,
)

both = pytest.mark.parametrize("n", [2, 3])


def factors(n: int, count: int = 50) -> torch.Tensor:
    """Random lower triangles with a diagonal away from zero, (count, n, n)."""
    draw = torch.Generator().manual_seed(n)
    L = torch.randn(count, n, n, generator=draw, dtype=torch.float64)
    return L.tril(-1) + torch.diag_embed(0.5 + L.diagonal(dim1=1, dim2=2).abs())


def field(n: int) -> tuple[GaussianField, torch.distributions.MultivariateNormal]:
    """The same law here and in torch.distributions."""
    L = factors(n)
    mu = torch.randn(len(L), n, dtype=torch.float64, generator=torch.Generator().manual_seed(9))
    return GaussianField(mu, pack(L)), torch.distributions.MultivariateNormal(mu, scale_tril=L)


@both
def test_packing_is_row_by_row_and_invertible(n: int) -> None:
    full = torch.arange(1.0, n * n + 1).reshape(n, n).tril()
    packed = pack(full)
    assert packed.tolist() == [full[i, j] for i in range(n) for j in range(i + 1)]
    assert len(packed) == packed_size(n)
    assert torch.equal(unpack(packed, n), full)
    assert torch.equal(packed[diagonal_indices(n)], full.diagonal())


@both
def test_triangular_algebra_agrees_with_linalg(n: int) -> None:
    L, r = factors(n), torch.randn(50, n, dtype=torch.float64)
    solved = torch.linalg.solve_triangular(L, r[..., None], upper=False)[..., 0]
    torch.testing.assert_close(solve_lower(pack(L), r), solved)
    torch.testing.assert_close(multiply_lower(pack(L), r), (L @ r[..., None])[..., 0])
    torch.testing.assert_close(log_det_lower(pack(L), n), torch.logdet(L))


@both
def test_density_agrees_with_torch_distributions(n: int) -> None:
    ours, theirs = field(n)
    d = torch.randn(50, n, dtype=torch.float64)
    torch.testing.assert_close(ours.log_prob(d), theirs.log_prob(d))
    constant = 0.5 * n * math.log(2 * math.pi)
    torch.testing.assert_close(ours.nll(d), -theirs.log_prob(d) - constant)


@both
def test_covariance_std_and_whitening_agree(n: int) -> None:
    ours, theirs = field(n)
    torch.testing.assert_close(ours.Sigma, theirs.covariance_matrix)
    torch.testing.assert_close(ours.std, theirs.variance.sqrt())
    d = torch.randn(50, n, dtype=torch.float64)
    e = ours.whiten(d)
    square = torch.einsum("bi,bij,bj->b", d - ours.mu, torch.linalg.inv(ours.Sigma), d - ours.mu)
    torch.testing.assert_close((e**2).sum(-1), square)
    again = GaussianField.from_covariance(ours.mu, ours.Sigma)
    torch.testing.assert_close(again.L, ours.L)


@both
def test_noise_adds_to_the_covariance_in_every_direction(n: int) -> None:
    L = factors(n)
    for sd in (0.0, 0.3, 20.0):
        Sigma = L @ L.mT + sd**2 * torch.eye(n, dtype=torch.float64)
        torch.testing.assert_close(
            add_noise(pack(L), sd, n), GaussianField.from_covariance(L[:, 0], Sigma).L
        )


@both
def test_small_noise_survives_single_precision(n: int) -> None:
    v = torch.linspace(0.5, 1.0, n)
    flat = torch.zeros(n, n)
    flat[:, 0] = v  # people differ along v alone
    for sd in (1e-2, 1e-4, 1e-6):
        diagonal = add_noise(pack(flat), sd, n)[diagonal_indices(n)]
        exact = [sd * v[: i + 1].norm() / v[:i].norm() for i in range(1, n)]
        torch.testing.assert_close(diagonal[1:], torch.stack(exact), rtol=1e-3, atol=0)


@both
def test_samples_have_the_stated_moments(n: int) -> None:
    L = factors(n, 1)
    count = 200_000
    law = GaussianField(torch.ones(count, n, dtype=torch.float64), pack(L).expand(count, -1))
    d = law.sample(torch.Generator().manual_seed(0))
    error = 4 * law.std[0] / math.sqrt(count)  # four standard errors of a mean
    assert ((d.mean(0) - 1).abs() < error).all()
    torch.testing.assert_close(torch.cov(d.mT), law.Sigma[0], rtol=0.03, atol=0.1)
    assert torch.equal(d, law.sample(torch.Generator().manual_seed(0)))
