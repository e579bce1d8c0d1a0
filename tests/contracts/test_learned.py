"""One battery that every learned object must pass."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from prism.applications import anomaly, intrinsic_time, predict_shape
from prism.calibration import interval_factors
from prism.cohort import Correspondence, Visits
from prism.errors import PrismError
from prism.intrinsic import EncoderConfig, InverseEncoder, TimeTable
from prism.model import PRISM
from prism.model.forecasts import FEWEST_PAIRS
from prism.population import NeuralPopulation
from prism.training import Runtime
from tests.problems.linear_gaussian import LinearGaussian, points
from tests.problems.tiny import CONFIG, cohort_in_space, fit_tiny, tiny_cohort


def same(a: Any, b: Any) -> bool:
    """Equal to the bit, NaN where NaN."""
    return all(np.array_equal(x, y, equal_nan=True) for x, y in zip(a, b, strict=True))


class LearnedBattery:
    """What holds of everything that is learned: `fit` it, then `ask` it."""

    def data(self) -> Any:
        raise NotImplementedError

    def fit(self, data: Any, seed: int) -> Any:
        raise NotImplementedError

    def ask(self, learned: Any) -> list[np.ndarray]:
        raise NotImplementedError

    def arrays(self, data: Any) -> list[np.ndarray]:
        raise NotImplementedError

    @pytest.fixture(scope="class")
    @classmethod
    def learned(cls) -> Any:
        return cls().fit(cls().data(), seed=0)

    def test_same_seed_same_bits(self, learned: Any) -> None:
        assert same(self.ask(learned), self.ask(self.fit(self.data(), seed=0)))

    def test_other_seed_other_answers(self, learned: Any) -> None:
        assert not same(self.ask(learned), self.ask(self.fit(self.data(), seed=1)))

    def test_inputs_are_left_alone(self) -> None:
        data = self.data()
        before = copy.deepcopy(self.arrays(data))
        self.ask(self.fit(data, seed=0))
        assert same(before, self.arrays(data))

    def test_asking_twice_gives_the_same(self, learned: Any) -> None:
        assert same(self.ask(learned), self.ask(learned))

    def test_learning_leaves_the_global_generators_alone(self) -> None:
        torch.manual_seed(7)
        np.random.seed(7)  # noqa: NPY002
        expected = float(torch.rand(1)), float(np.random.rand())  # noqa: NPY002
        torch.manual_seed(7)
        np.random.seed(7)  # noqa: NPY002
        self.fit(self.data(), seed=0)
        assert (float(torch.rand(1)), float(np.random.rand())) == expected  # noqa: NPY002


class TestInverseEncoder(LearnedBattery):
    def data(self) -> Any:
        return TimeTable.of(LinearGaussian.example(2), points(5, 2).numpy(), (0.0, 1.0))

    def fit(self, data: Any, seed: int) -> InverseEncoder:
        config = EncoderConfig(width=8, hidden=1, steps=20, batch=64)
        p = points(5, 2).numpy()
        return InverseEncoder.fit(data, p, (0.0, 1.0), 0.01, config, seed, Runtime("cpu"))[0]

    def ask(self, learned: InverseEncoder) -> list[np.ndarray]:
        return [learned(points(5, 2).numpy(), np.linspace(-1, 1, 30).reshape(3, 5, 2))]

    def arrays(self, data: Any) -> list[np.ndarray]:
        return [data.knots, data.cubics]


class PRISMBattery(LearnedBattery):
    def fit(self, data: Correspondence, seed: int) -> PRISM:
        return fit_tiny(data, seed)

    def arrays(self, data: Correspondence) -> list[np.ndarray]:
        return [data.points, data.template, data.visits.t]

    def ask(self, learned: PRISM) -> list[np.ndarray]:
        from prism.applications import anomaly, intrinsic_time, predict_shape, trajectory

        cohort = self.data()
        ages = np.linspace(learned.ages[0] - 0.1, learned.ages[1], 3)
        path, times = trajectory(learned, ages), intrinsic_time(learned, cohort)
        forecast, found = predict_shape(learned, cohort), anomaly(learned, cohort)
        return [
            *(path.points, path.Sigma, path.sigma_tau, path.lower),
            *(times.tau, times.tau_se, times.point_tau_encoder),
            *(forecast.points, forecast.upper, found.score, found.p_value, found.point_p),
        ]

    def test_what_is_saved_is_what_is_loaded(self, learned: PRISM, tmp_path: Path) -> None:
        learned.save(tmp_path / "model")
        again = PRISM.load(tmp_path / "model")
        assert same(self.ask(again), self.ask(learned))
        assert again.name == learned.name
        assert again.ages == learned.ages
        assert (again.time_unit, again.length_unit) == (learned.time_unit, learned.length_unit)
        assert again.calibration.coverage == learned.calibration.coverage
        again.save(tmp_path / "copy")
        for file in (tmp_path / "model").iterdir():
            assert (tmp_path / "copy" / file.name).read_bytes() == file.read_bytes()

    def test_a_model_folder_holds_no_code_and_no_name(self, learned: PRISM, tmp_path: Path) -> None:
        learned.save(tmp_path / "model")
        files = sorted((tmp_path / "model").iterdir())
        assert {file.suffix for file in files} == {".toml", ".safetensors", ".json", ".md"}
        for file in files:
            content = file.read_bytes()
            assert not content.startswith((b"\x80", b"PK")), f"{file.name} may be a pickle"
            for name in self.data().visits.subjects:
                assert name.encode() not in content, f"{file.name} names a subject"

    def test_loading_unpickles_nothing(
        self, learned: PRISM, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import pickle

        def refuse(*args: Any, **kwargs: Any) -> None:
            raise AssertionError("a model file was unpickled")

        learned.save(tmp_path / "model")
        for module, name in ((torch, "load"), (pickle, "load"), (pickle, "loads"), (np, "load")):
            monkeypatch.setattr(module, name, refuse)
        PRISM.load(tmp_path / "model")


class TestPRISM(PRISMBattery):
    def data(self) -> Correspondence:
        cohort = tiny_cohort(missing=0.1).correspondence
        names = np.char.add("Mrs-Smith-", cohort.visits.subject)
        return replace(cohort, visits=replace(cohort.visits, subject=names))


class TestPRISMInSpace(PRISMBattery):
    def data(self) -> Correspondence:
        cohort = cohort_in_space()
        names = np.char.add("Mr-Miller-", cohort.visits.subject)
        return replace(cohort, visits=replace(cohort.visits, subject=names))


class TestPRISMEnsemble(PRISMBattery):
    def data(self) -> Correspondence:
        return tiny_cohort(missing=0.1).correspondence

    def fit(self, data: Correspondence, seed: int) -> PRISM:
        return fit_tiny(data, seed, members=3, steps=20)

    def test_the_population_is_the_average_of_its_members(self, learned: PRISM) -> None:
        p, t = torch.as_tensor(learned.template), torch.tensor(0.4)
        whole, mu_t, L_t = learned.rate(p, t)
        parts = [member.rate(p, t) for member in learned.population.members]
        assert len(parts) == 3
        assert not torch.equal(parts[0][0].mu, parts[1][0].mu)
        expected = [torch.stack(kind).mean(0) for kind in (
            [part[0].mu for part in parts], [part[0].L for part in parts],
            [part[1] for part in parts], [part[2] for part in parts],
        )]  # fmt: skip
        here = learned(p, t)
        pairs = zip((here.mu, here.L, mu_t, L_t), expected, strict=True)
        for found, average in [*pairs, (whole.mu, here.mu), (whole.L, here.L)]:
            torch.testing.assert_close(found, average, rtol=1e-5, atol=1e-7)

    def test_every_subject_has_a_member_that_has_not_seen_it(self, learned: PRISM) -> None:
        from prism.model.calibrate import unseen_residuals
        from prism.model.core import _held_out

        cohort = self.data()
        names = _held_out(cohort, learned.population.config, seed=0)
        assert sorted(name for part in names for name in part) == sorted(cohort.visits.subjects)
        assert sorted(learned.history) == ["encoder", *(f"population-{k}" for k in (1, 2, 3))]
        seen = unseen_residuals(learned, cohort, names)
        np.testing.assert_array_equal(seen.subject, cohort.visits.subject)
        for member, part in zip(learned.population.members, names, strict=True):
            rows = np.isin(cohort.visits.subject, part)
            t = torch.as_tensor(cohort.visits.t[rows])[:, None]
            mu = member(torch.as_tensor(cohort.template), t).mu.numpy()
            away = cohort.points[rows] - cohort.template - mu
            np.testing.assert_allclose(seen.r[rows], away, atol=1e-4)


def test_small_cohorts_get_an_ensemble_and_large_ones_do_not() -> None:
    config = replace(CONFIG, members=None)
    asked = (3, 4, 12, 250, 251, 600, 601)
    assert [config.members_for(k) for k in asked] == [1, 2, 4, 4, 2, 2, 1]
    assert replace(config, members=2).members_for(1000) == 2
    with pytest.raises(PrismError, match="members must be at least 1"):
        replace(config, members=0)


def with_t(cohort: Correspondence, t: np.ndarray) -> Correspondence:
    return replace(cohort, visits=replace(cohort.visits, t=t))


def one_unknown_age(row: int) -> Callable[[Correspondence], Correspondence]:
    def spoil(cohort: Correspondence) -> Correspondence:
        t = cohort.visits.t.copy()
        t[row] = np.nan
        return with_t(cohort, t)

    return spoil


def empty(cohort: Correspondence) -> Correspondence:
    return Correspondence(cohort.points[:0], Visits(*np.empty((3, 0))), cohort.template)


def all_equal(cohort: Correspondence) -> Correspondence:
    return replace(cohort, points=np.repeat(cohort.points[:1], len(cohort), axis=0))


HOPELESS: dict[str, tuple[Callable[[Correspondence], Correspondence], str]] = {
    **{f"unknown age {row}": (one_unknown_age(row), "no age") for row in (0, 14, 27, 44)},
    "empty": (empty, "0 subject"),
    "one subject": (lambda c: c.of_subjects(c.visits.subjects[:1]), "1 subject"),
    "constant t": (lambda c: with_t(c, np.full(len(c), 3.0)), "same age"),
    "all shapes equal": (all_equal, "all shapes are the same"),
}


@pytest.mark.parametrize("case", HOPELESS)
def test_a_cohort_that_cannot_teach_is_refused_politely(case: str) -> None:
    spoil, reason = HOPELESS[case]
    with pytest.raises(PrismError, match=reason) as caught:
        fit_tiny(spoil(tiny_cohort().correspondence))
    assert caught.value.remedy


@pytest.mark.parametrize("visits", [1, 6])
@pytest.mark.parametrize("members", [None, 1])
def test_three_subjects_are_enough(members: int | None, visits: int) -> None:
    cohort = tiny_cohort(visits=visits).correspondence
    cohort = cohort.of_subjects(cohort.visits.subjects[:3])
    model = fit_tiny(cohort, members=members, steps=30)
    assert np.isfinite(model.calibration.population).all()
    assert np.isfinite(intrinsic_time(model, cohort).tau).all()
    assert np.isfinite(predict_shape(model, cohort, np.array([0.5])).points).all()
    found = anomaly(model, cohort)
    assert np.isfinite(found.score).all()
    assert ((found.p_value >= 1 / (1 + len(cohort))) & (found.p_value <= 1)).all()


def test_a_point_seen_in_held_out_subjects_only_does_not_spoil_training() -> None:
    from prism.model.core import _held_out

    cohort = tiny_cohort().correspondence
    points = cohort.points.copy()
    unseen = _held_out(cohort, CONFIG, seed=0)[0]
    points[~np.isin(cohort.visits.subject, unseen), 5] = np.nan
    model = fit_tiny(replace(cohort, points=points))
    assert np.isfinite(model.mean_shapes(np.full((1, 24), 0.5))).all()


def test_no_training_age_counts_as_outside() -> None:
    model = fit_tiny(tiny_cohort().correspondence)
    inner = model.population
    ages = np.sort(np.random.default_rng(1).uniform(0, 100, (1000, 2)).round(1))
    short = ages[:, 0] + (ages[:, 1] - ages[:, 0]) < ages[:, 1]  # where rounding loses a bit
    assert short.any()
    for first, last in ages[short]:
        units = replace(inner.units, t_first=first, t_range=last - first)
        moved = replace(model, population=NeuralPopulation(inner.networks, units, inner.config))
        assert not moved.outside_ages(np.array([first, last])).any()


def test_a_cohort_without_repeat_visits_is_saved_and_loaded(tmp_path: Path) -> None:
    learned = fit_tiny(tiny_cohort(visits=1).correspondence)
    assert learned.calibration.forecast_pairs == 0
    learned.save(tmp_path / "model")
    loaded = PRISM.load(tmp_path / "model")
    assert np.array_equal(loaded.calibration.forecast_paper, learned.calibration.population)
    assert np.array_equal(loaded.calibration.forecast, interval_factors(np.empty((0, 24, 2))))


def test_few_repeat_visits_choose_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prism.model.forecasts.pointwise_share", lambda *_: 0.5)
    few, many = (fit_tiny(tiny_cohort(visits=v).correspondence, steps=30) for v in (2, 6))
    assert 0 < few.calibration.forecast_pairs < FEWEST_PAIRS <= many.calibration.forecast_pairs
    assert (few.calibration.pointwise, many.calibration.pointwise) == (0.0, 0.5)
