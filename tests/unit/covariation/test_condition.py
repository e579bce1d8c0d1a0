from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

from prism.covariation import Covariation, Forecast, Persistence, Visible, condition
from tests.problems.covarying import covariances, dense, planted

PEOPLE, POINTS = 3, 4


def asked(how: Covariation, r: np.ndarray, Sigma: np.ndarray, t: np.ndarray) -> Forecast:
    """Condition the last two ages on the ones before, for people with r (B, V, M, n)."""
    V, n = r.shape[1], r.shape[-1]
    seen = how.visible(r, Sigma[:, :V])
    target = how.visible(np.zeros((*Sigma[:, V:].shape[:-1],)), Sigma[:, V:])
    assert n == Sigma.shape[-1]
    return condition(how, seen, t[:, :V], target, t[:, V:])


def exact(how: Covariation, r: np.ndarray, Sigma: np.ndarray, t: np.ndarray) -> tuple:
    """Mean, covariance and covariance of the anatomy at the later ages, of one person."""
    V = len(r)
    law, y = dense(how, Sigma, t), r.ravel()
    old, new = np.arange(y.size), np.arange(y.size, len(law.state))
    old = old[~np.isnan(y)]
    C, cross = law.measured[np.ix_(old, old)], law.state[np.ix_(new, old)]
    gain = cross @ np.linalg.inv(C)
    state = law.state[np.ix_(new, new)] - gain @ cross.T
    shape = Sigma[V:].shape[:3]

    def own(cov: np.ndarray) -> np.ndarray:
        blocks = cov.reshape(*shape, *shape)
        return np.einsum("kpikpj->kpij", blocks)

    mean = (gain @ y[old]).reshape(shape)
    return mean, own(state + np.diag(law.fresh[new])), own(state)


def situation(V: int, n: int, gaps: bool) -> tuple[Covariation, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(V + n)
    how = planted(POINTS, n, tolerance=0.2)
    t = np.sort(rng.uniform(0, 9, (PEOPLE, V + 2)), axis=1)
    r = rng.standard_normal((PEOPLE, V, POINTS, n))
    if gaps:
        r[0, 0, 1] = r[1, -1, :3] = np.nan
        r[2, :, 2] = np.nan
    return how, r, covariances(PEOPLE, V + 2, POINTS, n=n), t


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("V", [1, 3])
@pytest.mark.parametrize("gaps", [False, True])
def test_forecasts_are_those_of_dense_conditioning(V: int, n: int, gaps: bool) -> None:
    how, r, Sigma, t = situation(V, n, gaps)
    found = asked(how, r, Sigma, t)
    for b in range(PEOPLE):
        mean, cov, state = exact(how, r[b], Sigma[b], t[b])
        np.testing.assert_allclose(found.mean[b], mean, atol=1e-7)
        np.testing.assert_allclose(found.cov[b], cov, atol=1e-7)
        np.testing.assert_allclose(found.cov_state[b], state, atol=1e-7)


def test_the_age_of_a_visit_itself_is_cleared_of_noise_exactly() -> None:
    how, r, Sigma, t = situation(2, 2, gaps=True)
    t[:, 2], Sigma[:, 2] = t[:, 1], Sigma[:, 1]  # the first age asked for is that of a visit
    found = asked(how, r, Sigma, t)
    for b in range(PEOPLE):
        mean, cov, state = exact(how, r[b], Sigma[b], t[b])
        np.testing.assert_allclose(found.mean[b], mean, atol=1e-7)
        np.testing.assert_allclose(found.cov_state[b], state, atol=1e-7)
        np.testing.assert_allclose(found.cov[b], cov, atol=1e-7)


def test_two_scans_on_one_day_have_noise_of_their_own() -> None:
    how, r, Sigma, t = situation(2, 2, gaps=False)
    t[:, 1], Sigma[:, 1] = t[:, 0], Sigma[:, 0]
    found = asked(how, r, Sigma, t)
    for b in range(PEOPLE):
        np.testing.assert_allclose(found.mean[b], exact(how, r[b], Sigma[b], t[b])[0], atol=1e-6)


def test_without_noise_today_is_what_was_seen() -> None:
    how = planted(POINTS, tolerance=0.0, noise_share=0.0)
    Sigma = np.repeat(covariances(PEOPLE, 1, POINTS), 2, axis=1)
    r = np.random.default_rng(0).standard_normal((PEOPLE, 1, POINTS, 2))
    t = np.tile([[3.0, 3.0]], (PEOPLE, 1))
    found = asked(how, r, Sigma, t)
    np.testing.assert_allclose(found.mean, r, atol=1e-6)
    np.testing.assert_allclose(found.cov, 0.0, atol=1e-6)


def test_where_nothing_lasts_the_forecast_is_the_population() -> None:
    how, r, Sigma, t = situation(2, 2, gaps=True)
    how = replace(how, persistence=Persistence(np.zeros(4), np.full(4, np.inf)))
    found = asked(how, r, Sigma, t)
    np.testing.assert_allclose(found.mean, 0.0, atol=1e-8)
    for b in range(PEOPLE):
        expected = dense(how, Sigma[b], t[b]).measured.reshape(4, POINTS, 2, 4, POINTS, 2)
        own = np.einsum("kpikpj->kpij", expected)[2:]
        np.testing.assert_allclose(found.cov[b], own, atol=1e-7)


def test_gaps_need_no_tolerance() -> None:
    how, r, Sigma, t = situation(3, 2, gaps=True)
    how = replace(how, tolerance=0.0)
    found = asked(how, r, Sigma, t)
    for b in range(PEOPLE):
        np.testing.assert_allclose(found.mean[b], exact(how, r[b], Sigma[b], t[b])[0], atol=1e-6)


def test_people_in_blocks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    how, r, Sigma, t = situation(3, 2, gaps=True)
    whole = asked(how, r, Sigma, t)
    monkeypatch.setattr(sys.modules[condition.__module__], "MOST_VALUES", 1)
    parts = asked(how, r, Sigma, t)
    for name in vars(whole):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), atol=1e-12)


def test_points_nobody_saw_are_guessed_from_the_rest() -> None:
    how, r, Sigma, t = situation(1, 2, gaps=False)
    r[:, :, 0] = np.nan
    found = asked(how, r, Sigma, t)
    assert np.abs(found.mean[:, :, 0]).min() > 1e-4
    blind = asked(how, np.full_like(r, np.nan), Sigma, t)
    np.testing.assert_allclose(blind.mean, 0.0, atol=1e-12)
    sizes = [np.trace(f.cov_state, axis1=-2, axis2=-1)[:, :, 0] for f in (found, blind)]
    assert (sizes[0] < sizes[1]).all()


def test_a_covariation_without_modes_can_be_conditioned() -> None:
    how = Covariation.none(POINTS, 2)
    Sigma = covariances(1, 2, POINTS)
    seen = how.visible(np.ones((1, 1, POINTS, 2)), Sigma[:, :1])
    target: Visible = how.visible(np.zeros((1, 1, POINTS, 2)), Sigma[:, 1:])
    found = condition(how, seen, np.array([[1.0]]), target, np.array([[2.0]]))
    np.testing.assert_array_equal(found.mean, 0.0)
    np.testing.assert_allclose(found.cov, Sigma[:, 1:], rtol=1e-12, atol=1e-14)
