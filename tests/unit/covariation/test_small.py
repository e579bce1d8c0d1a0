from __future__ import annotations

import numpy as np
import pytest

from prism.covariation.small import inverse_positive, lower_root, parts, product, times, whole
from tests.problems.covarying import covariances, special_covariances

both = pytest.mark.parametrize("n", [2, 3])


@both
def test_roots_inverses_and_determinants_are_those_of_numpy(n: int) -> None:
    S = special_covariances(n)
    root = whole(lower_root(parts(S)))
    np.testing.assert_allclose(root, np.linalg.cholesky(S), rtol=1e-9, atol=1e-14)
    inverse, log_det = inverse_positive(parts(S))
    np.testing.assert_allclose(whole(inverse) @ S, np.broadcast_to(np.eye(n), S.shape), atol=1e-9)
    np.testing.assert_allclose(log_det, np.linalg.slogdet(S)[1], rtol=1e-12)


@both
def test_products_are_those_of_numpy(n: int) -> None:
    rng = np.random.default_rng(0)
    A, B, v = (rng.normal(size=(4, 5, *shape)) for shape in ((n, n), (n, n), (n,)))
    np.testing.assert_allclose(whole(product(parts(A), parts(B))), A @ B)
    expected = (A @ v[..., None])[..., 0]
    np.testing.assert_allclose(whole(times(parts(A), parts(v, axes=1)), axes=1), expected)


@both
def test_parts_and_whole_undo_each_other(n: int) -> None:
    S = covariances(3, 4, n=n)
    assert parts(S).shape == (n, n, 3, 4)
    np.testing.assert_array_equal(whole(parts(S)), S)
