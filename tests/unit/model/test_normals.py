from __future__ import annotations

import numpy as np
import pytest

from prism.calibration import conformal_p_value
from prism.covariation import Patches
from prism.model.normals import (
    SCORES,
    Extent,
    Norms,
    Verdict,
    _moments,
    _quantiles,
    low_rank_score,
    mahalanobis_distance,
    point_map,
)
from prism.model.state import Residuals
from tests.problems.covarying import covariances, dense, planted


def residuals(r: np.ndarray, Sigma: np.ndarray) -> Residuals:
    """Residuals of people seen once, where nothing else is asked."""
    N = len(r)
    Sigma = np.broadcast_to(Sigma, (*r.shape, r.shape[-1]))
    return Residuals(r, 0 * r, Sigma, 0 * r, np.arange(N).astype(str), np.zeros(N))


def test_surprise_is_minus_the_log_density_a_coordinate() -> None:
    how, Sigma = planted(5), covariances(5)
    r = np.random.default_rng(0).standard_normal((3, 5, 2))
    r[1, 2] = np.nan
    C = dense(how, Sigma[None], np.zeros(1)).measured
    for row, found in enumerate(low_rank_score(how, how.visible(r, Sigma))):
        y = r[row].ravel()
        seen = ~np.isnan(y)
        part, y = C[np.ix_(seen, seen)], y[seen]
        expected = 0.5 * (y @ np.linalg.solve(part, y) + np.linalg.slogdet(part)[1]) / len(y)
        assert found == pytest.approx(expected, rel=1e-9)


def test_distances_are_those_of_mahalanobis() -> None:
    Sigma = covariances(4, n=3)
    r = np.random.default_rng(0).standard_normal((2, 4, 3))
    r[0, 1] = np.nan
    found = mahalanobis_distance(residuals(r, Sigma))
    expected = np.sqrt(np.einsum("vpi,pij,vpj->vp", r, np.linalg.inv(Sigma), r))
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_moments_are_those_of_each_patch_drawn_to_the_common_ones() -> None:
    scores = np.random.default_rng(0).normal(2.0, 3.0, (4000, 3, 5))
    scores[:, :, 0] += 4.0
    scores[3:, :, 4] = np.nan  # hardly ever seen
    mean, sd = _moments(scores)
    np.testing.assert_allclose(mean[:, 0], 6.0, atol=0.2)
    np.testing.assert_allclose(mean[:, 1:4], 2.0, atol=0.2)
    np.testing.assert_allclose(sd[:, :4], 3.0, atol=0.2)
    common = np.nanmean(scores, axis=(0, 2))
    assert (np.abs(mean[:, 4] - common) < np.abs(np.nanmean(scores[..., 4], 0) - common)).all()
    assert np.isfinite(_moments(np.full((4, 3, 2), np.nan))[0]).all()


AGES = np.linspace(0, 1, 65)


def drawn(rng: np.random.Generator, people: int, t: np.ndarray, by_age: bool) -> Verdict:
    """What a judge says of normals: whoever is old looks stranger to it, and in more ways."""
    tests, whole = rng.standard_normal((people, 3, 300)), rng.standard_normal((people, 2))
    scale, shift = (1 + t / 2, t) if by_age else (1 + 0 * t, 0 * t)
    return Verdict(
        shift[:, None, None] + scale[:, None, None] * tests, shift[:, None] + scale[:, None] * whole
    )


def norms_of_others(normals: Verdict, t: np.ndarray, fold: np.ndarray) -> list[Norms]:
    """How the others of every part spread."""
    return [Norms.of(normals[fold != k], t[fold != k], AGES) for k in np.unique(fold)]


def scores(norms: Norms, verdict: Verdict, t: np.ndarray) -> np.ndarray:
    """(N, 4) scores of visits of ages t by what a judge measures by."""
    return norms.scores(norms.measured(verdict, t), t)


def test_few_normals_are_as_strange_to_each_other_as_new_ones_to_them() -> None:
    rng, flagged, by_themselves = np.random.default_rng(0), [], []
    for _ in range(60):
        t, t_new = rng.random(50), rng.random(100)
        normals, new = drawn(rng, 50, t, False), drawn(rng, 100, t_new, False)
        fold = np.arange(50) % 4
        for k, norms in enumerate(norms_of_others(normals, t, fold)):
            score = scores(norms, new, t_new)[:, 0]
            known = scores(norms, normals[fold == k], t[fold == k])[:, 0]
            flagged.append(np.mean(conformal_p_value(score, known) < 0.1))
        own = Norms.of(normals, t, AGES)
        score, known = scores(own, new, t_new)[:, 0], scores(own, normals, t)[:, 0]
        by_themselves.append(np.mean(conformal_p_value(score, known) < 0.1))
    exact = np.mean([np.floor(0.1 * (n + 1)) / (n + 1) for n in (13, 13, 12, 12)])
    assert np.mean(flagged) == pytest.approx(exact, abs=0.02)
    assert np.mean(by_themselves) > 0.2


@pytest.mark.parametrize("score", range(len(SCORES)))
def test_normals_of_any_age_are_flagged_alike(score: int) -> None:
    rng, flagged, bare = np.random.default_rng(3), [], []
    for _ in range(6):
        t, t_new, fold = rng.random(300), rng.random(400), np.arange(300) % 3
        normals, new = drawn(rng, 300, t, True), drawn(rng, 400, t_new, True)
        young = t_new < 0.3
        for k, norms in enumerate(norms_of_others(normals, t, fold)):
            found = scores(norms, new, t_new)[:, score]
            known = scores(norms, normals[fold == k], t[fold == k])[:, score]
            p = conformal_p_value(found, known)
            flagged.append([np.mean(p[young] < 0.1), np.mean(p[~young] < 0.1)])
        p = conformal_p_value(new.scores[:, score], normals.scores[:, score])
        bare.append([np.mean(p[young] < 0.1), np.mean(p[~young] < 0.1)])
    np.testing.assert_allclose(np.mean(flagged, axis=0), 0.1, atol=0.06)
    assert np.mean(bare, axis=0)[0] < 0.04


def seen_in_part(rng: np.random.Generator, people: int) -> tuple[np.ndarray, ...]:
    """Scores (N, 4) and maps (N, 40) that are tamer and closer where less was seen; the shares."""
    share = rng.choice([0.1, 0.4, 0.7, 1.0], people)
    scale, shift = (0.5 + share)[:, None], (4 * share**2)[:, None]
    scores = shift + scale * rng.standard_normal((people, 4))
    maps = shift + scale * rng.standard_normal((people, 40))
    maps[rng.random(maps.shape) > share[:, None]] = np.nan
    return scores, maps, share


def test_normals_seen_in_part_are_as_strange_as_whole_ones() -> None:
    rng = np.random.default_rng(0)
    extent = Extent.of(*seen_in_part(rng, 4000))
    scores, maps, share = seen_in_part(rng, 8000)
    reference = extent.scores(scores[share == 1], share[share == 1])
    points = extent.map(maps[share == 1], share[share == 1])
    for part in (0.1, 0.4, 0.7):
        found = extent.scores(scores[share == part], share[share == part])
        flagged = [np.mean(conformal_p_value(found[:, k], reference[:, k]) < 0.1) for k in range(4)]
        np.testing.assert_allclose(flagged, 0.1, atol=0.04)
        z = extent.map(maps[share == part], share[share == part])
        seen = z[~np.isnan(z)]
        assert np.mean(conformal_p_value(seen, points) < 0.1) == pytest.approx(0.1, abs=0.03)
        bare = conformal_p_value(scores[share == part, 0], scores[share == 1, 0])
        assert np.mean(bare < 0.1) < 0.04


def test_where_nothing_was_learned_of_parts_scores_stay() -> None:
    scores, maps = np.ones((3, 4)), np.ones((3, 7))
    none, share = Extent.none(), np.array([0.1, 0.5, 1.0])
    np.testing.assert_array_equal(none.scores(scores, share), scores)
    np.testing.assert_array_equal(none.map(maps, share), maps)
    whole = Extent.of(np.arange(12.0).reshape(3, 4), maps, np.ones(3))
    assert np.isfinite(whole.scores(scores, share)).all()


def test_parts_come_back_in_the_cohorts_order() -> None:
    fold, rng = np.array([2, 0, 1, 0, 2]), np.random.default_rng(0)
    whole = drawn(rng, 5, np.zeros(5), False)
    joined = Verdict.of_parts([whole[fold == k] for k in range(3)], fold)
    np.testing.assert_array_equal(joined.tests, whole.tests)
    np.testing.assert_array_equal(joined.whole, whole.whole)


def test_a_map_shows_the_patch_around_each_point() -> None:
    template = np.random.default_rng(0).uniform(size=(60, 2))
    patches = Patches.of(template)
    standard = np.full((1, 3, len(patches.centre)), -9.0)
    chosen = np.flatnonzero((patches.size == 1) & (patches.centre == 17))[0]
    standard[:, :, chosen] = 5.0
    found = point_map(standard, patches, template)
    assert np.flatnonzero(found[0] == 5.0).tolist() == [17]


def test_references_of_a_map_are_counted_once() -> None:
    few = _quantiles(np.array([1.0, 2.0, 3.0, np.nan]), 7)
    np.testing.assert_array_equal(few, [1, 2, 3, np.nan, np.nan, np.nan, np.nan])
    assert conformal_p_value(np.array([9.0]), few)[0] == 1 / 4
    np.testing.assert_array_equal(_quantiles(np.arange(101.0), 5), [0, 25, 50, 75, 100])
    assert np.isnan(_quantiles(np.full(3, np.nan), 2)).all()
