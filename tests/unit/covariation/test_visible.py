from __future__ import annotations

import numpy as np
import pytest

from prism.covariation import Visible
from prism.covariation.visible import least_eigenvalue
from tests.problems.covarying import covariances, special_covariances

both = pytest.mark.parametrize("n", [2, 3])


@both
def test_the_least_eigenvalue_is_that_of_numpy(n: int) -> None:
    S = special_covariances(n)
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
