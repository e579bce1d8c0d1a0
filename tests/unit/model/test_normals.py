from __future__ import annotations

import numpy as np
import pytest

from prism.calibration import conformal_p_value
from prism.covariation import Patches
from prism.model.normals import (
    _moments,
    low_rank_score,
    mahalanobis_distance,
    moments_of_others,
    point_map,
    strongest,
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


def test_few_normals_are_as_strange_to_each_other_as_new_ones_to_them() -> None:
    rng, size, flagged, by_themselves = np.random.default_rng(0), (1, 300), [], []
    for _ in range(80):
        normals, new = rng.standard_normal((50, *size)), rng.standard_normal((100, *size))
        fold = np.arange(50) % 4
        moments = zip(*moments_of_others(normals, fold, 4), strict=True)
        scores, references = [], []
        for k, (mean, sd) in enumerate(moments):
            scores.append(strongest(((new - mean) / sd)[:, 0])[0])
            references.append(strongest(((normals[fold == k] - mean) / sd)[:, 0])[0])
            flagged.append(np.mean(conformal_p_value(scores[k], references[k]) < 0.1))
        mean, sd = _moments(normals)
        score, own = (strongest(((v - mean) / sd)[:, 0])[0] for v in (new, normals))
        by_themselves.append(np.mean(conformal_p_value(score, own) < 0.1))
    exact = np.mean([np.floor(0.1 * (n + 1)) / (n + 1) for n in (13, 13, 12, 12)])
    assert np.mean(flagged) == pytest.approx(exact, abs=0.015)
    assert np.mean(by_themselves) > 0.2


def test_a_map_shows_the_patch_around_each_point() -> None:
    template = np.random.default_rng(0).uniform(size=(60, 2))
    patches = Patches.of(template)
    standard = np.full((1, 3, len(patches.centre)), -9.0)
    chosen = np.flatnonzero((patches.size == 1) & (patches.centre == 17))[0]
    standard[:, :, chosen] = 5.0
    found = point_map(standard, patches, template)
    assert np.flatnonzero(found[0] == 5.0).tolist() == [17]
