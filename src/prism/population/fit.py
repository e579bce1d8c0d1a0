"""Training of the population: isolated losses, two stages, a prior on curvature in time."""

from __future__ import annotations

import logging
import math

import numpy as np
import torch
from torch import Tensor, nn

from prism.cohort import Correspondence
from prism.errors import FitError
from prism.gaussian import GaussianField
from prism.population.config import PopulationConfig
from prism.population.field import FieldNetworks, NeuralPopulation, Units
from prism.training import LoopConfig, Runtime, TrainingLog, choose_device, train

log = logging.getLogger(__name__)

POINTS_A_STEP = 512
HELD_OUT_EVALUATIONS = 65_536
CURVATURE_TIMES, CURVATURE_POINTS, CURVATURE_STEP = 8, 64, 0.06
CURVATURE_UNIT = 0.1


def masked_mean(value: Tensor, seen: Tensor) -> Tensor:
    """Mean over the entries that were observed."""
    return torch.where(seen, value, 0.0).sum() / seen.sum().clamp_min(1)


def mean_loss(d: Tensor, mu: Tensor, seen: Tensor) -> Tensor:
    """[Eq. L-mu] Mean over points of |d - mu|_1: trains a conditional median."""
    return masked_mean((d - mu).abs().sum(-1), seen)


def covariance_loss(d: Tensor, mu: Tensor, L: Tensor, seen: Tensor) -> Tensor:
    """[Eq. L-Sigma] Gaussian negative log-likelihood with mu held fixed: trains L alone."""
    return masked_mean(GaussianField(mu.detach(), L).nll(d), seen)


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
        self.subjects = len(fitting.visits.subjects)
        self.points = min(POINTS_A_STEP, len(self.p))
        self.shapes = max(1, config.batch // self.points)
        epoch = max(1, round(len(fitting) * len(self.p) / (self.shapes * self.points)))
        self.warm = min(config.warm_epochs * epoch, int(config.warm_share * config.steps))

    def batch(self, step: int) -> tuple[Tensor, ...]:
        """Draw shapes and template points: p (m, n), s (b, 1), d (b, m, n), seen (b, m)."""
        draw = torch.Generator().manual_seed(self.seed * 1_000_003 + step)
        d, seen, s = self.data
        shapes = torch.randint(len(d), (self.shapes,), generator=draw).to(d.device)
        if self.points == len(self.p):
            return self.p, s[shapes, None], d[shapes], seen[shapes]
        points = torch.randperm(len(self.p), generator=draw)[: self.points].to(d.device)
        pick = shapes[:, None], points
        return self.p[points], s[shapes, None], d[pick], seen[pick]

    def loss(self, step: int, *batch: Tensor) -> Tensor:
        """[Eq. curriculum] Stage 1 trains mu alone; stage 2 adds the covariance's loss."""
        p, s, d, seen = batch
        mu = self.network.mean(p, s)
        loss = self.config.weight_mean * mean_loss(d, mu, seen) + self._curvature_prior(step)
        if step < self.warm:
            return loss
        L = self.network.factor(p, s)
        return loss + self.config.weight_covariance * covariance_loss(d, mu, L, seen)

    def _curvature_prior(self, step: int) -> Tensor:
        """[Eq. curvature-prior] k/N log(c^2 + E |mu_tt|^2): smooth growth, at no fixed scale.

        A Gaussian prior on curvature whose variance is learned: it holds a straight course
        straight and hardly touches one that truly bends. Its weight fades with the subjects N.
        """
        if self.config.smoothness == 0:
            return self.p.new_zeros(())
        draw = torch.Generator().manual_seed(self.seed * 1_000_003 + step + 500_001)
        s = torch.rand(CURVATURE_TIMES, 1, generator=draw).to(self.p)
        points = torch.randperm(len(self.p), generator=draw)[:CURVATURE_POINTS].to(self.p.device)
        h = CURVATURE_STEP
        three = self.network.mean.f(self.p[points], torch.cat([s - h, s, s + h]))
        before, here, after = three.chunk(3)
        bend = (((before - 2 * here + after) / h**2) ** 2).sum(-1).mean()
        weight = self.config.smoothness / self.subjects
        return weight * torch.log(CURVATURE_UNIT + bend)

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


def residual_spread(cohort: Correspondence) -> float:
    """Rms deviation of the shapes from a cubic in time at every point, in the length unit."""
    s = (cohort.visits.t - cohort.visits.t.mean()) / np.ptp(cohort.visits.t)
    degree = min(3, len(np.unique(s)) - 1)
    basis = np.polynomial.polynomial.polyvander(s, degree)
    d = cohort.displacements.reshape(len(cohort), -1)
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
    """Refuse a cohort from which no trajectory can be learned, and say why."""
    t = cohort.visits.t
    if np.isnan(t).any():
        row = int(np.flatnonzero(np.isnan(t))[0])
        raise FitError(
            f"visits.csv row {row + 2} (subject {cohort.visits.subject[row]}, visit "
            f"{cohort.visits.visit[row]}) has no time.",
            "Training needs the time of every visit: fill it in, or leave this visit out.",
        )
    if len(cohort.visits.subjects) < 3:
        raise FitError(
            f"cohort {cohort.name!r} has {len(cohort.visits.subjects)} subject(s); "
            "at least 3 are needed.",
            "Add subjects: a population cannot be learned from one or two.",
        )
    if np.ptp(t) == 0:
        raise FitError(
            f"all {len(t)} visits have the same time, t = {t[0]:g}.",
            "Add visits at other ages: a trajectory needs at least two times.",
        )
    if not (np.nanstd(cohort.displacements, axis=0) > 0).any():
        raise FitError(
            "all shapes are the same.",
            "Check correspondence.npz: the points must differ between visits.",
        )


def fit_population(
    fitting: Correspondence,
    held_out: Correspondence,
    config: PopulationConfig,
    seed: int,
    runtime: Runtime,
    fingerprint: str = "",
) -> tuple[NeuralPopulation, TrainingLog]:
    """Train the population on some subjects, with the likelihood of others as the judge."""
    check_trainable(fitting)
    device = choose_device(runtime.device)
    units = Units.of(fitting.template, fitting.displacements, fitting.visits.t)
    spread = residual_spread(fitting)
    floor = noise_floor(fitting, config, spread)
    log.info("noise floor %.4g %s, residual spread %.4g", floor, fitting.length_unit, spread)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        networks = FieldNetworks(fitting.dimension, config, floor / units.displacement)
        offset = np.nanmean(fitting.displacements, axis=(0, 1)) / units.displacement
        networks.start_at(torch.as_tensor(offset, dtype=torch.float32), spread / units.displacement)
    task = PopulationTask(networks, units, config, fitting, held_out, seed, device)
    loop = LoopConfig(config.steps, config.learning_rate, patience=config.patience)
    history = train(task, loop, "population", runtime, fingerprint)
    return NeuralPopulation(networks, units, config), history


def count_parameters(network: nn.Module) -> int:
    """Count trainable parameters."""
    return sum(p.numel() for p in network.parameters() if p.requires_grad)
