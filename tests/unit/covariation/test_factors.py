from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from prism.covariation import Covariation, Factors, Visible, believe
from prism.covariation.factors import (
    MODE_PRIOR,
    Step,
    bold,
    cautious,
    extend,
    improve,
    run_em,
    scaled_modes,
    widen,
)
from tests.problems.covarying import covariances, dense, planted, seen_by

both = pytest.mark.parametrize("n", [2, 3])


def whole_covariance(how: Covariation, Sigma: np.ndarray) -> np.ndarray:
    return dense(how, Sigma[None], np.zeros(1)).measured


def without(x: Visible, point: int) -> Visible:
    """The same visits with a point deleted."""
    keep = np.delete(np.arange(x.r.shape[1]), point)
    return x[:, keep]


def hidden(x: Visible, point: int) -> Visible:
    """The same visits with a point missing."""
    r, A, noise = x.r.copy(), x.A.copy(), x.noise.copy()
    r[:, point], A[:, point], noise[:, point] = 0.0, 0.0, 1.0
    return Visible(r, A, noise, x.tolerance)


@both
def test_beliefs_are_those_of_dense_conditioning(n: int) -> None:
    how, Sigma = planted(n=n), covariances(5, n=n)
    x = seen_by(how, Sigma, 7)
    C, y = whole_covariance(how, Sigma), x.r.reshape(7, -1)
    AW = scaled_modes(how.factors, x.A[0]).reshape(-1, 2)  # covariance of r with the amplitudes
    gain = np.linalg.solve(C, AW).T
    found = believe(how.factors, x)
    np.testing.assert_allclose(found.mean, y @ gain.T, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.cov[3], np.eye(2) - gain @ AW, rtol=1e-9, atol=1e-12)
    surprise = (y * np.linalg.solve(C, y.T).T).sum(-1) + np.linalg.slogdet(C)[1]
    np.testing.assert_allclose(found.evidence, -0.5 * surprise, rtol=1e-9)


@both
def test_without_modes_points_are_the_populations_own(n: int) -> None:
    Sigma = covariances(5, n=n)
    none = Covariation.none(5, n)
    np.testing.assert_allclose(
        whole_covariance(none, Sigma)[:n, :n], Sigma[0], rtol=1e-12, atol=1e-14
    )
    r = np.random.default_rng(0).standard_normal((4, 5, n))
    x = none.visible(r, np.broadcast_to(Sigma, (4, 5, n, n)))
    square = np.einsum("vpi,pij,vpj->v", r, np.linalg.inv(Sigma), r)
    expected = -0.5 * (square + np.linalg.slogdet(Sigma)[1].sum())
    np.testing.assert_allclose(believe(none.factors, x).evidence, expected, rtol=1e-9)


def test_a_missing_point_is_as_a_point_that_is_not_there() -> None:
    how, Sigma = planted(points=6), covariances(6)
    x = seen_by(how, Sigma, 30)
    fewer = Factors(np.delete(how.factors.W, 2, axis=1), np.delete(how.factors.D, 2, 0), 1.3)
    gap, gone = believe(how.factors, hidden(x, 2)), believe(fewer, without(x, 2))
    for name in ("mean", "cov", "evidence"):
        np.testing.assert_allclose(getattr(gap, name), getattr(gone, name), rtol=1e-9, atol=1e-12)
    # and nothing is learned from it
    better, other = improve(how.factors, hidden(x, 2), gap), improve(fewer, without(x, 2), gone)
    np.testing.assert_allclose(np.delete(better.W, 2, axis=1), other.W, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(np.delete(better.D, 2, axis=0), other.D, rtol=1e-8)
    assert better.q == pytest.approx(other.q)
    np.testing.assert_allclose(better.D[2], how.factors.D[2])
    np.testing.assert_allclose(better.W[:, 2], 0.0, atol=1e-12)


def test_a_point_often_missing_is_judged_by_the_visits_that_show_it() -> None:
    x, none = seen_by(planted(), covariances(5), 40), Factors.none(5, 2)
    r = np.where((np.arange(40) % 2 == 1)[:, None, None], x.r, np.nan)
    r[:, :4] = x.r[:, :4]
    half = Covariation.none(5, 2).visible(r, np.broadcast_to(covariances(5), (40, 5, 2, 2)))
    some = half[1::2]
    found, expected = (improve(none, part, believe(none, part)).D[4] for part in (half, some))
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("step", [cautious, bold])
def test_every_round_of_em_raises_the_evidence(step: Step) -> None:
    x = seen_by(planted(points=8, rank=3), covariances(8), 60)
    factors = widen(Factors.none(8, 2), x, 3)
    reached = []
    for _ in range(20):
        prior = 0.5 * MODE_PRIOR * np.square(factors.W).sum()  # of the modes
        reached.append(believe(factors, x).evidence.sum() - prior)
        factors = improve(factors, x, believe(factors, x), step)
    assert (np.diff(reached) > 0).all()


def test_bold_steps_find_a_remainder_far_below_the_noise_in_a_third_of_the_rounds() -> None:
    rng = np.random.default_rng(0)
    noise = np.repeat(rng.choice([0.3, 3.0], 1000)[:, None], 6, axis=1)
    r = rng.standard_normal((1000, 6, 2)) * np.sqrt(noise)[..., None]  # nothing but noise
    x = Visible(r, np.tile(np.eye(2), (1000, 6, 1, 1)), noise, 0.0)
    start = Factors(np.zeros((0, 6, 2)), np.full((6, 2), 0.3), 1.0)
    soon, late = run_em(start, x, 30, bold), run_em(start, x, 90, cautious)
    assert soon.D.mean() < late.D.mean() < 0.2 * start.D.mean()
    assert late.q < soon.q < 1


def test_both_steps_end_where_the_evidence_is_greatest() -> None:
    x = seen_by(planted(points=6, tolerance=0.05), covariances(6), 400)
    start = widen(Factors.none(6, 2), x, 2)
    ends = [run_em(start, x, 600, step) for step in (cautious, bold)]
    reached = [believe(end, x).evidence.mean() for end in ends]
    assert reached[0] == pytest.approx(reached[1], abs=1e-3)


@both
def test_a_planted_model_is_found_again(n: int) -> None:
    how, Sigma = planted(points=8, n=n, tolerance=0.05), covariances(8, n=n)
    x = seen_by(how, Sigma, 1500)
    found = run_em(widen(Factors.none(8, n), x, 2), x, 40)
    true, learned = (
        whole_covariance(how, Sigma),
        whole_covariance(replace(how, factors=found), Sigma),
    )
    assert np.linalg.norm(learned - true) < 0.1 * np.linalg.norm(true)  # of 1500 people
    bases = [np.linalg.qr(f.W.reshape(2, -1).T)[0] for f in (found, how.factors)]
    assert np.linalg.svd(bases[0].T @ bases[1])[1].min() > 0.99  # the same plane of modes


@pytest.mark.parametrize("wrong", [0.3, 1.0, 3.0])
def test_modes_find_their_scale_however_well_amplitudes_are_known(wrong: float) -> None:
    """Plain rounds, tight about amplitudes that hundreds of points tell, leave it as it was."""
    how, Sigma = planted(points=300), covariances(300)
    x = seen_by(how, Sigma, 400)
    W = how.factors.W
    found = run_em(replace(how.factors, W=wrong * W), x, 5)
    np.testing.assert_allclose(np.square(found.W).sum(), np.square(W).sum(), rtol=0.15)
    known = believe(found, x)
    second = known.cov.mean(0) + known.mean.T @ known.mean / len(x)
    np.testing.assert_allclose(second, np.eye(2), atol=0.02)


def test_new_modes_are_what_the_old_ones_leave_over() -> None:
    how, Sigma = planted(points=10, rank=1), covariances(10)
    x = seen_by(how, Sigma, 2000)
    one = widen(Factors.none(10, 2), x, 1)
    assert one.rank == 1
    W, true = one.W.ravel(), how.factors.W.ravel()
    assert abs(W @ true) > 0.95 * np.linalg.norm(W) * np.linalg.norm(true)
    three = widen(run_em(one, x, 20), x, 3)
    assert three.rank == 3
    learned = run_em(one, x, 20).W
    np.testing.assert_array_equal(three.W[:1], learned)
    assert np.linalg.norm(three.W[1]) < 0.3 * np.linalg.norm(learned)  # only chance is left


def test_more_modes_than_visits_are_empty() -> None:
    x = seen_by(planted(), covariances(5), 3)
    wide = widen(Factors.none(5, 2), x, 6)
    assert wide.W.shape == (6, 5, 2)
    np.testing.assert_allclose(wide.W[3:], 0.0, atol=1e-12)
    assert np.isfinite(believe(wide, x).mean).all()


def test_modes_are_carried_to_other_points() -> None:
    how, Sigma = planted(points=60), covariances(60)
    x = seen_by(how, Sigma, 1000)
    some = np.arange(0, 60, 2)  # enough to know the amplitudes by
    few = run_em(widen(Factors.none(30, 2), x[:, some], 2), x[:, some], 20)
    beliefs = believe(few, x[:, some])
    everywhere = extend(few, beliefs, x)
    assert everywhere.q == few.q
    true = whole_covariance(how, Sigma)
    learned = whole_covariance(replace(how, factors=everywhere), Sigma)
    assert np.linalg.norm(learned - true) < 0.15 * np.linalg.norm(true)
    # one part of the points at a time gives the same
    part = extend(few, beliefs, x[:, 5:9])
    np.testing.assert_allclose(part.W, everywhere.W[:, 5:9], rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(part.D, everywhere.D[5:9], rtol=1e-8)
