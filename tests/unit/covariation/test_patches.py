from __future__ import annotations

import numpy as np
import pytest

from prism.covariation import Covariation, Patches, patch_scores
from prism.covariation.patches import PATCH_TESTS, normal_score, spread_out
from tests.problems.covarying import covariances, dense, line_of, planted, seen_by

POINTS = 24


def growth(n: int) -> np.ndarray:
    """mu_t (M, n) of a line that stretches and bends."""
    return line_of(POINTS, n) + np.linspace(-0.3, 0.5, n)


def scores(how: Covariation, x, template: np.ndarray, patches: Patches) -> np.ndarray:
    mu_t = np.broadcast_to(growth(template.shape[1]), x.r.shape)
    return patch_scores(how, x, mu_t, template, patches)


def exact(how: Covariation, x, Sigma: np.ndarray, template: np.ndarray, inside: np.ndarray):
    """The three scores of one patch of one visit by dense conditioning on all other points."""
    n = template.shape[1]
    C = dense(how, Sigma[None], np.zeros(1)).measured
    seen = np.repeat(x.seen, n)
    patch = np.repeat(np.isin(np.arange(len(template)), inside), n)
    old, new = np.flatnonzero(~patch & seen), np.flatnonzero(patch & seen)
    gain = C[np.ix_(new, old)] @ np.linalg.inv(C[np.ix_(old, old)])
    S = C[np.ix_(new, new)] - gain @ C[np.ix_(old, new)]
    y = x.r.ravel()
    e, Si = y[new] - gain @ y[old], np.linalg.inv(S)
    g = growth(n).ravel()[new]
    shifts = np.tile(np.eye(n), (len(template), 1))[new]
    swelling = (template - template[inside].mean(axis=0)).ravel()[new]
    together = np.column_stack([shifts, swelling])
    pull = together.T @ Si @ e
    both = pull @ np.linalg.solve(together.T @ Si @ together, pull)
    return [
        normal_score(e @ Si @ e, np.array(float(len(new)))),
        normal_score((g @ Si @ e) ** 2 / (g @ Si @ g), np.array(1.0)),
        normal_score(both, np.array(n + 1.0)),
    ]


@pytest.mark.parametrize("n", [2, 3])
def test_a_patch_is_judged_by_dense_conditioning_on_the_rest(n: int) -> None:
    how, Sigma, template = planted(POINTS, n), covariances(POINTS, n=n), line_of(POINTS, n)
    patches = Patches.of(template)
    x = seen_by(how, Sigma, 2)
    found = scores(how, x, template, patches)
    for patch in np.flatnonzero(patches.size == patches.size.max())[::5]:
        inside = patches.member[patch].indices
        assert len(inside) == 6
        for v in range(2):
            expected = exact(how, x[v], Sigma, template, inside)
            np.testing.assert_allclose(found[v, :, patch], expected, rtol=1e-4, atol=1e-4)


def test_people_of_the_model_are_normal_by_every_test() -> None:
    how, Sigma, template = planted(POINTS), covariances(POINTS), line_of(POINTS, 2)
    patches = Patches.of(template)
    found = scores(how, seen_by(how, Sigma, 500), template, patches)
    large = patches.size == patches.size.max()
    for k, name in enumerate(PATCH_TESTS):
        values = found[:, k, large]
        assert values.mean() == pytest.approx(0, abs=0.08), name
        assert values.std() == pytest.approx(1, abs=0.08), name
        assert (values > 1.645).mean() == pytest.approx(0.05, abs=0.02), name


@pytest.mark.parametrize("kind", range(3))
def test_a_bump_is_found_where_it_is(kind: int) -> None:
    how, Sigma, template = planted(POINTS), covariances(POINTS), line_of(POINTS, 2)
    patches = Patches.of(template)
    chosen = np.flatnonzero(patches.size == 1)[15]
    inside = patches.member[chosen].indices
    x = seen_by(how, Sigma, 4)
    rng = np.random.default_rng(0)
    shape = [rng.choice([-6.0, 6.0], (len(inside), 2)), 8 * growth(2)[inside], 6.0]
    x.r[2, inside] += shape[kind]
    found = scores(how, x, template, patches)[:, kind]
    assert found[2].max() > found[[0, 1, 3]].max() + 1
    worst = patches.member[found[2].argmax()].indices
    assert set(worst) & set(inside)
    among = patches.size == 1
    assert np.flatnonzero(among)[found[2, among].argmax()] == chosen


def test_a_difference_the_whole_shape_shares_is_not_local() -> None:
    how, Sigma, template = planted(POINTS), covariances(POINTS), line_of(POINTS, 2)
    patches = Patches.of(template)
    x = seen_by(how, Sigma, 2)
    x.r[1] = x.r[0] + 8 * (x.A[0] @ how.factors.W[0][..., None])[..., 0]  # far along a mode
    found = scores(how, x, template, patches)
    small = patches.size == 0
    assert np.abs(found[1] - found[0])[:, small].max() < 1.5


def test_a_patch_nobody_saw_is_not_judged() -> None:
    how, Sigma, template = planted(POINTS), covariances(POINTS), line_of(POINTS, 2)
    patches = Patches.of(template)
    r = seen_by(how, Sigma, 1).r.copy()
    r[:, 4:12] = np.nan
    x = how.visible(r, Sigma[None])
    found = scores(how, x, template, patches)[0]
    unseen = patches.member @ x.seen[0].astype(float) == 0
    assert unseen.any()
    assert np.isnan(found[:, unseen]).all()
    assert np.isfinite(found[:, ~unseen]).all()
    # where some of a patch was seen, it is judged by that part
    part = np.flatnonzero(~unseen & (patches.size == patches.size.max()))[0]
    inside = patches.member[part].indices
    centre = template[inside].mean(axis=0)
    np.testing.assert_allclose(patches.place[part], centre)
    expected = exact(how, x[0], Sigma, template, inside)
    np.testing.assert_allclose(found[:, part], expected, rtol=1e-4, atol=1e-4)


def test_patches_are_the_nearest_points_at_several_sizes() -> None:
    template = np.random.default_rng(0).uniform(size=(150, 3))
    patches = Patches.of(template)
    assert np.unique(patches.size).tolist() == [0, 1, 2, 3]
    for patch in (0, 151, 333, 599):
        away = np.linalg.norm(template - template[patches.centre[patch]], axis=1)
        inside = patches.member[patch].indices
        assert set(inside) == set(np.argsort(away)[: len(inside)])
        np.testing.assert_allclose(patches.place[patch], template[inside].mean(axis=0))
    assert len(np.unique(patches.centre)) == 150


def test_centres_cover_the_shape_evenly() -> None:
    points = np.random.default_rng(0).uniform(size=(3000, 2))
    chosen = spread_out(points, 100)
    assert len(np.unique(chosen)) == 100
    away = np.linalg.norm(points[:, None] - points[chosen], axis=-1).min(axis=1)
    apart = np.linalg.norm(points[chosen][:, None] - points[chosen], axis=-1)
    apart[np.diag_indices(100)] = np.inf
    assert away.max() <= apart.min()  # the rule of the farthest point
    assert spread_out(points[:5], 9).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("freedom", [5, 12, 100])
def test_the_cube_root_makes_a_chi_square_normal(freedom: int) -> None:
    from scipy.stats import chi2, norm

    shares = np.array([0.1, 0.5, 0.9, 0.99, 0.999])
    found = normal_score(chi2.ppf(shares, freedom), np.full(5, float(freedom)))
    np.testing.assert_allclose(found, norm.ppf(shares), atol=0.08)
