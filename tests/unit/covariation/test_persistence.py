from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from prism.covariation import Covariation, Factors, Persistence, believe
from prism.covariation.persistence import (
    _comparable,
    _fit_mode,
    _steps_a_pair,
    learn_persistence,
    repeat_visits,
)
from tests.problems.covarying import covariances

PEOPLE, VISITS, POINTS = 300, 4, 40


def longitudinal(
    share: list[float], span: list[float], strength: float = 1.0
) -> tuple[Covariation, tuple]:
    """People seen four times within 10 units of time, by a planted persistence."""
    rng = np.random.default_rng(0)
    W = strength * rng.standard_normal((1, POINTS, 2))
    factors = Factors(W, np.full((POINTS, 2), 0.4), 1.0)
    keep = Persistence(np.array(share), np.array(span))
    how = Covariation(factors, keep, 0.5, 0.02, np.zeros(1))
    t = np.sort(rng.uniform(0, 10, (PEOPLE, VISITS)), axis=1)

    def course(part: int, *shape: int) -> np.ndarray:
        root = np.linalg.cholesky(keep.correlation(part, t, t))
        return np.einsum("bvw,bw...->bv...", root, rng.standard_normal((PEOPLE, VISITS, *shape)))

    law = how.visible(np.zeros((POINTS, 2)), covariances(POINTS))
    f = course(0)[..., None, None] * factors.W[0] + np.sqrt(0.4) * course(1, POINTS, 2)
    r = (law.A @ f[..., None])[..., 0] + np.sqrt(law.noise)[:, None] * course(2, POINTS, 2)
    Sigma = np.broadcast_to(covariances(POINTS), (PEOPLE * VISITS, POINTS, 2, 2))
    x = how.visible(r.reshape(-1, POINTS, 2), Sigma)
    subject = np.repeat([f"s{i:03d}" for i in range(PEOPLE)], VISITS)
    return how, (factors, x, believe(factors, x), subject, t.ravel())


@pytest.mark.parametrize(
    ("share", "span"),
    [
        ([0.9, 0.6, 0.1], [np.inf, np.inf, np.inf]),
        ([0.95, 0.8, 0.3], [10.0, 10.0, 10.0]),
        ([0.2, 0.0, 0.8], [np.inf, np.inf, np.inf]),
    ],
)
def test_what_lasts_is_learned_from_repeat_visits(share: list[float], span: list[float]) -> None:
    how, data = longitudinal(share, span)
    found = learn_persistence(*data, tempo=np.array([0.5]))
    lags = np.array([1.0, 4.0, 8.0])
    for part in range(3):
        true = how.persistence.correlation(part, np.zeros(1), lags)
        learned = found.correlation(part, np.zeros(1), lags)
        np.testing.assert_allclose(learned, true, atol=0.17, err_msg=f"part {part}")
    assert np.isfinite(found.span[0]) == np.isfinite(span[0])


def test_a_mode_that_is_hard_to_see_lasts_no_less() -> None:
    share = [0.9, 0.0, 0.0]
    _, data = longitudinal(share, [np.inf] * 3, strength=0.08)
    unknown = np.diagonal(data[2].cov, axis1=1, axis2=2).mean()
    assert unknown > 0.3  # of the amplitudes' variance, given one visit
    found = learn_persistence(*data, tempo=np.array([0.5]))
    assert found.share[0] == pytest.approx(0.9, abs=0.15)


def test_without_repeat_visits_tempo_alone_lasts() -> None:
    _, (factors, x, beliefs, subject, t) = longitudinal([0.9, 0.6, 0.1], [np.inf] * 3)
    once = slice(None, None, VISITS)
    beliefs = believe(factors, x[once])
    found = learn_persistence(
        factors, x[once], beliefs, subject[once], t[once], tempo=np.array([0.7])
    )
    np.testing.assert_array_equal(found.share, [0.7, 0.0, 0.0])
    assert np.isinf(found.span).all()


def test_without_modes_remainder_and_noise_last_all_the_same() -> None:
    how, (factors, x, _, subject, t) = longitudinal([0.9, 0.6, 0.1], [np.inf] * 3)
    alone = replace(factors, W=factors.W[:0])
    found = learn_persistence(alone, x, believe(alone, x), subject, t, tempo=np.empty(0))
    assert found.share.shape == (2,)
    assert found.share[0] > how.persistence.share[1]  # what a mode would carry lasts with it


def test_pairs_are_of_one_person_at_two_ages() -> None:
    subject = np.array(["b", "a", "b", "a", "b", "c"])
    t = np.array([1.0, 2.0, 3.0, 2.0, 4.0, 9.0])
    pairs = repeat_visits(subject, t)
    assert {(int(i), int(j)) for i, j, _ in pairs} == {(0, 2), (0, 4), (2, 4)}
    assert repeat_visits(subject[:0], t[:0]).shape == (0, 3)


def test_correlation_is_one_at_no_lag_and_fades() -> None:
    keep = Persistence(np.array([0.8, 0.5]), np.array([2.0, np.inf]))
    t = np.array([[0.0, 1.0, 4.0]])
    found = keep.correlation(0, t, t)
    np.testing.assert_allclose(found[0, 0], [1.0, 0.8 * np.exp(-0.5), 0.8 * np.exp(-2)])
    np.testing.assert_array_equal(found, found.swapaxes(-1, -2))
    np.testing.assert_array_equal(keep.correlation(1, t, t)[0, 0], [1.0, 0.5, 0.5])


def test_what_lasts_for_life_is_not_taken_to_fade() -> None:
    """Products of two visits scatter by 1 / sqrt(people); their difference is all but nothing."""
    _, data = longitudinal([0.995, 0.3, 0.1], [np.inf] * 3)
    found = learn_persistence(*data, tempo=np.array([0.5]))
    assert found.share[0] == pytest.approx(0.995, abs=0.005)
    assert np.isinf(found.span[0])


def test_a_spread_that_is_off_at_some_ages_does_not_look_like_fading() -> None:
    _, (factors, x, beliefs, subject, t) = longitudinal([0.98, 0.3, 0.1], [np.inf] * 3)
    misjudged = beliefs.mean * np.interp(t, [0, 5, 10], [0.6, 1.5, 0.8])[:, None]
    found = learn_persistence(
        factors, x, replace(beliefs, mean=misjudged), subject, t, tempo=np.array([0.5])
    )
    assert found.correlation(0, np.zeros(1), np.array([8.0]))[0] == pytest.approx(0.98, abs=0.04)


@pytest.mark.parametrize("people", [12, 200])
def test_a_mean_that_is_off_at_some_ages_does_not_look_like_fading(people: int) -> None:
    _, (factors, x, _, subject, t) = longitudinal([0.995, 0.3, 0.1], [np.inf] * 3)
    few = slice(people * VISITS)
    x, subject, t = x[few], subject[few], t[few]
    off, beliefs = np.interp(t, [0, 5, 10], [0.6, -0.8, 0.4])[:, None], believe(factors, x)
    misjudged = replace(beliefs, mean=beliefs.mean + off)
    found = learn_persistence(factors, x, misjudged, subject, t, tempo=np.array([0.5]))
    assert found.correlation(0, np.zeros(1), np.array([8.0]))[0] > 0.92


def test_two_ages_a_person_are_enough_to_compare() -> None:
    """Everybody comes at the same two ages, where mean and spread are off; what lasts is seen."""
    rng = np.random.default_rng(0)
    own, t = rng.standard_normal(150), np.tile([2.0, 9.0], 150)
    mean = np.stack([0.7 * own + 0.4, 1.6 * own - 0.3], axis=1).reshape(-1, 1)
    first = np.arange(0, 300, 2)
    found = _comparable(mean, np.ones_like(mean), t, first, first + 1, np.ones(150))
    np.testing.assert_allclose(found[first], found[first + 1], atol=0.2)
    assert np.corrcoef(found[first, 0], found[first + 1, 0])[0, 1] > 0.99


def test_a_few_pairs_are_not_made_to_agree() -> None:
    """Visits that have nothing in common: few of them must not be explained by mean and spread."""
    rng, learned = np.random.default_rng(0), []
    first, pairs, known = np.arange(0, 10, 2), np.ones(5), np.full((10, 1), 0.98)
    for _ in range(40):
        t, mean = rng.uniform(0, 1, 10), rng.standard_normal((10, 1))
        a, b = (_comparable(mean, known, t, first, first + 1, pairs)[first + k, 0] for k in (0, 1))
        lag = np.abs(t[first] - t[first + 1])
        share, span = _fit_mode(a, b, pairs, pairs, lag, pairs, np.array([np.inf, 1.0]), 0.5)
        learned.append(share * np.exp(-0.4 / span))
    assert np.mean(learned) < 0.42


def test_people_count_by_their_steps_from_visit_to_visit() -> None:
    visits = np.arange(2, 9)
    pairs = visits * (visits - 1) // 2
    np.testing.assert_allclose(_steps_a_pair(pairs) * pairs, visits - 1)
