from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from prism.applications import anomaly
from prism.calibration import conformal_p_value
from prism.covariation import Patches
from prism.model import PRISM
from prism.model.calibrate import CrossFit
from prism.model.normals import (
    _moments,
    _moments_of_others,
    low_rank_score,
    mahalanobis_distance,
    normal_scores,
    point_map,
    strongest,
)
from prism.model.state import Residuals
from prism.simulate.study import Study
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
    for _ in range(60):
        normals, new = rng.standard_normal((50, *size)), rng.standard_normal((100, *size))
        mean, sd = _moments_of_others(normals, np.arange(50) % 4)
        own_mean, own_sd = _moments(normals)
        score = strongest(((new - own_mean) / own_sd)[:, 0])[0]
        for found, m, s in ((flagged, mean, sd), (by_themselves, own_mean, own_sd)):
            reference = strongest(((normals - m) / s)[:, 0])[0]
            found.append(np.mean(conformal_p_value(score, reference) < 0.1))
    assert np.mean(flagged) == pytest.approx(0.1, abs=0.03)
    assert np.mean(by_themselves) > 0.2


def test_a_map_shows_the_patch_around_each_point() -> None:
    template = np.random.default_rng(0).uniform(size=(60, 2))
    patches = Patches.of(template)
    standard = np.full((1, 3, len(patches.centre)), -9.0)
    chosen = np.flatnonzero((patches.size == 1) & (patches.centre == 17))[0]
    standard[:, :, chosen] = 5.0
    found = point_map(standard, patches, template)
    assert np.flatnonzero(found[0] == 5.0).tolist() == [17]


@pytest.fixture
def crossed(tiny_model: PRISM, tiny_study: Study) -> CrossFit:
    """Three judges of one population, who have not seen a third of the subjects each."""
    cohort = tiny_study.correspondence
    seen = Residuals.of(tiny_model.table, tiny_model.template, cohort)
    fold = np.unique(cohort.visits.subject, return_inverse=True)[1] % 3
    return CrossFit(cohort, seen, fold, tiny_model.judges)


def test_judges_who_are_one_agree(tiny_model: PRISM, crossed: CrossFit) -> None:
    same = replace(crossed, judges=crossed.judges[:1] * 3)
    found = normal_scores(tiny_model, same)["agreement"]
    assert found == pytest.approx(dict.fromkeys(found, 1.0))
    apart = normal_scores(tiny_model, crossed)["agreement"]
    assert 0.3 < apart["scores"] < 0.999
    assert apart["scores_mahalanobis"] == pytest.approx(1.0)  # the population alone decides it


def test_p_values_are_wider_the_less_judges_agree(tiny_model: PRISM, tiny_study: Study) -> None:
    def p_values(agreement: float) -> np.ndarray:
        known = tiny_model.calibration
        every = dict.fromkeys(known.agreement, agreement)
        model = replace(tiny_model, calibration=replace(known, agreement=every))
        return anomaly(model, tiny_study.correspondence).p_value

    whole, part = p_values(1.0), p_values(0.4)
    assert (np.abs(part - 0.5) >= np.abs(whole - 0.5)).all()
    assert (part != whole).mean() > 0.8
