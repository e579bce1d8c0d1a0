"""Tubes: airway-like surfaces that lengthen and widen, among people who differ for other reasons.

With sizes g_L (length) and g_R (radius) of intrinsic time tau, lasting amplitudes a_j of a
subject and a_0 = 1, a point of the tube is y = sum_k g_k(tau) sum_j a_j B_jk(p). Everything that
follows - shapes, mean, covariance - is read off the one array B of `basis`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from prism.cohort import Correspondence, Truth
from prism.simulate._door import require
from prism.simulate.clock import LogisticSpread, draw_visits, intrinsic_time, visits_table
from prism.simulate.study import Study
from prism.typing import ArrayLike, Cells, Floats, Points, Times

if TYPE_CHECKING:
    from torch import Tensor

    from prism.gaussian import GaussianField

AGES = (1.0, 200.0)  # months
SPREAD = LogisticSpread(2.0, 16.0, 100.0, 30.0)  # months
REGIONS = ("upper", "lower")
THIRDS = ("lower", "middle", "upper")
_PLACES = (0.85, 0.15)  # of the regions' landmarks along the tube, from its lower end
_REFERENCE_AGE = 100.0  # of the template
PROFILE = range(1, 13)  # half waves along the tube of the random radius profile
# Standard deviations of the amplitudes a_1, a_2, ...: none of them has to do with age.
TRAITS = {
    "bend-x": 0.08, "bend-y": 0.05, "length": 0.06, "width": 0.12, "taper": 0.08,
    "oval-x": 0.05, "oval-xy": 0.05, **{f"profile-{k}": 0.06 / k for k in PROFILE},
}  # fmt: skip
DEPTH, REACH, PLACE = (0.15, 0.35), (0.03, 0.08), (0.15, 0.85)  # of a narrowing


@dataclass(frozen=True)
class Growth:
    """A size that grows ever more slowly, g(tau) = final - gain exp(-rate tau).

    At an age t, tau ~ N(t, sigma^2); the moments of g are then known exactly. Arrays and tensors.
    """

    final: float
    gain: float
    rate: float

    def __call__(self, tau: ArrayLike) -> ArrayLike:
        """Size at intrinsic time tau, (...)."""
        return self.final - self.gain * np.e ** (-self.rate * tau)

    def mean(self, t: ArrayLike, sigma: ArrayLike) -> ArrayLike:
        """E g = final - gain exp(-rate t + rate^2 sigma^2 / 2), (...)."""
        return self.final - self.gain * np.e ** (-self.rate * t + (self.rate * sigma) ** 2 / 2)

    def covariance(self, other: Growth, t: ArrayLike, sigma: ArrayLike) -> ArrayLike:
        """Cov(g, h) = (final_g - E g) (final_h - E h) (exp(rate_g rate_h sigma^2) - 1), (...)."""
        together = np.e ** (self.rate * other.rate * sigma**2) - 1
        return (self.final - self.mean(t, sigma)) * (other.final - other.mean(t, sigma)) * together


LENGTH = Growth(130.0, 90.0, 1 / 130.0)  # mm: 40 at birth, 111 at 200 months
RADIUS = Growth(10.5, 8.0, 1 / 220.0)  # mm: 2.5 at birth, 7.3 at 200 months
GROWTHS = (LENGTH, RADIUS)
_REFERENCE = tuple(float(np.asarray(g(np.array(_REFERENCE_AGE)))) for g in GROWTHS)


def _flare(s: Any) -> Any:
    """Mean radius along the tube, relative: wider at both ends; s (...)."""
    return 1 + 0.1 * _library(s).cos(2 * np.pi * s)


def _library(x: ArrayLike) -> Any:
    """Module whose functions take x: numpy for arrays, torch for tensors."""
    if isinstance(x, np.ndarray):
        return np
    import torch

    return torch


def surface(rings: int = 40, around: int = 16) -> tuple[Points, Cells]:
    """Template: straight mean tube along z, centred; (rings around, 3) points and triangles.

    Points go round a ring, then on to the next ring.
    """
    s, angle = np.linspace(0, 1, rings), 2 * np.pi * np.arange(around) / around
    radius = _REFERENCE[1] * _flare(s)[:, None]
    z = np.broadcast_to(_REFERENCE[0] * (s - 0.5)[:, None], (rings, around))
    points = np.stack([radius * np.cos(angle), radius * np.sin(angle), z], axis=-1)
    index = np.arange(rings * around).reshape(rings, around)
    a, b = index[:-1], np.roll(index, -1, axis=1)[:-1]
    c, d = index[1:], np.roll(index, -1, axis=1)[1:]
    cells = np.concatenate([np.stack([a, b, d], axis=-1), np.stack([a, d, c], axis=-1)], axis=None)
    return points.reshape(-1, 3), cells.reshape(-1, 3)


def along(p: ArrayLike) -> ArrayLike:
    """Place along the tube, 0 at its lower and 1 at its upper end, (...); p (..., 3)."""
    return p[..., 2] / _REFERENCE[0] + 0.5


def basis(p: ArrayLike) -> ArrayLike:
    """B_jk(p): what growth k in (length, radius) moves in trait j, (..., 1 + traits, 2, 3).

    Trait 0 is the mean tube. A bend moves the axis with the length and tilts the rings, to first
    order, with the radius; all other traits but length scale the radius. Arrays and tensors.
    """
    lib = _library(p)
    s, zero = along(p), p[..., 2] * 0
    x, y = p[..., 0] / _REFERENCE[1], p[..., 1] / _REFERENCE[1]
    u, v = x / _flare(s), y / _flare(s)  # cosine and sine of the angle, on the surface
    arch, slope = 4 * s * (1 - s) - 2 / 3, 4 - 8 * s
    still = lib.stack([zero, zero, zero], -1)
    ring, axis = lib.stack([x, y, zero], -1), lib.stack([zero, zero, s - 0.5], -1)
    bend_x = (lib.stack([arch, zero, zero], -1), lib.stack([zero, zero, -x * slope], -1))
    bend_y = (lib.stack([zero, arch, zero], -1), lib.stack([zero, zero, -y * slope], -1))
    factors = [zero + 1, 2 * s - 1, u * u - v * v, 2 * u * v]
    factors += [lib.cos(np.pi * k * s) for k in PROFILE]
    pairs = [(axis, ring), bend_x, bend_y, (axis, still)]
    pairs += [(still, factor[..., None] * ring) for factor in factors]
    return lib.stack([lib.stack(pair, -2) for pair in pairs], -3)


@dataclass(frozen=True)
class TubesLaw:
    """The population of a tube cohort without narrowings, a `Population`.

    Mean and covariance at every point are exact, in closed form; the normal shape of the law is
    an approximation, because sizes are curved in tau and multiply the traits:
    mu = sum_k E g_k B_0k - p,
    Sigma = sum_kl Cov(g_k, g_l) B_0k B_0l' + sum_j sd_j^2 sum_kl E(g_k g_l) B_jk B_jl' + noise^2 1.
    """

    noise: float

    def __call__(self, p: Tensor, t: Tensor) -> GaussianField:
        """Return N(mu, Sigma) at template points p (..., 3) and times t (...)."""
        import torch

        from prism.gaussian import GaussianField

        B: Any = basis(p)  # (..., J, 2, 3)
        sigma: Any = SPREAD(t)
        m: Any = torch.stack([torch.as_tensor(g.mean(t, sigma)) for g in GROWTHS], -1)
        C: Any = torch.stack([_row(g, t, sigma) for g in GROWTHS], -2)  # (..., 2, 2)
        S = C + m[..., :, None] * m[..., None, :]
        variance = p.new_tensor(list(TRAITS.values())) ** 2
        Sigma = torch.einsum("...kl,...kc,...ld->...cd", C, B[..., 0, :, :], B[..., 0, :, :])
        rest = B[..., 1:, :, :]
        Sigma = Sigma + torch.einsum("j,...kl,...jkc,...jld->...cd", variance, S, rest, rest)
        mu = torch.einsum("...k,...kc->...c", m, B[..., 0, :, :]) - p
        return GaussianField.from_covariance(mu, Sigma + self.noise**2 * torch.eye(3).to(p))


def _row(growth: Growth, t: Tensor, sigma: Tensor) -> Tensor:
    """Covariance of one size with all, (..., 2)."""
    import torch

    return torch.stack([torch.as_tensor(growth.covariance(g, t, sigma)) for g in GROWTHS], -1)


def tubes(
    subjects: int = 200,
    seed: int = 0,
    noise: float = 0.2,
    test_subjects: int = 0,
    abnormal: int = 0,
    rings: int = 40,
    around: int = 16,
    visits: int = 1,
    missing: float = 0.0,
) -> Study:
    """Simulate a cohort of growing tubes (months, mm), some of them narrowed, with its truth.

    Args:
        subjects: Training subjects, all normal.
        seed: Same seed, same cohort.
        noise: Standard deviation of independent noise on every coordinate, in mm.
        test_subjects: Further normal subjects, marked "test" in the column `split`.
        abnormal: Further subjects in split "test" with a local narrowing, group "stenosis".
        rings: Rings of the surface.
        around: Points of a ring.
        visits: Most visits a subject; each subject has 1 to `visits`.
        missing: Share of rings removed from every shape, rounded down, as one stretch.
    """
    _check(subjects, noise, test_subjects, abnormal, rings, around, visits, missing)
    rng = np.random.default_rng(seed)
    normal = subjects + test_subjects
    owner, t, z = draw_visits(normal + abnormal, visits, rng)
    t = AGES[0] + (AGES[1] - AGES[0]) * t
    tau = intrinsic_time(t, z, SPREAD)
    amplitude = rng.standard_normal((normal + abnormal, len(TRAITS))) * list(TRAITS.values())
    template, cells = surface(rings, around)
    dips = _narrowings(normal, abnormal, np.asarray(along(template)), rng)
    clean = _shapes(tau, amplitude[owner], dips[owner], template)
    points = clean + noise * rng.standard_normal(clean.shape)
    points[np.repeat(_gaps(len(points), rings, missing, rng), around, axis=1)] = np.nan
    columns = {
        "split": np.where(owner < subjects, "train", "test"),
        "group": np.where(owner < normal, "normal", "stenosis"),
    }
    return Study(
        correspondence=Correspondence(
            points,
            visits_table(owner, t, columns),
            template=template,
            cells=cells,
            time_unit="months",
            length_unit="mm",
            name="tubes",
            regions=_regions(template),
        ),
        truth=_truth(template, tau, clean, owner >= normal),
        law=TubesLaw(max(noise, 1e-6)),
    )


def _regions(template: Points) -> dict[str, np.ndarray]:
    """The thirds of the tube; two rings have no middle."""
    third = np.minimum((3 * np.asarray(along(template))).astype(int), 2)
    named = {name: np.flatnonzero(third == k) for k, name in enumerate(THIRDS)}
    return {name: points for name, points in named.items() if points.size}


def _narrowings(normal: int, abnormal: int, s: Floats, rng: np.random.Generator) -> Floats:
    """(subjects, M) share of the radius lost at each point; zero for the normal ones."""
    depth, reach, place = (rng.uniform(*a, size=(abnormal, 1)) for a in (DEPTH, REACH, PLACE))
    dips = depth * np.exp(-(((s - place) / reach) ** 2) / 2)
    return np.concatenate([np.zeros((normal, len(s))), dips])


def _shapes(tau: Times, amplitude: Floats, dips: Floats, template: Points) -> Floats:
    """(N, M, 3) points sum_k g_k(tau) sum_j a_j B_jk, what the radius moves less the dips."""
    a = np.concatenate([np.ones((len(tau), 1)), amplitude], axis=1)
    moved = np.tensordot(a, np.asarray(basis(template)), axes=(1, 1))  # (N, M, 2, 3)
    length, radius = (np.asarray(g(tau))[:, None, None] for g in GROWTHS)
    return length * moved[:, :, 0] + radius * (1 - dips)[..., None] * moved[:, :, 1]


def _truth(template: Points, tau: Times, clean: Floats, abnormal: np.ndarray) -> Truth:
    t_grid = np.linspace(*AGES, 100)
    sigma = np.asarray(SPREAD(t_grid))
    sizes = np.stack([np.asarray(g.mean(t_grid, sigma)) for g in GROWTHS], axis=-1)
    s = np.asarray(along(template))
    return Truth(
        regions=np.array(REGIONS),
        landmarks=np.array([np.abs(s - place).argmin() for place in _PLACES]),
        tau=np.stack([tau, tau], axis=-1),
        clean=clean,
        t_grid=t_grid,
        sigma_tau=np.stack([sigma, sigma], axis=-1),
        mean=np.einsum("tk,mkc->tmc", sizes, np.asarray(basis(template))[:, 0]),
        abnormal=abnormal,
    )


def _gaps(count: int, rings: int, share: float, rng: np.random.Generator) -> np.ndarray:
    """(N, rings) True on one stretch of rings of every shape."""
    length = int(share * rings)
    start = rng.integers(rings - length + 1, size=(count, 1))
    ring = np.arange(rings)
    return (start <= ring) & (ring < start + length)


def _check(
    subjects: int,
    noise: float,
    test_subjects: int,
    abnormal: int,
    rings: int,
    around: int,
    visits: int,
    missing: float,
) -> None:
    rules = {
        "subjects": (subjects, subjects >= 1, "at least 1"),
        "noise": (noise, 0 <= noise < np.inf, "zero or more"),
        "test_subjects": (test_subjects, test_subjects >= 0, "zero or more"),
        "abnormal": (abnormal, abnormal >= 0, "zero or more"),
        "rings": (rings, rings >= 2, "at least 2"),
        "around": (around, around >= 3, "at least 3"),
        "visits": (visits, visits >= 1, "at least 1"),
        "missing": (missing, 0 <= missing < 1, "at least 0 and below 1"),
    }
    require(rules)
