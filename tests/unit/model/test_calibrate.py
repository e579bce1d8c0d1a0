from __future__ import annotations

import numpy as np
import pytest

from prism.applications import anomaly
from prism.calibration import LEVELS, between_factors, interval_factors
from prism.covariation import Covariation, Texture, learn_texture
from prism.model import PRISM
from prism.model.calibrate import FOLDS, CrossFit, _cross_coverage, _folds, _running_count, _thin
from prism.model.forecasts import ForecastErrors, forecast_errors
from prism.model.state import Residuals, date, forecast_residuals
from prism.population import PopulationConfig
from prism.simulate.study import Study
from tests.problems.covarying import covariances


def test_thinning_keeps_subjects_and_their_repeat_visits(
    tiny_study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    cohort = tiny_study.correspondence
    np.testing.assert_array_equal(_thin(cohort).points, cohort.points)
    monkeypatch.setattr("prism.model.calibrate.MOST_VISITS", 30)
    some = _thin(cohort)
    assert len(some) == 30
    assert some.visits.subjects == cohort.visits.subjects
    here, there = (np.unique(c.visits.subject, return_counts=True)[1] for c in (some, cohort))
    assert (here >= np.minimum(there, 2)).all()
    assert _running_count(np.array([3, 1, 3, 3, 1])).tolist() == [0, 0, 1, 2, 1]


def test_a_part_of_the_cohort_that_was_not_sampled_still_has_a_judge(
    tiny_study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    cohort = tiny_study.correspondence
    subjects = cohort.visits.subjects
    first = [subjects[i] for i in np.random.default_rng(0).permutation(len(subjects))[0::4]]
    rest = cohort.of_subjects([name for name in subjects if name not in first])
    monkeypatch.setattr("prism.model.calibrate._thin", lambda _: rest)
    config = PopulationConfig(width=16, hidden=1, steps=20, members=4)
    model = PRISM.fit(cohort, "fast", config=config, seed=0, device="cpu")
    assert len(model.judges) == 4 * FOLDS
    seen = np.bincount(model.calibration.judge, minlength=4 * FOLDS)
    assert (seen[:FOLDS] == 0).all()
    assert (seen[FOLDS:] > 0).all()
    found = anomaly(model, cohort)
    assert np.isfinite(found.p_value).all()
    assert np.isfinite(found.point_p).all()


def test_parts_of_few_people_are_small_and_share_the_member_that_has_not_seen_them() -> None:
    few, many = np.arange(40).astype(str), np.arange(160).astype(str)
    quarters = [list(few[k::4]) for k in range(4)]
    fold, parts = _folds(np.repeat(few, 2), quarters)
    assert parts == 4 * FOLDS
    assert set(np.bincount(fold)) == {6, 8}  # visits of three or four people
    for k, names in enumerate(quarters):
        assert set(fold[np.isin(np.repeat(few, 2), names)] // FOLDS) == {k}
    fold, parts = _folds(many, [list(many[k::4]) for k in range(4)])
    assert (parts, set(np.bincount(fold))) == (4, {40})
    fold, parts = _folds(many, [list(many[:16])])  # one member: all have a part
    assert (parts, np.bincount(fold).tolist()) == (FOLDS, [54, 53, 53])


def test_coverage_is_of_people_whom_the_interval_was_not_learned_from() -> None:
    """Each person's visits are alike: an interval that has seen one of them holds the others."""
    rng, told, true = np.random.default_rng(0), [], []
    for _ in range(40):
        subject = np.repeat(np.arange(9), 8)
        u = rng.standard_normal((9, 20, 2))[subject] + 0.05 * rng.standard_normal((72, 20, 2))
        told.append(_cross_coverage(u, u, subject.astype(str))["0.9"])
        factors = interval_factors(u, subject.astype(str))[LEVELS.index(0.9)]
        true.append(np.mean(np.abs(rng.standard_normal((200, 20, 2))) <= factors))
    assert np.mean(told) == pytest.approx(np.mean(true), abs=0.05)
    assert _cross_coverage(u[:16], u[:16], subject[:16].astype(str)) == {}


def test_forecasts_are_measured_by_one_network_and_by_all_of_them(
    tiny_study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[tuple[CrossFit, ForecastErrors]] = []

    def noted(model: PRISM, cross: CrossFit, pointwise: float | None = None) -> ForecastErrors:
        judged.append((cross, forecast_errors(model, cross, pointwise)))
        return judged[-1][1]

    monkeypatch.setattr("prism.model.calibrate.forecast_errors", noted)
    cohort = tiny_study.correspondence
    config = PopulationConfig(width=16, hidden=1, steps=20, members=3)
    model = PRISM.fit(cohort, "fast", config=config, seed=0, device="cpu")
    (_, alone), (by_all, together) = judged
    np.testing.assert_allclose(
        by_all.seen.mu, Residuals.of(model.table, model.template, cohort).mu, atol=1e-6
    )
    assert {id(how) for _, how in by_all.judges} == {id(model.covariation)}
    assert together.pointwise == alone.pointwise == model.calibration.pointwise
    assert np.nanmax(np.abs(alone.pooled - together.pooled)) > 0.01
    found = model.calibration
    np.testing.assert_allclose(
        found.forecast, between_factors(alone.pooled, together.pooled, alone.subject)
    )
    np.testing.assert_allclose(
        found.forecast_paper, between_factors(alone.paper, together.paper, alone.subject)
    )


def test_forecasts_from_different_numbers_of_visits_come_back_in_order(
    tiny_model: PRISM, tiny_study: Study
) -> None:
    cohort, how = tiny_study.correspondence, tiny_model.covariation
    seen = Residuals.of(tiny_model.table, tiny_model.template, cohort)
    past = [np.array([0, 1]), np.array([5]), np.array([2, 3]), np.array([6])]
    t1 = np.array([0.6, 0.7, 0.8, 0.9])
    together = forecast_residuals(how, tiny_model.table, seen, past, t1)
    for k, rows in enumerate(past):
        alone = forecast_residuals(how, tiny_model.table, seen, [rows], t1[k : k + 1])
        np.testing.assert_allclose(together.mean[k], alone.mean[0], atol=1e-12)
        np.testing.assert_allclose(together.cov[k], alone.cov[0], atol=1e-12)


def test_shapes_in_blocks_are_dated_alike(
    tiny_model: PRISM, tiny_study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    d = tiny_model.displacements(tiny_study.correspondence)
    whole = date(tiny_model.covariation, tiny_model.table, d, 0.3)
    monkeypatch.setattr("prism.model.state.BLOCK_VALUES", 1)
    parts = date(tiny_model.covariation, tiny_model.table, d, 0.3)
    np.testing.assert_allclose(parts.tau, whole.tau, atol=1e-6)
    np.testing.assert_allclose(parts.se, whole.se, rtol=1e-4)


def test_drawn_people_differ_as_far_as_those_it_was_learned_from(
    tiny_model: PRISM, tiny_study: Study
) -> None:
    cohort = tiny_study.correspondence
    seen = Residuals.of(tiny_model.table, tiny_model.template, cohort)
    ages = np.quantile(cohort.visits.t, np.linspace(0.02, 0.98, 25))
    away = np.stack(
        [
            tiny_model.draw_shapes(t, 100, seed=k)
            - tiny_model.mean_shapes(np.full((1, len(tiny_model.template)), t))
            for k, t in enumerate(ages.tolist())
        ]
    )
    np.testing.assert_allclose(away.std((0, 1, 2)), seen.r.std((0, 1)), rtol=0.15)


def test_drawn_people_are_as_smooth_as_the_cohort(tiny_model: PRISM, tiny_study: Study) -> None:
    cohort, how = tiny_study.correspondence, tiny_model.covariation
    known = Residuals.of(tiny_model.table, tiny_model.template, cohort)
    found = learn_texture(how, known.r, known.Sigma, tiny_model.template)
    assert tiny_model.calibration.texture == found != Texture()


def test_drawn_people_are_the_same_again(tiny_model: PRISM) -> None:
    first, again, other = (tiny_model.draw_shapes(0.5, 3, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).min() > 0


def test_before_anything_is_learned_points_are_the_populations_own() -> None:
    none = Covariation.none(3, 2)
    assert none.factors.rank == 0
    drawn = Texture().draw(none, covariances(3), np.eye(3)[:, :2], 5000, seed=0)
    cov = np.einsum("vpi,vpj->pij", drawn, drawn) / 5000
    np.testing.assert_allclose(cov, covariances(3), atol=0.12)
