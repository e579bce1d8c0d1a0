"""Laws of forecasts and times of covarying points: order of points and units do not matter."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prism.applications import intrinsic_time, predict_shape
from prism.cohort import Correspondence
from prism.covariation import (
    Covariation,
    Factors,
    Patches,
    Persistence,
    Reading,
    condition,
    date_shapes,
    patch_scores,
)
from prism.model import PRISM
from tests.problems.covarying import covariances, line_of, planted
from tests.problems.tiny import fit_tiny, tiny_cohort

few = settings(max_examples=20, deadline=None)
POINTS, VISITS = 6, 2
orders = st.permutations(range(POINTS)).map(np.array)
seeds = st.integers(0, 99)
scales = st.sampled_from([1e-3, 0.1, 25.4, 1000.0])


@dataclass(frozen=True)
class Straight(Reading):
    """mu = tau pace with a constant covariance."""

    pace: np.ndarray  # (M, n)
    Sigma: np.ndarray  # (M, n, n)

    def __call__(self, tau: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        count = len(tau)
        Sigma = np.broadcast_to(self.Sigma, (count, *self.Sigma.shape))
        return self.mean(tau), Sigma, np.broadcast_to(self.pace, (count, *self.pace.shape))

    def mean(self, tau: np.ndarray) -> np.ndarray:
        return tau[:, None, None] * self.pace


@dataclass(frozen=True)
class Case:
    """People, their ages, and what was learned: all a forecast and a time depend on."""

    how: Covariation
    Sigma: np.ndarray  # (M, n, n)
    r: np.ndarray  # (3, V, M, n)
    t: np.ndarray  # (3, V + 1)
    pace: np.ndarray
    template: np.ndarray

    @classmethod
    def drawn(cls, seed: int) -> Case:
        rng = np.random.default_rng(seed)
        r = rng.standard_normal((3, VISITS, POINTS, 2))
        r[rng.random(r.shape[:3]) < 0.2] = np.nan
        r[:, :, 0] = 0.3
        t = np.sort(rng.uniform(0, 5, (3, VISITS + 1)), axis=1)
        pace = rng.standard_normal((POINTS, 2))
        return cls(planted(POINTS, seed=seed), covariances(POINTS, seed=seed), r, t, pace,
                   line_of(POINTS, 2))  # fmt: skip

    def answers(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Forecast (3, M, n), its standard deviation, times, their errors, scores of patches."""
        Sigma = np.broadcast_to(self.Sigma, (3, VISITS, *self.Sigma.shape))
        seen = self.how.visible(self.r, Sigma)
        target = self.how.visible(np.zeros((3, 1, POINTS, 2)), Sigma[:, :1])
        ahead = condition(self.how, seen, self.t[:, :-1], target, self.t[:, -1:])
        sd = np.sqrt(np.diagonal(ahead.cov[:, 0], axis1=-2, axis2=-1))
        unit = np.sqrt(self.Sigma.trace(axis1=-2, axis2=-1).mean()) / np.linalg.norm(self.pace)
        read, start = Straight(self.pace, self.Sigma), np.zeros(3)
        span = (-100 * unit, 100 * unit)
        times = date_shapes(self.how, self.r[:, 0], read, start, span, 0.3)
        mu_t = np.broadcast_to(self.pace, (3, POINTS, 2))
        patches = Patches.of(self.template)
        scores = patch_scores(self.how, seen[:, 0], mu_t, self.template, patches)
        return ahead.mean[:, 0], sd, times.tau, times.se, scores


@few
@given(seed=seeds, order=orders)
def test_the_order_of_points_does_not_matter(seed: int, order: np.ndarray) -> None:
    case = Case.drawn(seed)
    f = case.how.factors
    turned = replace(
        case,
        how=replace(case.how, factors=Factors(f.W[:, order], f.D[order], f.q)),
        Sigma=case.Sigma[order],
        r=case.r[:, :, order],
        pace=case.pace[order],
        template=case.template[order],
    )
    mean, sd, tau, se, scores = case.answers()
    found = turned.answers()
    np.testing.assert_allclose(found[0], mean[:, order], atol=1e-9)
    np.testing.assert_allclose(found[1], sd[:, order], atol=1e-9)
    np.testing.assert_allclose(found[2], tau, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found[3], se, rtol=1e-9)
    sizes = len(scores[0, 0]) // POINTS
    back = scores.reshape(3, 3, sizes, POINTS)[..., order].reshape(scores.shape)
    np.testing.assert_allclose(found[4], back, atol=1e-5)


@few
@given(seed=seeds, scale=scales)
def test_the_unit_of_length_does_not_matter(seed: int, scale: float) -> None:
    case = Case.drawn(seed)
    bigger = replace(
        case,
        how=replace(case.how, tolerance=scale * case.how.tolerance),
        Sigma=scale**2 * case.Sigma,
        r=scale * case.r,
        pace=scale * case.pace,
        template=scale * case.template,
    )
    mean, sd, tau, se, scores = case.answers()
    found = bigger.answers()
    np.testing.assert_allclose(found[0] / scale, mean, atol=1e-8)
    np.testing.assert_allclose(found[1] / scale, sd, atol=1e-8)
    np.testing.assert_allclose(found[2], tau, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(found[3], se, rtol=1e-8)
    np.testing.assert_allclose(found[4], scores, atol=1e-5)


@few
@given(seed=seeds, scale=scales)
def test_the_unit_of_time_does_not_matter(seed: int, scale: float) -> None:
    case = Case.drawn(seed)
    keep = case.how.persistence
    slower = replace(
        case,
        how=replace(case.how, persistence=Persistence(keep.share, scale * keep.span)),
        t=scale * case.t,
        pace=case.pace / scale,
    )
    mean, sd, tau, se, scores = case.answers()
    found = slower.answers()
    np.testing.assert_allclose(found[0], mean, atol=1e-8)
    np.testing.assert_allclose(found[1], sd, atol=1e-8)
    np.testing.assert_allclose(found[2] / scale, tau, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(found[3] / scale, se, rtol=1e-8)
    np.testing.assert_allclose(found[4], scores, atol=1e-5)


@few
@given(seed=seeds)
def test_what_was_seen_never_makes_a_forecast_less_sure(seed: int) -> None:
    case = Case.drawn(seed)
    blind = replace(case, r=np.full_like(case.r, np.nan))
    once = replace(case, r=np.where(np.arange(VISITS)[:, None, None] == 1, np.nan, case.r))
    both, first, unseen = (c.answers()[1] for c in (case, once, blind))
    assert (both <= first + 1e-9).all()
    assert (first <= unseen + 1e-9).all()


def whole_model(cohort: Correspondence) -> tuple[PRISM, np.ndarray, np.ndarray, np.ndarray]:
    """Learn a model from a cohort, then date and forecast the same cohort."""
    model = fit_tiny(cohort, steps=60)
    ahead = predict_shape(model, cohort)
    return model, intrinsic_time(model, cohort).tau, ahead.points, ahead.upper - ahead.lower


@pytest.fixture(scope="module")
def plain() -> tuple[PRISM, np.ndarray, np.ndarray, np.ndarray]:
    return whole_model(tiny_cohort().correspondence)


def test_a_model_learned_in_other_units_gives_the_same_answers(plain: tuple) -> None:
    cohort = tiny_cohort().correspondence
    visits = replace(cohort.visits, t=365.25 * cohort.visits.t)  # years to days, metres to mm
    other = replace(
        cohort, points=1000 * cohort.points, template=1000 * cohort.template, visits=visits
    )
    _, tau, points, width = whole_model(other)
    np.testing.assert_allclose(tau / 365.25, plain[1], atol=2e-3)
    np.testing.assert_allclose(points / 1000, plain[2], atol=2e-3)
    np.testing.assert_allclose(width / 1000, plain[3], atol=5e-3)


def test_a_model_learned_from_points_in_another_order_gives_the_same_answers(plain: tuple) -> None:
    cohort = tiny_cohort().correspondence
    order = np.random.default_rng(0).permutation(24)
    turned = Correspondence(
        cohort.points[:, order], cohort.visits, cohort.template[order],
        time_unit=cohort.time_unit, length_unit=cohort.length_unit,
    )  # fmt: skip
    _, tau, points, width = whole_model(turned)
    np.testing.assert_allclose(tau, plain[1], atol=2e-3)
    np.testing.assert_allclose(points, plain[2][:, order], atol=2e-3)
    np.testing.assert_allclose(width, plain[3][:, order], atol=5e-3)
