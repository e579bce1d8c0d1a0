"""Training of the population: isolated losses, two stages, a prior on curvature in time."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from prism.cohort import Correspondence
from prism.errors import FitError
from prism.gaussian import GaussianField
from prism.population.config import PopulationConfig
from prism.population.field import CovariateNetwork, FieldNetworks, NeuralPopulation, Units
from prism.population.lattice import TimeLattice
from prism.population.plain import PlainCourse
from prism.training import LoopConfig, Runtime, TrainingLog, choose_device, train

log = logging.getLogger(__name__)

HELD_OUT_EVALUATIONS = 65_536
CURVATURE_STEP, CURVATURE_LATTICE = 1 / 14, 18  # in normalised time, and where there is no lattice
CURVATURE_UNIT = 0.1
LEAST_PRIOR = 1e-4  # a weight below which a prior says nothing and costs a fifth of a step
FEWEST_SUBJECTS = 3
MOST_VALUES = 10_000_000


def masked_mean(value: Tensor, seen: Tensor) -> Tensor:
    """Mean over the entries that were observed."""
    return torch.where(seen, value, 0.0).sum() / seen.sum().clamp_min(1)


def mean_loss(d: Tensor, mu: Tensor, seen: Tensor) -> Tensor:
    """[Eq. L-mu] Mean over points of |d - mu|_1: trains a conditional median."""
    return masked_mean((d - mu).abs().sum(-1), seen)


def rounded_mean_loss(d: Tensor, mu: Tensor, corner: Tensor, seen: Tensor) -> Tensor:
    """[Eq. L-mu-round] |d - mu|_1 with its corner rounded over a width c: sqrt(c^2 + e^2) - c.

    Far out it is the paper's loss, blind to outliers; near zero it is quadratic, and averages
    where the median would throw away a third of a Gaussian sample.
    """
    return masked_mean((torch.hypot(d - mu, corner) - corner).sum(-1), seen)


def covariance_loss(d: Tensor, mu: Tensor, L: Tensor, seen: Tensor) -> Tensor:
    """[Eq. L-Sigma] Gaussian negative log-likelihood with mu held fixed: trains L alone."""
    return masked_mean(GaussianField(mu.detach(), L).nll(d), seen)


def curvature_penalty(values: Tensor, spacing: float) -> Tensor:
    """[Eq. curvature-prior] log(c^2 + E |mu_tt|^2): smooth growth, at no fixed scale.

    A Gaussian prior on curvature whose variance is learned: it holds a straight course straight
    and hardly touches one that truly bends. Its weight fades with the root of the subjects.

    Args:
        values: (k, m, c) of a network at equidistant times.
        spacing: Between these times, normalised; differences are taken over CURVATURE_STEP or so.
    """
    stride = max(1, round(CURVATURE_STEP / spacing))
    before, here, after = values[: -2 * stride], values[stride:-stride], values[2 * stride :]
    bend = (((before - 2 * here + after) / (stride * spacing) ** 2) ** 2).sum(-1).mean()
    return torch.log(CURVATURE_UNIT + bend)


class PopulationTask:
    """The cohort on the device, cut into batches of shapes times template points."""

    def __init__(
        self,
        networks: FieldNetworks,
        units: Units,
        config: PopulationConfig,
        fitting: Correspondence,
        held_out: Correspondence,
        seed: int,
        device: torch.device,
    ) -> None:
        """Normalise the data and move everything to the device."""
        self.network, self.config, self.seed = networks.to(device), config, seed
        self.branches = [
            list(networks.mean.parameters()),
            list(networks.cholesky.parameters()),
        ]
        self.p = units.points(torch.as_tensor(fitting.template)).to(device)
        self.data = _normalised(fitting, units, device)
        self.held = _thin(_normalised(held_out, units, device), len(self.p))
        self.leaning = config.weight_plain or 0.0
        plain = PlainCourse.of(fitting, units) if self.leaning else PlainCourse.none(*self.p.shape)
        self.plain = plain.table.to(device)
        self.subjects = len(fitting.visits.subjects)
        self.points = min(config.points, len(self.p))
        epoch = max(1, round(len(fitting) * len(self.p) / (config.shapes * self.points)))
        self.steps, self.lattice = config.schedule
        self.warm = min(config.warm_epochs * epoch, int(config.warm_share * self.steps))

    def batch(self, step: int) -> tuple[Tensor, ...]:
        """Draw everything random of a step, from the step's number alone.

        Returns:
            Template points p (m, n), times s (b,), displacements d (b, m, n), seen (b, m), the
            offset of the time lattice () and the plain course (k, m, n).
        """
        draw = torch.Generator().manual_seed(self.seed * 1_000_003 + step)
        d, seen, s = self.data
        shapes = torch.randint(len(d), (self.config.shapes,), generator=draw).to(d.device)
        offset = torch.rand((), generator=draw).to(d.device)
        if self.points == len(self.p):
            return self.p, s[shapes], d[shapes], seen[shapes], offset, self.plain
        points = torch.randperm(len(self.p), generator=draw)[: self.points].to(d.device)
        pick = shapes[:, None], points
        return self.p[points], s[shapes], d[pick], seen[pick], offset, self.plain[:, points]

    def stage(self, step: int) -> int:
        """[Eq. curriculum] Stage 1 trains mu alone; stage 2 adds the covariance's loss."""
        return 1 if step < self.warm else 2

    def loss(self, step: int, *batch: Tensor) -> Tensor:
        """L_mu + L_Sigma + their priors on curvature, each on its own branch of networks.

        The mean of a small cohort is also held against a plain course, see `PlainCourse`.
        """
        p, s, d, seen, offset, plain = batch
        lattice = TimeLattice.over(s, offset, self.lattice)
        course = lattice.values(self.network.mean, p)
        mu = lattice.read(course)
        weight = self.config.smoothness / math.sqrt(self.subjects)
        bend = self._bend(weight, self.network.mean, course, lattice, p)
        if self.stage(step) == 1:
            mean = mean_loss(d, mu, seen) + self._apart(course, None, plain, lattice)
            return self.config.weight_mean * mean + bend
        factors = lattice.values(self.network.cholesky, p)
        L = self.network.shape_factor(lattice.read(factors))
        spread = covariance_loss(d, mu, L, seen)
        mean = self._mean_loss(d, mu, L, seen) + self._apart(course, factors, plain, lattice)
        weight = self.config.smoothness_spread / len(self.data[0]) ** 2
        bend = bend + self._bend(weight, self.network.cholesky, factors, lattice, p)
        return self.config.weight_mean * mean + self.config.weight_covariance * spread + bend

    def _mean_loss(self, d: Tensor, mu: Tensor, L: Tensor, seen: Tensor) -> Tensor:
        if not self.config.mean_corner:
            return mean_loss(d, mu, seen)
        corner = self.config.mean_corner * GaussianField(mu, L).std.detach()
        return rounded_mean_loss(d, mu, corner, seen)

    def _apart(
        self, course: Tensor, factors: Tensor | None, plain: Tensor, lattice: TimeLattice
    ) -> Tensor:
        """[Eq. plain-course] The mean's loss of a plain course, at the lattice's times."""
        if not len(plain):
            return course.new_zeros(())
        expected, inside = PlainCourse(plain).at(lattice.times)
        if factors is None:
            return self.leaning * mean_loss(expected, course, inside)
        L = self.network.shape_factor(factors)
        return self.leaning * self._mean_loss(expected, course, L, inside)

    def _bend(
        self, weight: float, part: CovariateNetwork, course: Tensor, lattice: TimeLattice, p: Tensor
    ) -> Tensor:
        """The prior on the curvature in time of a part whose values at the lattice are given."""
        if weight < LEAST_PRIOR:
            return p.new_zeros(())
        if lattice.weights is None:  # these are the shapes' own times, in no order
            lattice = TimeLattice.over(lattice.times, p.new_zeros(()), CURVATURE_LATTICE)
            course = lattice.values(part, p)
        return weight * curvature_penalty(course, lattice.spacing)

    @torch.no_grad()
    def validate(self, step: int) -> float | None:
        """Held-out negative log-likelihood, once the covariance is being trained."""
        if step <= self.warm:
            return None
        d, seen, s = self.held
        total, count = 0.0, 0
        for rows in torch.arange(len(d)).split(max(1, 32_768 // len(self.p))):
            mu = self.network.mean(self.p, s[rows, None])
            L = self.network.factor(self.p, s[rows, None])
            part = torch.where(seen[rows], GaussianField(mu, L).nll(d[rows]), 0.0)
            total, count = total + float(part.sum()), count + int(seen[rows].sum())
        return total / max(count, 1)


def _normalised(
    cohort: Correspondence, units: Units, device: torch.device
) -> tuple[Tensor, Tensor, Tensor]:
    """Displacements (N, M, n) with zeros in the gaps, observed (N, M), times (N,)."""
    d = torch.as_tensor((cohort.displacements / units.displacement).astype(np.float32))
    seen = torch.as_tensor(cohort.observed)
    s = units.times(torch.as_tensor(cohort.visits.t))
    return d.nan_to_num(0.0).to(device), seen.to(device), s.to(device)


def _thin(data: tuple[Tensor, Tensor, Tensor], points: int) -> tuple[Tensor, Tensor, Tensor]:
    """Keep an even selection of held-out shapes, so that a check costs a few steps at most."""
    most = max(8, HELD_OUT_EVALUATIONS // points)
    keep = torch.linspace(0, len(data[2]) - 1, min(most, len(data[2]))).round().long()
    return data[0][keep], data[1][keep], data[2][keep]


def _representative(cohort: Correspondence) -> Correspondence:
    """Evenly chosen shapes, few enough to measure scales on without copying a large cohort."""
    most = max(64, MOST_VALUES // cohort.template.size)
    if len(cohort) <= most:
        return cohort
    return cohort[np.linspace(0, len(cohort) - 1, most).round().astype(int)]


def residual_spread(cohort: Correspondence) -> float:
    """Rms deviation of the shapes from a cubic in time at every point, in the length unit."""
    s = (cohort.visits.t - cohort.visits.t.mean()) / np.ptp(cohort.visits.t)
    degree = min(3, len(np.unique(s)) - 1)
    basis = np.polynomial.polynomial.polyvander(s, degree)
    d = cohort.displacements.reshape(len(cohort), -1)
    d = d[:, ~np.isnan(d).all(axis=0)]
    filled = np.where(np.isnan(d), np.nanmean(d, axis=0), d)
    residual = filled - basis @ np.linalg.lstsq(basis, filled, rcond=None)[0]
    return float(np.sqrt(np.mean(residual[~np.isnan(d)] ** 2)))


def noise_floor(cohort: Correspondence, config: PopulationConfig, spread: float) -> float:
    """Least standard deviation the model may claim, in the length unit.

    The floor is a modelling choice: the observation noise. Unless it is given, it is a small share
    of the shape's rms radius, and never more than a quarter of how much the shapes differ.
    """
    if config.noise_floor is not None:
        return config.noise_floor
    centred = cohort.template - cohort.template.mean(axis=0)
    radius = math.sqrt((centred**2).sum(-1).mean())
    share = config.floor_share * radius
    return min(share, 0.25 * spread) if spread > 0 else share


def check_trainable(cohort: Correspondence) -> None:
    """Refuse a cohort from which no population can be learned, and say why."""
    t = cohort.visits.t
    unknown = np.flatnonzero(np.isnan(t))
    if len(unknown):
        subject, visit = cohort.visits.subject[unknown[0]], cohort.visits.visit[unknown[0]]
        raise FitError(
            f"{len(unknown)} of {len(t)} visits have no age (column t), first subject {subject}, "
            f"visit {visit}.",
            "Training needs the age of every visit: fill it in, or leave these visits out.",
        )
    if len(cohort.visits.subjects) < FEWEST_SUBJECTS:
        raise FitError(
            f"cohort {cohort.name!r} has {len(cohort.visits.subjects)} subject(s) to learn from; "
            f"at least {FEWEST_SUBJECTS} are needed.",
            "Add subjects: a population cannot be learned from one or two.",
        )
    unseen = np.flatnonzero(~cohort.observed.any(axis=0))
    if len(unseen):
        raise FitError(
            f"point {unseen[0]} is missing in every shape to learn from ({len(unseen)} such).",
            "Remove the point from template, points and cells, or add shapes that have it.",
        )
    check_varied(cohort)


def check_varied(cohort: Correspondence) -> None:
    """Refuse shapes of one age, and shapes that are all the same."""
    t, d = cohort.visits.t, cohort.displacements
    if np.ptp(t) == 0:
        raise FitError(
            f"all {len(t)} visits have the same age, t = {t[0]:g}.",
            "Add visits at other ages: a trajectory needs at least two times.",
        )
    if not (np.fmax.reduce(d) > np.fmin.reduce(d)).any():
        raise FitError(
            "all shapes are the same.",
            "Check correspondence.npz: the points must differ between visits.",
        )


@dataclass(frozen=True)
class Scales:
    """What is measured on a cohort before training: units, residual spread and noise floor."""

    units: Units
    spread: float
    floor: float

    @classmethod
    def of(cls, cohort: Correspondence, config: PopulationConfig) -> Scales:
        """Measure a cohort."""
        some = _representative(cohort)
        spread = residual_spread(some)
        floor = noise_floor(cohort, config, spread)
        log.info("noise floor %.4g %s, residual spread %.4g", floor, cohort.length_unit, spread)
        return cls(Units.of(cohort.template, some.displacements, cohort.visits.t), spread, floor)


def fit_population(
    fitting: Correspondence,
    held_out: Correspondence,
    config: PopulationConfig,
    seed: int,
    runtime: Runtime,
    fingerprint: str = "",
    scales: Scales | None = None,
    phase: str = "population",
) -> tuple[NeuralPopulation, TrainingLog]:
    """Train the population on some subjects, with the likelihood of others as the judge.

    Args:
        fitting: Shapes to learn from.
        held_out: Shapes to judge by.
        config: Hyper-parameters, settled for the whole cohort.
        seed: Same seed, same population.
        runtime: Device, checkpoints, progress.
        fingerprint: Identifies data, config and seed.
        scales: Units, spread and floor; measured on `fitting` if not given.
        phase: Name shown in progress and used for the checkpoint.
    """
    check_varied(fitting)
    device = choose_device(runtime.device)
    some = _representative(fitting)
    scales = scales or Scales.of(fitting, config)
    units, spread, floor = scales.units, scales.spread, scales.floor
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        networks = FieldNetworks(fitting.dimension, config, floor / units.displacement)
        offset = np.nanmean(some.displacements, axis=(0, 1)) / units.displacement
        networks.start_at(torch.as_tensor(offset, dtype=torch.float32), spread / units.displacement)
    task = PopulationTask(networks, units, config, fitting, held_out, seed, device)
    loop = LoopConfig(task.steps, config.learning_rate, patience=config.patience)
    history = train(task, loop, phase, runtime, fingerprint)
    return NeuralPopulation(networks, units, config), history


def count_parameters(network: nn.Module) -> int:
    """Count trainable parameters."""
    return sum(p.numel() for p in network.parameters() if p.requires_grad)
