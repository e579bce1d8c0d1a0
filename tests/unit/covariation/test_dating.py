from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

from prism.covariation import Covariation, Factors, Reading, date_shapes
from tests.problems.covarying import dense, planted
from tests.problems.linear_gaussian import LinearGaussian, points

POINTS, SPAN = 8, (-2.0, 3.0)


@dataclass(frozen=True)
class LawReading(Reading):
    """A law at the template, one time a shape."""

    law: LinearGaussian
    p: torch.Tensor

    def __call__(self, tau: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        field = self.law(self.p, torch.as_tensor(tau)[:, None].expand(-1, len(self.p)))
        rate = self.law.slope(self.p).expand(len(tau), -1, -1)
        return field.mu.numpy(), field.Sigma.numpy(), rate.numpy()

    def mean(self, tau: np.ndarray) -> np.ndarray:
        return self(tau)[0]


def people(how: Covariation, law: LinearGaussian, p: torch.Tensor, count: int) -> np.ndarray:
    """Displacements (count, M, n) of people of age 0.5."""
    rng = np.random.default_rng(0)
    mu, Sigma, _ = LawReading(law, p)(np.array([0.5]))
    C = dense(how, Sigma, np.zeros(1)).measured
    drawn = rng.standard_normal((count, len(C))) @ np.linalg.cholesky(C).T
    return mu + drawn.reshape(count, *mu.shape[1:])


@pytest.mark.parametrize("n", [2, 3])
def test_independent_points_are_dated_by_weighted_least_squares(n: int) -> None:
    law, p = LinearGaussian.example(n), points(POINTS, n)
    how = Covariation.none(POINTS, n)
    d = people(how, law, p, 20)
    found = date_shapes(how, d, LawReading(law, p), np.full(20, 0.4), SPAN, modes=0.0)
    exact = law.best_joint_time(p, torch.as_tensor(d)).numpy()
    np.testing.assert_allclose(found.tau, exact, rtol=1e-9)
    error = float(law.information(p).sum()) ** -0.5
    np.testing.assert_allclose(found.se, error, rtol=1e-9)
    np.testing.assert_allclose(found.spread, error, rtol=1e-9)


@pytest.mark.parametrize("modes", [0.0, 0.3, 1.0, np.array([0.7, 0.2])])
def test_covarying_points_are_dated_by_generalised_least_squares(modes: float | np.ndarray) -> None:
    law, p = LinearGaussian.example(2), points(POINTS, 2)
    how = replace(planted(POINTS, tolerance=0.05), tempo=np.array([1.0, 0.625]))
    d = people(how, law, p, 5)
    found = date_shapes(how, d, LawReading(law, p), np.full(5, 0.4), SPAN, modes)
    mu, Sigma, mu_t = LawReading(law, p)(np.zeros(1))
    whole = dense(how, Sigma, np.zeros(1)).measured
    counted = np.broadcast_to(np.sqrt(modes), 2)[:, None, None] * how.factors.W
    some = replace(how, factors=replace(how.factors, W=counted))
    C = dense(some, Sigma, np.zeros(1)).measured
    a = mu_t.ravel()
    weight = np.linalg.solve(C, a) / (a @ np.linalg.solve(C, a))
    np.testing.assert_allclose(found.tau, (d - mu).reshape(5, -1) @ weight, rtol=1e-7)
    np.testing.assert_allclose(found.spread, np.sqrt(weight @ whole @ weight), rtol=1e-7)
    # of the first mode, which is tempo, nothing is error; of the second three quarters
    second = replace(how.factors, W=how.factors.W * np.array([0.0, 0.75])[:, None, None])
    error = dense(replace(how, factors=second), Sigma, np.zeros(1)).measured
    np.testing.assert_allclose(found.se, np.sqrt(weight @ error @ weight), rtol=1e-7)


def test_a_mode_is_a_trait_as_far_as_it_is_not_along_growth() -> None:
    """A random direction is along growth by one part in n: no sign of tempo."""
    tempo = np.array([1.0, 0.8, 0.5, 1 / 3, 0.0])
    for n, expected in ((2, [0.0, 0.4, 1.0, 1.0, 1.0]), (3, [0.0, 0.3, 0.75, 1.0, 1.0])):
        how = replace(planted(POINTS, rank=5, n=n), tempo=tempo)
        np.testing.assert_allclose(how.traits, expected, atol=1e-12)


@pytest.mark.parametrize("modes", [0.0, 1.0])
def test_times_scatter_as_far_as_they_claim(modes: float) -> None:
    law, p, count = LinearGaussian.example(2), points(POINTS, 2), 4000
    how = replace(planted(POINTS, tolerance=0.05), tempo=np.zeros(2))
    how = replace(how, factors=replace(how.factors, W=0.5 * how.factors.W))
    d = people(how, law, p, count)
    found = date_shapes(how, d, LawReading(law, p), np.full(count, 0.5), (-20.0, 20.0), modes)
    z = (found.tau - 0.5) / found.se
    assert z.std() == pytest.approx(1, rel=3 / np.sqrt(2 * count))
    assert z.mean() == pytest.approx(0, abs=3 / np.sqrt(count))
    np.testing.assert_allclose(found.se, found.spread)  # nothing of these modes is tempo


def test_a_missing_point_is_as_a_point_that_is_not_there() -> None:
    law, p = LinearGaussian.example(2), points(POINTS, 2)
    how = planted(POINTS)
    d = people(how, law, p, 4)
    gap = d.copy()
    gap[:, 3] = np.nan
    keep = np.delete(np.arange(POINTS), 3)
    fewer = replace(how, factors=Factors(how.factors.W[:, keep], how.factors.D[keep], 1.3))
    start = np.full(4, 0.4)
    found = date_shapes(how, gap, LawReading(law, p), start, SPAN, 0.3)
    gone = date_shapes(fewer, d[:, keep], LawReading(law, p[keep]), start, SPAN, 0.3)
    for name in ("tau", "se", "spread"):
        np.testing.assert_allclose(getattr(found, name), getattr(gone, name), rtol=1e-9)


def test_an_unknown_start_stays_unknown_and_the_span_is_kept() -> None:
    law, p = LinearGaussian.example(2), points(POINTS, 2)
    how = planted(POINTS)
    d = people(how, law, p, 3) + np.array([0.0, 0.0, 50.0])[:, None, None] * law.slope(p).numpy()
    found = date_shapes(how, d, LawReading(law, p), np.array([0.4, np.nan, 2.9]), SPAN, 0.0)
    assert np.isnan([found.tau[1], found.se[1], found.spread[1]]).all()
    assert np.isfinite(found.tau[0])
    assert found.tau[2] == SPAN[1]
