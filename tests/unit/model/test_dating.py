from __future__ import annotations

import numpy as np
import pytest

from prism.applications import intrinsic_time
from prism.intrinsic import TimeTable, joint_mle_time
from prism.model.calibrate import FOLDS
from prism.model.core import _held_out
from prism.model.dating import Dated, between, calendar_error, earned
from prism.model.state import date
from prism.simulate import starman
from prism.simulate.study import Study
from tests.problems.tiny import fit_tiny


def test_an_estimate_gains_next_to_nothing_by_being_late_at_the_last_ages() -> None:
    """Whoever lies beyond the last ages is likelier early for his age: lateness scatters less."""
    rng = np.random.default_rng(0)
    t = rng.uniform(0, 1, 4000)
    tau = t + 0.15 * rng.normal(size=4000)
    late = np.where(tau > 0.8, 0.8 + 0.6 * (tau - 0.8), tau)
    assert np.abs(late - t).mean() < 0.94 * np.abs(tau - t).mean()
    assert calendar_error(t, late).mean() > 0.98 * calendar_error(t, tau).mean()
    assert calendar_error(t, tau).mean() == pytest.approx(np.abs(tau - t).mean(), rel=0.02)


def dated(share: float, off: np.ndarray) -> Dated:
    return Dated(share, np.abs(off), off)


def test_one_stray_subject_does_not_decide_how_all_are_dated() -> None:
    rng = np.random.default_rng(0)
    good, poor = 0.02 * rng.normal(size=80), 0.08 * rng.normal(size=80)
    good[40] -= 0.9
    assert np.std(good) > np.std(poor)
    subject = np.arange(80).astype(str)
    assert earned(dated(0.0, poor), [dated(0.1, good)], subject).share == 0.1
    assert earned(dated(0.0, good), [dated(0.1, poor)], subject).share == 0.0


def test_what_gains_less_than_a_standard_error_is_not_believed() -> None:
    simple = np.ones(100)
    gain = np.tile([0.5, -0.3], 50)  # 0.1 in the mean, standard error 0.04
    subject = np.arange(100).astype(str)
    others = [dated(0.3, simple), dated(0.1, simple - gain)]
    assert earned(dated(0.0, simple), others, subject).share == 0.1
    few = np.repeat(np.arange(4), 25).astype(str)  # the same visits of four people
    uneven = np.repeat([0.5, -0.3, 0.5, -0.3], 25)
    assert earned(dated(0.0, simple), [dated(0.1, simple - uneven)], few).share == 0.0
    assert earned(dated(0.0, simple), [dated(0.1, 0 * simple)], few[:1].repeat(100)).share == 0.0


def test_each_is_dated_by_the_member_that_has_not_seen_it_then_by_all(
    tiny_study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def recorded(table: TimeTable, d: np.ndarray) -> object:
        asked.append((table, d))
        return joint_mle_time(table, d)

    monkeypatch.setattr("prism.model.dating.joint_mle_time", recorded)
    cohort = tiny_study.correspondence
    model = fit_tiny(cohort, members=2, steps=20)
    held_out = _held_out(cohort, model.population.config, model.provenance["seed"])
    parts = [names[k::FOLDS] for names in held_out for k in range(FOLDS)]
    tables = [*np.repeat(model.member_tables, FOLDS), *[model.table] * len(parts)]
    assert len(asked) == 2 * len(parts)
    for (table, d), expected, names in zip(asked, tables, parts * 2, strict=True):
        unseen = cohort.of_subjects(names)
        np.testing.assert_array_equal(table.knots, expected.knots)
        np.testing.assert_array_equal(d, unseen.points - model.template)


def test_visits_that_tell_no_time_are_left_out() -> None:
    blind, simple, better = np.full(6, np.nan), np.arange(6.0) + 3, np.arange(6.0)
    subject = np.arange(6).astype(str)
    assert earned(dated(0.0, blind), [dated(0.1, blind)], subject).share == 0.0
    some = np.where(np.arange(6) < 3, np.nan, 1.0)
    assert earned(dated(0.0, some * simple), [dated(0.1, some * better)], subject).share == 0.1


def test_the_scale_lies_half_way_between_one_member_and_all() -> None:
    u = np.ones(3)
    alone, together = Dated(0.1, np.ones(3), u, 4.0), Dated(0.1, np.zeros(3), u, 1.0)
    found = between(alone, together)
    assert found.scale == pytest.approx(2.0)
    assert found.apart is alone.apart
    assert between(alone, alone).scale == alone.scale


def test_coverage_counts_who_lies_within_the_scaled_interval() -> None:
    rng = np.random.default_rng(0)
    u = 3 * rng.normal(size=20_000)
    for scale, held in ((3.0, 0.9), (6.0, 0.999), (1.5, 0.589)):
        found = Dated(0.0, np.abs(u), np.append(u, np.nan), scale).coverage
        assert found["0.9"] == pytest.approx(held, abs=0.01)
        assert list(found.values()) == sorted(found.values())
    assert Dated(0.0, np.full(2, np.nan), np.full(2, np.nan)).coverage == {}


def test_distance_at_one_age_is_the_plain_one() -> None:
    for t in (np.arange(5.0), np.full(30, 2.0), np.ones(1)):
        np.testing.assert_allclose(calendar_error(t, t + 1), 1.0)


def test_regions_with_tempi_of_their_own_share_the_time_but_not_the_age() -> None:
    """Developmental time is what regions have in common; the calendar shows in the steadier one."""
    study = starman("local", 60, 4, noise=0.005, resolution=24, test_subjects=30)
    model = fit_tiny(study.of_split("train").correspondence, steps=300)
    new = study.of_split("test")
    cohort, time = new.correspondence, new.truth.tau.mean(1)
    tau = intrinsic_time(model, cohort).tau
    shapes = cohort.points - model.template
    aged = date(model.covariation, model.table, shapes, model.calibration.age.modes).tau
    assert np.abs(tau - time).mean() < 0.8 * np.abs(aged - time).mean()
    assert np.abs(aged - cohort.visits.t).mean() < 0.5 * np.abs(tau - cohort.visits.t).mean()
