from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from prism.covariation import (
    Covariation,
    Factors,
    Patches,
    Reading,
    Texture,
    Visible,
    believe,
    condition,
    date_shapes,
    fit_covariation,
    patch_scores,
)
from prism.covariation.factors import improve
from prism.covariation.learn import WIDER, Recipe, _at_all_points, choose_recipe
from tests.problems.covarying import covariances, dense, line_of, planted, seen_by


def cohort(how: Covariation, points: int, count: int = 120) -> dict[str, np.ndarray]:
    """Residuals of people seen once, at equal covariances."""
    Sigma = covariances(points)
    x = seen_by(how, Sigma, count)
    return {
        "r": x.r,
        "Sigma": np.broadcast_to(Sigma, (count, *Sigma.shape)),
        "subject": np.array([f"s{i:03d}" for i in range(count)]),
    }


def test_independent_points_need_no_modes() -> None:
    data = cohort(Covariation.none(10, 2), 10)
    assert choose_recipe(**data, tolerance=0.01).rank == 0


def test_planted_modes_are_counted_and_noise_is_told_from_signal() -> None:
    rng = np.random.default_rng(0)
    factors = Factors(rng.standard_normal((2, 20, 2)), np.full((20, 2), 0.02), 1.0)
    how = replace(planted(20), factors=factors, noise_share=0.95, tolerance=0.01)
    recipe = choose_recipe(**cohort(how, 20), tolerance=0.01)
    assert (recipe.noise_share, recipe.rank) == (0.95, 2)
    assert recipe.wider < 1.5  # 120 people tell what modes leave of others


def test_measurement_noise_is_the_one_that_was_found_whatever_people_not_seen_scatter() -> None:
    data = cohort(replace(planted(20), noise_share=0.3), 20)
    data |= {"mu_t": np.ones_like(data["r"]), "t": np.linspace(0, 1, 120)}
    narrow, wide = (
        fit_covariation(**data, tolerance=0.01, recipe=Recipe(0.3, 1, wider))[0]
        for wider in (1.0, 9.0)
    )
    assert wide.factors.q == pytest.approx(9 * narrow.factors.q)
    assert wide.measured == pytest.approx(narrow.measured)
    assert 0 < wide.measured < 1


def test_what_modes_leave_of_new_people_is_told_by_people_kept_aside() -> None:
    how = planted(60, rank=6, noise_share=0.3)
    small = replace(how.factors, D=how.factors.D / 9, q=how.factors.q / 9)
    data = cohort(replace(how, factors=small), 60, 518)
    few, others = ({k: v[part] for k, v in data.items()} for part in (slice(18), slice(18, None)))
    recipe = choose_recipe(**few, tolerance=how.tolerance)
    more = {"mu_t": np.ones_like(few["r"]), "t": np.linspace(0, 1, 18), "tolerance": how.tolerance}

    def evidence_of_others(wider: float) -> float:
        found, _ = fit_covariation(**few, **more, recipe=replace(recipe, wider=wider))
        seen = found.visible(others["r"], others["Sigma"])
        return float(believe(found.factors, seen).evidence.mean())

    narrow, best = evidence_of_others(1.0), max(map(evidence_of_others, WIDER))
    assert best - evidence_of_others(recipe.wider) < (best - narrow) / 3
    assert best - narrow > 20


def test_a_learned_covariation_draws_people_like_those_it_saw() -> None:
    how = planted(6)
    data = cohort(how, 6, 600)
    t = np.linspace(0, 1, 600)
    mu_t = np.ones_like(data["r"])
    found, recipe = fit_covariation(**data, mu_t=mu_t, t=t, tolerance=0.1)
    assert recipe.rank == found.factors.rank == 2
    np.testing.assert_array_equal(found.persistence.share, [*found.tempo, 0, 0])
    drawn = Texture().draw(found, covariances(6), np.eye(6)[:, :2], 4000, seed=1)
    true = dense(how, covariances(6)[None], np.zeros(1)).measured
    r = drawn.reshape(4000, -1)
    assert np.linalg.norm(np.cov(r.T) - true) < 0.15 * np.linalg.norm(true)


@pytest.mark.parametrize(("turn", "tempo"), [(0, 1.0), (1, 0.0), (0.5, 0.5)])
def test_tempo_is_the_share_of_a_mode_along_growth(turn: float, tempo: float) -> None:
    factors = Factors(np.ones((1, 10, 2)) * [2.0, 0.0], np.full((10, 2), 0.1), 1.0)
    how = replace(planted(10, rank=1), factors=factors, noise_share=0.0, tolerance=0.01)
    Sigma = np.broadcast_to(np.eye(2), (300, 10, 2, 2))
    r = seen_by(how, Sigma[0], 300).r
    angle = turn * np.pi / 2
    mu_t = np.broadcast_to(7 * np.array([np.cos(angle), np.sin(angle)]), r.shape)
    subject, t = np.arange(300).astype(str), np.linspace(0, 1, 300)
    found, _ = fit_covariation(r, Sigma, mu_t, subject, t, 0.01, Recipe(0.0, 1))
    assert found.tempo == pytest.approx([tempo], abs=0.03)


def test_large_templates_are_learned_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    how = planted(12)
    data = cohort(how, 12, 800)
    more = {"mu_t": np.ones_like(data["r"]), "t": np.linspace(0, 1, 800), "tolerance": 0.1}
    monkeypatch.setattr("prism.covariation.learn.MOST_POINTS", 8)
    found, _ = fit_covariation(**data, **more, recipe=Recipe(0.5, 2))
    assert found.factors.W.shape == (2, 12, 2)
    true = dense(how, covariances(12)[None], np.zeros(1)).measured
    learned = dense(found, covariances(12)[None], np.zeros(1)).measured
    assert np.linalg.norm(learned - true) < 0.2 * np.linalg.norm(true)
    x = Visible.of(data["r"], data["Sigma"], 0.5, 0.1)
    few = Factors(how.factors.W[:, :4], how.factors.D[:4], how.factors.q)
    beliefs = believe(few, x[:, :4])
    parts = []
    for most in (3, 100):
        monkeypatch.setattr("prism.covariation.learn.MOST_POINTS", most)
        parts.append(_at_all_points(few, beliefs, data["r"], data["Sigma"], 0.5, 0.1))
    np.testing.assert_allclose(parts[0].W, parts[1].W, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(parts[0].D, parts[1].D, rtol=1e-8)


def memory(work: Callable[[], object]) -> int:
    """Most bytes held at once."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


class Constant(Reading):
    """A population that stands still."""

    def __init__(self, field: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
        self.field = field

    def __call__(self, tau: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.field

    def mean(self, tau: np.ndarray) -> np.ndarray:
        return self.field[0]


def jobs(points: int) -> dict[str, Callable[[], object]]:
    how, template = planted(points, rank=3), line_of(points, 2)
    Sigma = np.broadcast_to(covariances(points), (2, points, 2, 2))
    x = how.visible(np.ones((2, points, 2)), Sigma)
    visits, t = x[None], np.array([[1.0, 2.0]])
    target = how.visible(np.zeros((1, 1, points, 2)), Sigma[None, :1])
    patches, beliefs = Patches.of(template), believe(how.factors, x)
    mu_t = np.ones_like(x.r)
    read = Constant((np.zeros_like(x.r), Sigma, mu_t))
    return {
        "believe": lambda: believe(how.factors, x),
        "improve": lambda: improve(how.factors, x, beliefs),
        "condition": lambda: condition(how, visits, t, target, np.array([[3.0]])),
        "date": lambda: date_shapes(how, x.r, read, np.zeros(2), (-1, 1), 1.0),
        "patches": lambda: patch_scores(how, x, mu_t, template, patches),
    }


@pytest.mark.parametrize("job", ["believe", "improve", "condition", "date", "patches"])
def test_the_cost_is_linear_in_points(job: str) -> None:
    few, many = (memory(jobs(points)[job]) for points in (1500, 6000))
    assert many < 4.5 * few  # a matrix of all points with all would be sixteen times as large
