"""The amortised encoder g(p, d) -> tau: time of a point in one pass, no search."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from prism.intrinsic.table import TimeTable
from prism.nets import Siren
from prism.training import LoopConfig, Runtime, TrainingLog, choose_device, train
from prism.typing import Floats, Points, Shapes


@dataclass(frozen=True)
class EncoderConfig:
    """Hyper-parameters of the encoder."""

    width: int = field(default=128, metadata={"help": "units of a hidden layer"})
    hidden: int = field(default=3, metadata={"help": "hidden layers besides first and last"})
    omega: float = field(default=4.0, metadata={"help": "frequency of the first layer"})
    steps: int = field(default=1200, metadata={"help": "training steps"})
    batch: int = field(default=4096, metadata={"help": "triplets (p, d, tau) in a step"})
    learning_rate: float = field(default=4e-3, metadata={"help": "peak learning rate"})


@dataclass(frozen=True)
class EncoderScales:
    """Affine maps of the encoder's input and output, measured on the training triplets."""

    p_centre: tuple[float, ...]
    p_scale: float
    d_centre: tuple[float, ...]
    d_scale: float
    tau_first: float
    tau_range: float


class InverseEncoder:
    """g(p, d) -> tau, trained on triplets drawn from a population; user's units in and out."""

    def __init__(self, network: Siren, scales: EncoderScales, config: EncoderConfig) -> None:
        """Join the network with its scales."""
        self.network = network.eval().requires_grad_(False)
        self.scales, self.config = scales, config

    @classmethod
    def fit(
        cls,
        table: TimeTable,
        p: Points,
        span: tuple[float, float],
        noise: float,
        config: EncoderConfig,
        seed: int,
        runtime: Runtime | None = None,
        fingerprint: str = "",
    ) -> tuple[InverseEncoder, TrainingLog]:
        """Train on d ~ N(mu(p, tau), noise^2 1) with p on the template and tau over a span.

        Args:
            table: The population at the template points.
            p: (M, n) the template points.
            span: Times to draw from; beyond the data by a few temporal spreads.
            noise: Standard deviation of the displacement noise shown to the encoder.
            config: Hyper-parameters.
            seed: Same seed, same encoder.
            runtime: Device, checkpoints, progress.
            fingerprint: Identifies data, config and seed.
        """
        runtime = runtime or Runtime()
        n = p.shape[-1]
        scales = _measure(table, p, span)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = Siren(2 * n, 1, config.width, config.hidden, config.omega, omega_time=None)
        task = _EncoderTask(network, scales, table, p, span, noise, config, seed, runtime.device)
        loop = LoopConfig(config.steps, config.learning_rate)
        history = train(task, loop, "encoder", runtime, fingerprint)
        return cls(network, scales, config), history

    def __call__(self, p: Points, d: Shapes) -> Floats:
        """[Eq. encoder] tau (N, M) of displacements d (N, M, n) at points p (M, n)."""
        device = next(self.network.parameters()).device
        inputs = _inputs(self.scales, torch.as_tensor(p), torch.as_tensor(d)).to(device)
        with torch.inference_mode():
            s = torch.cat([self.network(part) for part in inputs.flatten(0, -2).split(1 << 17)])
        tau = self.scales.tau_first + self.scales.tau_range * s.double().cpu().numpy()
        return tau.reshape(d.shape[:-1])


def _inputs(scales: EncoderScales, p: Tensor, d: Tensor) -> Tensor:
    """Scaled (p, d), (N, M, 2n), single precision; NaN displacements stay NaN."""
    x = (p.double() - torch.tensor(scales.p_centre, dtype=torch.float64)) / scales.p_scale
    y = (d.double() - torch.tensor(scales.d_centre, dtype=torch.float64)) / scales.d_scale
    return torch.cat([x.expand_as(y), y], dim=-1).float()


def _measure(table: TimeTable, p: Points, span: tuple[float, float]) -> EncoderScales:
    t = torch.linspace(*span, 33, dtype=torch.float64)[:, None].expand(-1, table.points)
    mu = table.at(t)[0].mu.reshape(-1, table.knots.shape[-1])
    centre = p.mean(axis=0)
    return EncoderScales(
        p_centre=tuple(centre.tolist()),
        p_scale=float(np.abs(p - centre).max()) or 1.0,
        d_centre=tuple(mu.mean(0).tolist()),
        d_scale=float(mu.std(0).norm() / math.sqrt(table.knots.shape[-1])) or 1.0,
        tau_first=span[0],
        tau_range=span[1] - span[0],
    )


class _EncoderTask:
    """Fresh triplets at every step; nothing can be over-fitted, so nothing is held out."""

    def __init__(
        self,
        network: Siren,
        scales: EncoderScales,
        table: TimeTable,
        p: Points,
        span: tuple[float, float],
        noise: float,
        config: EncoderConfig,
        seed: int,
        device: str,
    ) -> None:
        self.device = choose_device(device)
        self.network = network.to(self.device)
        self.branches = [list(network.parameters())]
        self.scales, self.table, self.span, self.noise = scales, table, span, noise
        self.p = torch.as_tensor(p)
        self.config, self.seed = config, seed

    def batch(self, step: int) -> tuple[Tensor, ...]:
        draw = torch.Generator().manual_seed(self.seed * 1_000_003 + step)
        rows = max(1, self.config.batch // self.table.points)
        tau = torch.rand(rows, self.table.points, generator=draw, dtype=torch.float64)
        tau = self.span[0] + (self.span[1] - self.span[0]) * tau
        mu = self.table.at(tau)[0].mu
        d = mu + self.noise * torch.randn(mu.shape, generator=draw, dtype=torch.float64)
        s = (tau - self.scales.tau_first) / self.scales.tau_range
        return _inputs(self.scales, self.p, d).to(self.device), s.float().to(self.device)

    def loss(self, step: int, *batch: Tensor) -> Tensor:
        """[Eq. L-inv] Mean |g(p, d) - tau|."""
        inputs, s = batch
        return (self.network(inputs)[..., 0] - s).abs().mean()

    def stage(self, step: int) -> int:
        return 1

    def validate(self, step: int) -> float | None:
        return None
