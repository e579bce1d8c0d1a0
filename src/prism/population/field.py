"""The neural population: four coordinate networks and the units they live in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from prism.gaussian import GaussianField, add_noise, diagonal_indices, packed_size
from prism.nets import Siren
from prism.population.config import PopulationConfig


@dataclass(frozen=True)
class Units:
    """The map between the user's units and the networks' own.

    One centre and scale for space (never per shape: size is the signal), one scale for
    displacement, and the training times mapped to [0, 1].
    """

    centre: tuple[float, ...]
    scale: float
    displacement: float
    t_first: float
    t_range: float

    def points(self, p: Tensor) -> Tensor:
        """Template points to the networks' space, in single precision."""
        centre = torch.tensor(self.centre, dtype=torch.float64, device=p.device)
        return ((p.double() - centre) / self.scale).float()

    def times(self, t: Tensor) -> Tensor:
        """Times to [0, 1] over the training range, in single precision."""
        return ((t.double() - self.t_first) / self.t_range).float()

    @property
    def t_last(self) -> float:
        """End of the training times."""
        return self.t_first + self.t_range

    @classmethod
    def of(cls, template: np.ndarray, displacements: np.ndarray, t: np.ndarray) -> Units:
        """Measure the units of a training set; displacements (N, M, n) may hold NaN."""
        centre = template.mean(axis=0)
        scale = np.abs(template - centre).max()
        seen = ~np.isnan(displacements).all(axis=(0, 2))
        spread = np.nanstd(displacements[:, seen], axis=0)
        return cls(
            centre=tuple(float(c) for c in centre),
            scale=float(scale) if scale > 0 else 1.0,
            displacement=float(np.sqrt(np.mean(spread**2))),
            t_first=float(t.min()),
            t_range=float(np.ptp(t)),
        )


class CovariateNetwork(nn.Module):
    """[f(p, t) - f(p, 0)] + h(p): a covariate-driven and a covariate-independent network."""

    def __init__(self, n: int, out: int, config: PopulationConfig) -> None:
        """Build f and h of the configured size; its temporal frequency must be settled."""
        super().__init__()
        if config.omega_time is None:
            raise ValueError("settle the configuration for a cohort first")
        size = (config.width, config.hidden, config.omega_space)
        self.f = Siren(n, out, *size, omega_time=config.omega_time)
        self.h = Siren(n, out, *size, omega_time=None)

    def driven(self, p: Tensor, s: Tensor) -> Tensor:
        """f(p, s) - f(p, 0), with f(p, 0) evaluated once a template point."""
        return self.f(p, s) - self.f(p, s.new_zeros(()))

    def forward_and_rate(self, p: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
        """Value and derivative in s; only f(p, s) moves."""
        moving, rate = self.f.forward_and_rate(p, s)
        return moving - self.f(p, s.new_zeros(())) + self.h(p), rate

    def forward(self, p: Tensor, s: Tensor) -> Tensor:
        """[Eq. covariate-network] Value at points p (..., n) and normalised times s (...)."""
        return self.driven(p, s) + self.h(p)


class FieldNetworks(nn.Module):
    """mu and L of the normalised field: four separate networks, so that losses stay isolated."""

    diagonal: Tensor

    def __init__(self, n: int, config: PopulationConfig, floor: float) -> None:
        """Build the networks; `floor` is the noise's share of the spread, in displacement units."""
        super().__init__()
        self.n, self.floor = n, floor
        self.mean = CovariateNetwork(n, n, config)
        self.cholesky = CovariateNetwork(n, packed_size(n), config)
        diagonal = torch.zeros(packed_size(n), dtype=torch.bool)
        diagonal[diagonal_indices(n)] = True
        self.register_buffer("diagonal", diagonal, persistent=False)

    def start_at(self, mean: Tensor, spread: float) -> None:
        """Begin with a constant mean and the empirical spread on the diagonal of L."""
        self.mean.h.silence(mean)
        raw = float(np.log(np.expm1(max(spread, 1e-3))))
        self.cholesky.h.silence(torch.where(self.diagonal, raw, 0.0))

    def factor(self, p: Tensor, s: Tensor) -> Tensor:
        """Packed L at points p (..., n) and normalised times s (...)."""
        return self.shape_factor(self.cholesky(p, s))

    def shape_factor(self, raw: Tensor) -> Tensor:
        """[Eq. cholesky] Raw output to packed L: softplus on the diagonal, then the noise floor.

        The floor is noise in every direction. Added to the diagonal of L alone it would let a
        direction in which people hardly differ pass for a large spread of the others.
        """
        own = torch.where(self.diagonal, nn.functional.softplus(raw), raw)
        return add_noise(own, self.floor, self.n)

    def factor_and_rate(self, p: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
        """Packed L and its derivative in s."""
        raw, rate = self.cholesky.forward_and_rate(p, s)
        return torch.func.jvp(self.shape_factor, (raw,), (rate,))  # type: ignore[return-value]


class EnsembleMean(nn.Module):
    """The average of several means."""

    def __init__(self, members: list[FieldNetworks]) -> None:
        """Average the means of these members."""
        super().__init__()
        self.means = nn.ModuleList([member.mean for member in members])

    def forward(self, p: Tensor, s: Tensor) -> Tensor:
        """Average value."""
        return torch.stack([mean(p, s) for mean in self.means]).mean(0)

    def forward_and_rate(self, p: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
        """Average value and derivative in s."""
        return _average([mean.forward_and_rate(p, s) for mean in self.means])  # type: ignore[operator]


class FieldEnsemble(nn.Module):
    """The average field of several networks, each trained without some of the subjects.

    Small cohorts need it twice: the average is steadier than any member, and every subject has a
    member that has not seen it.
    """

    def __init__(self, members: list[FieldNetworks]) -> None:
        """Join members of one size and floor."""
        super().__init__()
        self.members = nn.ModuleList(members)
        self.n, self.floor = members[0].n, members[0].floor

    @property
    def mean(self) -> EnsembleMean:
        """The average mean."""
        return EnsembleMean(list(self.members))  # type: ignore[arg-type]

    def factor(self, p: Tensor, s: Tensor) -> Tensor:
        """Average packed L."""
        return torch.stack([member.factor(p, s) for member in self.members]).mean(0)  # type: ignore[operator]

    def factor_and_rate(self, p: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
        """Average packed L and its derivative in s."""
        return _average([member.factor_and_rate(p, s) for member in self.members])  # type: ignore[operator]


def _average(pairs: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    values, rates = zip(*pairs, strict=True)
    return torch.stack(values).mean(0), torch.stack(rates).mean(0)


class NeuralPopulation:
    """A trained population, a `Population` in the user's units.

    Inside the training times the field is what the networks say. Outside, the mean runs on along
    its tangent at the nearer end and the covariance stays as it is there: networks of sines are
    not to be trusted beyond their data.
    """

    def __init__(
        self, networks: FieldNetworks | FieldEnsemble, units: Units, config: PopulationConfig
    ) -> None:
        """Join trained networks with their units; their weights are frozen from here on."""
        self.networks = networks.eval().requires_grad_(False)
        self.units, self.config = units, config

    @classmethod
    def average(cls, members: list[NeuralPopulation]) -> NeuralPopulation:
        """One population of several that share units; a single one stays as it is."""
        first = members[0]
        if len(members) == 1:
            return first
        networks = FieldEnsemble([member.networks for member in members])  # type: ignore[misc]
        return cls(networks, first.units, first.config)

    @property
    def members(self) -> list[NeuralPopulation]:
        """The populations this one is the average of."""
        if isinstance(self.networks, FieldNetworks):
            return [self]
        return [NeuralPopulation(m, self.units, self.config) for m in self.networks.members]  # type: ignore[arg-type]

    @property
    def device(self) -> torch.device:
        """Where the networks live."""
        return next(self.networks.parameters()).device

    @property
    def floor(self) -> float:
        """Noise floor in the user's length unit."""
        return self.networks.floor * self.units.displacement

    def __call__(self, p: Tensor, t: Tensor) -> GaussianField:
        """Return the law of displacement at p (..., n) and t (...), user's units."""
        x, s = self.units.points(p), self.units.times(t)
        inside = s.clamp(0.0, 1.0)
        mu, L = self._mean(x, s, inside), self.networks.factor(x, inside)
        scale = self.units.displacement
        return GaussianField((scale * mu).to(p.dtype), (scale * L).to(p.dtype))

    def _mean(self, x: Tensor, s: Tensor, inside: Tensor) -> Tensor:
        beyond = s - inside
        if not bool((beyond != 0).any()):
            return self.networks.mean(x, inside)
        mu, rate = self.networks.mean.forward_and_rate(x, inside)
        return mu + beyond[..., None] * rate

    def mean_rate(self, p: Tensor, t: Tensor) -> tuple[GaussianField, Tensor]:
        """The law and mu_t, with the tangent of the mean alone: what I_mu needs."""
        x, s = self.units.points(p), self.units.times(t)
        mu, mu_t = self._moving_mean(x, s)
        L = self.units.displacement * self.networks.factor(x, s.clamp(0.0, 1.0))
        return GaussianField(mu.to(p.dtype), L.to(p.dtype)), mu_t.to(p.dtype)

    def rate(self, p: Tensor, t: Tensor) -> tuple[GaussianField, Tensor, Tensor]:
        """The law, mu_t and L_t; L stands still outside the training times."""
        x, s = self.units.points(p), self.units.times(t)
        inside, scale = s.clamp(0.0, 1.0), self.units.displacement
        mu, mu_t = self._moving_mean(x, s)
        L, L_s = self.networks.factor_and_rate(x, inside)
        L_t = torch.where((s == inside)[..., None], L_s * (scale / self.units.t_range), 0.0)
        field = GaussianField(mu.to(p.dtype), (scale * L).to(p.dtype))
        return field, mu_t.to(p.dtype), L_t.to(p.dtype).expand(field.L.shape)

    def _moving_mean(self, x: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
        """Mu and mu_t at normalised points and times; outside, mu runs on along its tangent."""
        inside = s.clamp(0.0, 1.0)
        mu, rate = self.networks.mean.forward_and_rate(x, inside)
        mu = mu + (s - inside)[..., None] * rate
        pace = self.units.displacement / self.units.t_range
        return self.units.displacement * mu, pace * rate
