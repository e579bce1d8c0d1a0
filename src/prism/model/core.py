"""PRISM, the finished object: population, encoder and calibration; fit, save, load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from prism.calibration import LEVELS
from prism.cohort import Correspondence, known_covariates, same_unit
from prism.covariation import Covariation
from prism.errors import FitError, ModelError, QueryError
from prism.fisher import spread_of
from prism.gaussian import GaussianField
from prism.intrinsic import EncoderConfig, InverseEncoder, TimeTable
from prism.model.calibrated import Calibration
from prism.population import (
    PRESETS,
    NeuralPopulation,
    PopulationConfig,
    Scales,
    check_trainable,
    fit_population,
)
from prism.runs import fingerprint, provenance
from prism.training import Progress, Runtime, TrainingLog, silent
from prism.typing import ArrayLike, Cells, Floats, Points, Shapes, Times

SEARCH_BEYOND = 0.5  # share of the training range searched beyond either end
ENCODER_PRESETS = {
    "fast": EncoderConfig(width=64, hidden=2, steps=400),
    "default": EncoderConfig(),
    "paper": EncoderConfig(width=384, hidden=6, steps=10_000, batch=65_536, learning_rate=5e-4),
}


@dataclass(frozen=True)
class PRISM:
    """A model of how a shape changes with age and how much healthy people differ.

    Made by `PRISM.fit` or `PRISM.load`; there is no unfitted state. Calling it answers the basic
    question: the law N(mu, Sigma) of displacement at template points p and times t.
    """

    population: NeuralPopulation
    encoder: InverseEncoder
    template: Points
    cells: Cells | None
    covariation: Covariation
    calibration: Calibration
    name: str = "cohort"
    time_unit: str = ""
    length_unit: str = ""
    provenance: dict[str, Any] = field(default_factory=dict)
    history: dict[str, TrainingLog] = field(default_factory=dict)
    regions: Mapping[str, np.ndarray] = field(default_factory=dict)

    @classmethod
    def fit(
        cls,
        correspondence: Correspondence,
        preset: str = "default",
        *,
        config: PopulationConfig | None = None,
        seed: int = 0,
        device: str = "auto",
        precision: str = "32-true",
        folder: Path | None = None,
        resume: bool = False,
        progress: Progress = silent,
    ) -> PRISM:
        """Learn a model from shapes in correspondence.

        Args:
            correspondence: The cohort; every visit needs a time.
            preset: "fast", "default" or "paper".
            config: Hyper-parameters of the population, in place of the preset's.
            seed: Same seed, same model, to the bit.
            device: "auto", "cpu" or "cuda".
            precision: Lightning Fabric's name of the training precision.
            folder: Where to keep checkpoints; None keeps none.
            resume: Continue from the checkpoints in `folder`.
            progress: Called with updates.
        """
        if preset not in PRESETS:
            raise FitError(
                f"preset must be one of {sorted(PRESETS)}. Got {preset!r}.", "Choose one of them."
            )
        runtime = Runtime(device, precision, folder, resume, progress)
        check_trainable(correspondence)
        size = len(correspondence.visits.subjects), len(correspondence)
        chosen = (config or PRESETS[preset]).settled(*size)
        facts = {"seed": seed, "preset": preset, "precision": precision, "config": _plain(chosen)}
        key = fingerprint(correspondence.fingerprint, correspondence.visits.subject, facts)
        population, held_out, logs = _fit_members(correspondence, chosen, seed, runtime, key)
        encoder, logs["encoder"] = _fit_encoder(
            population, correspondence.template, ENCODER_PRESETS[preset], seed, runtime, key
        )
        draft = cls(
            population,
            encoder,
            correspondence.template,
            correspondence.cells,
            Covariation.none(*correspondence.template.shape),
            Calibration.none(correspondence.template),
            correspondence.name,
            correspondence.time_unit,
            correspondence.length_unit,
            provenance(
                **facts,
                torch=torch.__version__,
                data=correspondence.fingerprint,
                subjects=len(correspondence.visits.subjects),
                shapes=len(correspondence),
                members=len(held_out),
                held_out_subjects=len({name for part in held_out for name in part}),
                covariates=known_covariates(correspondence.visits),
            ),
            logs,
            regions=correspondence.regions,
        )
        from prism.model.calibrate import calibrate

        covariation, calibration = calibrate(draft, correspondence, held_out)
        return replace(draft, covariation=covariation, calibration=calibration)

    def __call__(self, p: ArrayLike, t: ArrayLike) -> GaussianField:
        """Return the law of displacement at p (..., n) and t (...), user's units."""
        return self.population(torch.as_tensor(p), torch.as_tensor(t))

    def rate(self, p: ArrayLike, t: ArrayLike) -> tuple[GaussianField, Tensor, Tensor]:
        """The law with mu_t and L_t, by the networks' own tangent."""
        return self.population.rate(torch.as_tensor(p), torch.as_tensor(t))

    def mean_rate(self, p: ArrayLike, t: ArrayLike) -> tuple[GaussianField, Tensor]:
        """The law with mu_t."""
        return self.population.mean_rate(torch.as_tensor(p), torch.as_tensor(t))

    @property
    def device(self) -> torch.device:
        """Where the networks live."""
        return self.population.device

    @property
    def dimension(self) -> int:
        """Space dimension n."""
        return self.template.shape[-1]

    @property
    def subjects(self) -> int:
        """How many subjects the model was learned from."""
        return int(self.provenance["subjects"])

    @property
    def ages(self) -> tuple[float, float]:
        """First and last training time: where the model holds."""
        return self.population.units.t_first, self.population.units.t_last

    @cached_property
    def table(self) -> TimeTable:
        """The population at the template points, tabulated over the searched times."""
        return TimeTable.average(self.member_tables)

    @cached_property
    def member_tables(self) -> list[TimeTable]:
        """The same of every member of the population."""
        span = _search_span(self.population)
        return [TimeTable.of(each, self.template, span) for each in self.population.members]

    @property
    def judges(self) -> list[tuple[TimeTable, Covariation]]:
        """Who judges a new anatomy: populations and covariations learned without some subjects.

        The scores of those subjects are what it is compared with.
        """
        return self.judges_of(self.calibration.judges)

    def judges_of(self, hows: Sequence[Covariation]) -> list[tuple[TimeTable, Covariation]]:
        """Each covariation with the member of the population that has not seen those subjects."""
        tables = self.member_tables
        return [(tables[k * len(tables) // len(hows)], how) for k, how in enumerate(hows)]

    def spread(self, t: Times, table: TimeTable | None = None) -> Floats:
        """[Eq. sigma-tau-map] sigma_tau (N, M) at the template points, infinite where unreadable.

        A point whose sigma_tau exceeds the training range says nothing about time: infinite.
        By the table of one member, or of all.
        """
        info = (table or self.table).information(
            np.repeat(np.asarray(t)[:, None], len(self.template), 1)
        )
        sigma_tau = np.asarray(spread_of(info))
        return np.where(sigma_tau < self.population.units.t_range, sigma_tau, np.inf)

    def field_at(self, t: Times) -> GaussianField:
        """The population at the template points and times t (N,), as an (N, M) field."""
        times = torch.as_tensor(np.asarray(t, dtype=np.float64))[:, None]
        return self.table.at(times.expand(-1, len(self.template)))[0]

    def mean_shapes(self, tau: Floats) -> Shapes:
        """[Eq. y-1] Positions p + mu(p, tau) at the template, one time a shape and point (N, M)."""
        return self.template + self.table.at(torch.as_tensor(tau))[0].mu.numpy()

    def draw_shapes(self, t: float, count: int, seed: int = 0) -> Shapes:
        """Anatomies of people of age t, drawn from the model, (count, M, n); points co-vary."""
        field = self.field_at(np.array([float(t)]))
        Sigma, how = field.Sigma.numpy()[0], self.covariation
        drawn = self.calibration.texture.draw(how, Sigma, self.template, count, seed)
        return self.template + field.mu.numpy()[0] + drawn

    def displacements(self, cohort: Correspondence) -> Shapes:
        """Displacements of a cohort from this model's template, after checking that it fits."""
        if not len(cohort):
            raise QueryError(f"cohort {cohort.name!r} has no visits.", "Select at least one visit.")
        if cohort.dimension != self.dimension:
            raise ModelError(
                f"cohort {cohort.name!r} is {cohort.dimension}D, the model is {self.dimension}D.",
                "Use a model trained on shapes of the same dimension.",
            )
        if cohort.points.shape[1] != len(self.template):
            raise ModelError(
                f"cohort {cohort.name!r} has {cohort.points.shape[1]} points a shape, "
                f"the model {len(self.template)}.",
                "Bring the cohort into correspondence with the model's template first.",
            )
        self._check_unit("time", self.time_unit, cohort.time_unit, cohort.name)
        self._check_unit("length", self.length_unit, cohort.length_unit, cohort.name)
        return cohort.points - self.template

    @staticmethod
    def _check_unit(kind: str, own: str, other: str, cohort: str) -> None:
        if own and other and not same_unit(own, other):
            raise ModelError(
                f"cohort {cohort!r} measures {kind} in {other}, the model in {own}.",
                f"Write the cohort's {kind}s in {own}, and say so in cohort.toml.",
            )

    def outside_ages(self, t: Times) -> np.ndarray:
        """True where a time lies outside the training ages."""
        first, last = self.ages
        slack = 1e-9 * (last - first)  # first + range may round to just below the last age
        return (t < first - slack) | (t > last + slack)

    def interval_factor(self, kind: str, level: float) -> Floats:
        """(M, n) factors of a nominal level: "population", "forecast" or "forecast_paper"."""
        if level not in LEVELS:
            raise QueryError(f"level must be one of {LEVELS}. Got {level}.", "Choose one of them.")
        return getattr(self.calibration, kind)[LEVELS.index(level)]

    def save(self, path: str | Path) -> None:
        """Write the model folder: TOML, safetensors, provenance and a model card."""
        from prism.model.files import save_model

        save_model(self, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> PRISM:
        """Read a model folder; runs no code from it."""
        from prism.model.files import load_model

        return load_model(Path(path))


def _fit_members(
    cohort: Correspondence, config: PopulationConfig, seed: int, runtime: Runtime, key: str
) -> tuple[NeuralPopulation, list[list[str]], dict[str, TrainingLog]]:
    """The population, the subjects each member has not seen, and how training went."""
    held_out = _held_out(cohort, config, seed)
    scales = Scales.of(cohort, config)
    members, logs = [], {}
    for k, names in enumerate(held_out):
        phase = "population" if len(held_out) == 1 else f"population-{k + 1}"
        unseen = np.isin(cohort.visits.subject, names)
        member, logs[phase] = fit_population(
            cohort[~unseen], cohort[unseen], config, seed + k, runtime, key, scales, phase
        )
        member.networks.cpu()
        members.append(member)
    return NeuralPopulation.average(members), held_out, logs


def _held_out(cohort: Correspondence, config: PopulationConfig, seed: int) -> list[list[str]]:
    """Subjects kept from each member: all in turn, or one part where there is one member."""
    subjects = cohort.visits.subjects
    members = config.members_for(len(subjects))
    order = np.random.default_rng(seed).permutation(len(subjects))
    if members > 1:
        return [[subjects[i] for i in order[k::members]] for k in range(members)]
    share = max(config.held_out, min(0.25, 16 / len(subjects)))
    return [[subjects[i] for i in order[: max(1, round(share * len(subjects)))]]]


def _search_span(population: NeuralPopulation) -> tuple[float, float]:
    units = population.units
    beyond = SEARCH_BEYOND * units.t_range
    return units.t_first - beyond, units.t_last + beyond


def _fit_encoder(
    population: NeuralPopulation,
    template: Points,
    config: EncoderConfig,
    seed: int,
    runtime: Runtime,
    key: str,
) -> tuple[InverseEncoder, TrainingLog]:
    """Train g over the training times and three temporal spreads beyond either end."""
    table = TimeTable.of(population, template, _search_span(population))
    units = population.units
    ends = []
    for t in (units.t_first, units.t_last):
        sigma_tau = np.asarray(spread_of(table.information(np.full((1, len(template)), t))))
        ends.append(min(3 * float(np.quantile(sigma_tau, 0.25)), SEARCH_BEYOND * units.t_range))
    span = units.t_first - ends[0], units.t_last + ends[1]
    encoder, log = InverseEncoder.fit(
        table, template, span, population.floor, config, seed, runtime, key
    )
    encoder.network.cpu()
    return encoder, log


def _plain(config: PopulationConfig) -> dict[str, Any]:
    return {k: v for k, v in vars(config).items() if v is not None}
