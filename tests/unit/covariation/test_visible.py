from __future__ import annotations

import numpy as np
import pytest

from prism.covariation import Visible
from prism.covariation.visible import inverse_positive, least_eigenvalue, lower_root
from tests.problems.covarying import covariances

both = pytest.mark.parametrize("n", [2, 3])


def samples(n: int) -> np.ndarray:
    """Random, isotropic, diagonal, stretched and tiny matrices."""
    stretched = np.diag([1e-4, 1.0, 1e4][:n])
    special = [np.eye(n), np.diag([3.0, 1.0, 2.0][:n]), stretched, 1e-8 * covariances(n=n)]
    return np.concatenate([covariances(40, n=n), np.stack(special)])


@both
def test_small_matrices_have_the_roots_inverses_and_determinants_of_numpy(n: int) -> None:
    S = samples(n)
    np.testing.assert_allclose(lower_root(S), np.linalg.cholesky(S), rtol=1e-9, atol=1e-14)
    inverse, log_det = inverse_positive(S)
    np.testing.assert_allclose(inverse @ S, np.broadcast_to(np.eye(n), S.shape), atol=1e-9)
    np.testing.assert_allclose(log_det, np.linalg.slogdet(S)[1], rtol=1e-12)


@both
def test_the_least_eigenvalue_is_that_of_numpy(n: int) -> None:
    S = samples(n)
    exact = np.linalg.eigvalsh(S)
    np.testing.assert_allclose(least_eigenvalue(S), exact[:, 0], atol=1e-12 * exact.max())


@both
def test_signal_and_noise_add_up_to_the_covariance(n: int) -> None:
    Sigma = covariances(3, 6, n=n)
    r = np.ones((3, 6, n))
    r[1, 2] = np.nan
    x = Visible.of(r, Sigma, noise_share=0.4, tolerance=0.1)
    seen = ~np.isnan(r[..., 0])
    np.testing.assert_array_equal(x.seen, seen)
    np.testing.assert_allclose(x.noise[seen], 0.4 * np.linalg.eigvalsh(Sigma)[seen][:, 0])
    whole = x.A @ x.A.swapaxes(-1, -2) + x.noise[..., None, None] * np.eye(n)
    np.testing.assert_allclose(whole[seen], Sigma[seen], rtol=1e-12, atol=1e-14)
    assert not x.A[1, 2].any()
    assert not x.r[1, 2].any()


def test_even_where_all_of_a_direction_is_noise_a_seen_point_is_seen() -> None:
    Sigma = np.broadcast_to(np.eye(2), (1, 4, 2, 2))
    x = Visible.of(np.zeros((1, 4, 2)), Sigma, noise_share=1.0, tolerance=0.0)
    assert x.seen.all()
