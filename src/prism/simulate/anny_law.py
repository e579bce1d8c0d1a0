"""The exact population of an ANNY cohort: moments of a body that grows along broken lines."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from prism.errors import QueryError
from prism.simulate.anny_bodies import Bodies
from prism.simulate.clock import LogisticSpread
from prism.typing import Points, Shapes, Times

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from prism.gaussian import GaussianField

SPREAD = LogisticSpread(0.4, 1.3, 8.0, 2.0)  # years
TEMPLATE_AGE = 10.0
CLOSEST = 1e-4  # metres: a point further from the template's points is none of them


@dataclass(frozen=True)
class AnnyLaw:
    """The population of an ANNY cohort, a `Population` at the points of its template.

    d = m(tau) - p + noise with tau = t + z sigma(t) and m piecewise linear: a body is
    m(k_0) + sum_i c_i f_i(tau), with hinges f_0 = tau - k_0, f_i = max(tau - k_i, 0) and c_i the
    change of growth at the knot k_i. mu and Sigma are the exact moments of that sum. Away from
    the knots mu = m(t) - p and Sigma = sigma^2 m' m'' + noise^2 1; near one, where people stand on
    both sides of it, mu rounds the corner. Points are looked up outside of torch, so that time is
    differentiated by the law's own `rate`, not from outside by forward mode.

    Attributes:
        bodies: m(tau) by `bodies.at`, its exact tangent dm/dtau by `bodies.rate`.
        noise: Standard deviation of the noise on every coordinate, in metres.
    """

    bodies: Bodies
    noise: float

    @cached_property
    def template(self) -> Points:
        """(M, 3) the body of 10 years."""
        return self.bodies.at(TEMPLATE_AGE)

    def __call__(self, p: Tensor, t: Tensor) -> GaussianField:
        """Return N(mu, Sigma) at template points p (..., 3) and times t (...)."""
        return self._field(*self._hinges(p), t, p.dtype)

    def rate(self, p: Tensor, t: Tensor) -> tuple[GaussianField, Tensor, Tensor]:
        """The law with mu_t and L_t, by forward mode over time once p is known."""
        import torch

        from prism.gaussian import GaussianField

        def at(time: Tensor) -> tuple[Tensor, Tensor]:
            field = self._field(start, turns, time, p.dtype)
            return field.mu, field.L

        start, turns = self._hinges(p)
        (mu, L), (mu_t, L_t) = torch.func.jvp(at, (t,), (torch.ones_like(t),))[:2]
        return GaussianField(mu, L), mu_t, L_t

    def mean_rate(self, p: Tensor, t: Tensor) -> tuple[GaussianField, Tensor]:
        """The law with its own tangent mu_t = sum_i c_i d/dt E f_i."""
        start, turns = self._hinges(p)
        rates = hinge_rates(t.double(), SPREAD, self._knots(t))
        mu_t = (rates[..., None] * turns).sum(-2)
        return self._field(start, turns, t, p.dtype), mu_t.to(p.dtype)

    def _field(self, start: Tensor, turns: Tensor, t: Tensor, dtype: torch.dtype) -> GaussianField:
        """The law from m(k_0) - p (..., 3) and the c_i (..., F, 3), in double precision inside."""
        import torch

        from prism.gaussian import GaussianField

        first, second = hinge_moments(t.double(), SPREAD, self._knots(t))
        mu = start + (first[..., None] * turns).sum(-2)
        Sigma = turns.mT @ second @ turns + self.noise**2 * torch.eye(3).to(turns)
        exact = GaussianField.from_covariance(mu, Sigma)
        return GaussianField(exact.mu.to(dtype), exact.L.to(dtype))

    def mean(self, t: Times) -> Shapes:
        """True mean shapes E m(tau) of the population at ages t (T,), (T, M, 3)."""
        import torch

        first, _ = hinge_moments(torch.as_tensor(t).double(), SPREAD, torch.tensor(self._joints))
        start, turns = self._start_and_turns
        return self.template + start + np.einsum("ti,mik->tmk", first.numpy(), turns)

    @property
    def _joints(self) -> Times:
        """Knots where growth starts or turns: all but the last."""
        return self.bodies.knots[:-1]

    @cached_property
    def _start_and_turns(self) -> tuple[Points, Shapes]:
        """m(k_0) - p (M, 3) and the c_i of every point (M, F, 3)."""
        slopes = self.bodies.rate(self._joints)
        turns = np.diff(slopes, axis=0, prepend=0 * slopes[:1])
        return self.bodies.keys[0] - self.template, np.ascontiguousarray(turns.swapaxes(0, 1))

    def _knots(self, like: Tensor) -> Tensor:
        import torch

        return torch.tensor(self._joints, device=like.device)

    def _hinges(self, p: Tensor) -> tuple[Tensor, Tensor]:
        """m(k_0) - p (..., 3) and the c_i (..., F, 3) at points p (..., 3) of the template."""
        import torch

        far, number = self._tree.query(np.asarray(p.cpu() if p.is_cuda else p))
        if np.max(far, initial=0.0) > CLOSEST:
            raise QueryError(
                f"the law of ANNY holds at the template's points. Got one {np.max(far):.3g} m off.",
                "Ask at points of study.correspondence.template.",
            )
        start, turns = (torch.tensor(table[number]) for table in self._start_and_turns)
        return start.to(p.device), turns.to(p.device)

    @cached_property
    def _tree(self) -> Any:
        from scipy.spatial import KDTree

        return KDTree(self.template)


def hinge_moments(t: Tensor, spread: LogisticSpread, knots: Tensor) -> tuple[Tensor, Tensor]:
    """[Eq. hinge-moments] Mean (..., F) and covariance (..., F, F) of hinges at knots k_0 < k_1 ...

    With tau ~ N(t, s^2), u = (t - k) / s and the normal law's phi, Phi:
    E f_k = s phi + (t - k) Phi, E f_k^2 = (s^2 + (t - k)^2) Phi + (t - k) s phi, and for j < k
    E f_j f_k = E f_k^2 + (k - j) E f_k. The first hinge is the whole line: phi = 0, Phi = 1.
    """
    import torch

    s = torch.as_tensor(spread(t))[..., None]
    ahead = t[..., None] - knots
    phi, Phi = _normal_law(ahead / s)
    mean = s * phi + ahead * Phi
    square = (s**2 + ahead**2) * Phi + ahead * s * phi
    later = torch.maximum(*torch.meshgrid(*2 * [torch.arange(len(knots))], indexing="ij"))
    gap = (knots[:, None] - knots).abs()
    return mean, square[..., later] + gap * mean[..., later] - mean[..., None] * mean[..., None, :]


def hinge_rates(t: Tensor, spread: LogisticSpread, knots: Tensor) -> Tensor:
    """d/dt E f_k = Phi + s' phi, (..., F)."""
    import torch

    s = torch.as_tensor(spread(t))[..., None]
    rise = (s - spread.low) / (spread.high - spread.low)
    phi, Phi = _normal_law((t[..., None] - knots) / s)
    return Phi + (spread.high - spread.low) * rise * (1 - rise) / spread.width * phi


def _normal_law(u: Tensor) -> tuple[Tensor, Tensor]:
    """Density and distribution function at u (..., F); 0 and 1 for the first, unbroken hinge."""
    import torch

    broken = (torch.arange(u.shape[-1], device=u.device) > 0).to(u)
    phi = torch.exp(-(u**2) / 2) / (2 * np.pi) ** 0.5
    return phi * broken, 1 - broken * (1 - torch.special.ndtr(u))
