"""Starman: a small man in the plane whose limbs grow along known directions at a known pace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from prism.cohort import Correspondence, Truth
from prism.errors import QueryError
from prism.simulate._door import require
from prism.simulate.clock import (
    LogisticSpread,
    draw_visits,
    drifting,
    intrinsic_time,
    visits_table,
)
from prism.simulate.study import Study
from prism.typing import ArrayLike, Floats, Points

if TYPE_CHECKING:
    from torch import Tensor

    from prism.gaussian import GaussianField

Kind = Literal["global", "local"]

RBF_WIDTH = 0.5
REGIONS = ("arm", "leg")
# Right half of the outline, from the crown down to the crotch; the left half mirrors it.
_HALF_OUTLINE = np.array([
    [0.00, 1.72], [0.20, 1.67], [0.33, 1.50], [0.34, 1.28], [0.24, 1.08], [0.16, 0.94],
    [0.34, 0.84], [0.80, 0.80], [1.30, 0.80], [1.58, 0.76], [1.68, 0.64], [1.58, 0.52],
    [1.25, 0.47], [0.80, 0.42], [0.50, 0.32], [0.43, 0.00], [0.44, -0.35], [0.60, -0.75],
    [0.85, -1.25], [1.06, -1.60], [1.08, -1.76], [0.95, -1.82], [0.80, -1.74], [0.60, -1.35],
    [0.32, -0.88], [0.00, -0.62],
])  # fmt: skip
_TIPS = np.array([[1.68, 0.64], [-1.68, 0.64], [1.04, -1.80], [-1.04, -1.80]])
_NECK = 1.0  # the head lies above
_DIRECTIONS = np.array([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0], [-1.0, 0.0]])
_LIMBS = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]])  # of each region
_GLOBAL = LogisticSpread(0.01, 0.20, 0.88, 0.12)
SPREADS: dict[str, tuple[LogisticSpread, LogisticSpread]] = {
    "global": (_GLOBAL, _GLOBAL),
    "local": (LogisticSpread(0.01, 0.15, 0.30, 0.10), _GLOBAL),
}
# Traits: three plane waves, each a cosine and a sine field along one axis, 60 degrees apart.
_AXIS_ANGLES = np.radians([0.0, 60.0, 120.0])
_WAVE_ANGLES = np.radians([30.0, 100.0, 165.0])
_WAVELENGTHS = np.array([2.5, 3.0, 3.5])


def outline(resolution: int = 100) -> Points:
    """Closed outline of the man, `resolution` vertices uniform in arc length, (M, 2)."""
    left = _HALF_OUTLINE[-2:0:-1] * [-1, 1]
    corners = np.concatenate([_HALF_OUTLINE, left])
    for _ in range(4):  # Chaikin's corner cutting: each pass replaces a corner by two
        after = np.roll(corners, -1, axis=0)
        pair = np.stack([0.75 * corners + 0.25 * after, 0.25 * corners + 0.75 * after], axis=1)
        corners = pair.reshape(-1, 2)
    closed = np.concatenate([corners, corners[:1]])
    arc = np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(closed, axis=0), axis=1))])
    at = np.arange(resolution) * arc[-1] / resolution
    return np.stack([np.interp(at, arc, closed[:, i]) for i in range(2)], axis=-1)


def regions(template: Points) -> dict[str, np.ndarray]:
    """Points of both arms, both legs and the head: hands and feet as far as the tips pull."""
    away = np.linalg.norm(template[:, None] - _TIPS, axis=-1)  # (M, 4)
    near = away <= np.maximum(RBF_WIDTH, away.min(axis=0))
    limbs = {name: np.flatnonzero(near @ limb) for name, limb in zip(REGIONS, _LIMBS, strict=True)}
    return limbs | {"head": np.flatnonzero(template[:, 1] > _NECK)}


def growth_directions(p: ArrayLike) -> ArrayLike:
    """[Eq. starman-rbf] w_r(p) = sum over limbs i of region r of rbf_i(p) v_i, (..., R, 2).

    For arrays and tensors alike; p (..., 2).
    """
    like: Any = getattr(p, "new_tensor", np.asarray)
    square = ((p[..., None, :] - like(_TIPS)) ** 2).sum(-1)
    pull = (np.e ** (-square / (2 * RBF_WIDTH**2)))[..., None] * like(_DIRECTIONS)
    return like(_LIMBS) @ pull


def trait_fields(p: Points) -> Floats:
    """Six smooth displacement fields f_j over the outline, (M, 6, 2); p (M, 2).

    f = sqrt(2/3) u_i cos(k_i p) and sqrt(2/3) u_i sin(k_i p). A cosine and its sine have one
    variance everywhere and the u_i u_i' of three axes sum to 3/2, so sum_j f_j f_j' = 1 at
    every p: with independent unit amplitudes each coordinate has variance 1.
    """
    u = np.stack([np.cos(_AXIS_ANGLES), np.sin(_AXIS_ANGLES)], axis=-1)  # (3, 2)
    k = np.stack([np.cos(_WAVE_ANGLES), np.sin(_WAVE_ANGLES)]) * 2 * np.pi / _WAVELENGTHS  # (2, 3)
    phase = p @ k
    waves = np.concatenate([np.cos(phase), np.sin(phase)], axis=-1)  # (M, 6)
    return np.sqrt(2 / 3) * waves[..., None] * np.concatenate([u, u])


@dataclass(frozen=True)
class StarmanLaw:
    """The exact population of a Starman cohort, a `Population`.

    d = sum_r tau_r w_r(p) + traits sum_j a_j f_j(p) + noise with tau_r = t + z sigma_r(t), hence
    mu = t sum_r w_r and Sigma = v v' + (traits^2 + noise^2) 1 with v = sum_r sigma_r(t) w_r(p).
    """

    kind: Kind
    noise: float
    traits: float = 0.0

    def __call__(self, p: Tensor, t: Tensor) -> GaussianField:
        """Return N(mu, Sigma) at template points p (..., 2) and times t (...)."""
        import torch

        from prism.gaussian import GaussianField

        w: Any = growth_directions(p)  # (..., R, 2)
        mu = t[..., None] * w.sum(-2)
        pace = torch.stack([torch.as_tensor(s(t)) for s in SPREADS[self.kind]], dim=-1)
        v = (pace[..., None] * w).sum(-2)
        rest = self.noise**2 + self.traits**2
        Sigma = v[..., :, None] * v[..., None, :] + rest * torch.eye(2).to(p)
        return GaussianField.from_covariance(mu, Sigma)


def starman(
    kind: Kind = "global",
    subjects: int = 1000,
    seed: int = 0,
    noise: float = 0.0,
    missing: float = 0.0,
    resolution: int = 100,
    test_subjects: int = 0,
    visits: int = 9,
    traits: float = 0.0,
    drift: float = 0.0,
) -> Study:
    """Simulate a Starman cohort with its truth.

    Args:
        kind: "global" (one pace for the whole body) or "local" (arms early, legs late).
        subjects: Training subjects.
        seed: Same seed, same cohort.
        noise: Standard deviation of independent noise on every coordinate.
        missing: Share of points removed from every shape, as one run along the outline.
        resolution: Vertices of the outline.
        test_subjects: Further subjects, marked "test" in the column `split`.
        visits: Most visits a subject; each subject has 1 to `visits`.
        traits: Standard deviation, on every coordinate, of smooth displacements that a subject
            keeps over its visits and that have nothing to do with age.
        drift: Rate at which a subject's tempo z forgets itself: z at two visits correlates by
            exp(-drift |dt|). 0 keeps z for life.
    """
    _check(kind, subjects, noise, missing, resolution, test_subjects, visits, traits, drift)
    rng = np.random.default_rng(seed)
    tempo_rng, trait_rng = rng.spawn(2)  # their own streams: the other draws stay as they are
    owner, t, z = draw_visits(subjects + test_subjects, visits, rng)
    z = drifting(owner, t, z, drift, tempo_rng)
    template = outline(resolution)
    w = np.asarray(growth_directions(template))
    tau = np.stack([intrinsic_time(t, z, spread) for spread in SPREADS[kind]], axis=-1)
    clean = (
        template + np.einsum("nr,mrk->nmk", tau, w) + _traits(owner, template, traits, trait_rng)
    )
    points = clean + noise * rng.standard_normal(clean.shape)
    points[_gaps(len(points), resolution, missing, rng)] = np.nan
    return Study(
        correspondence=Correspondence(
            points,
            visits_table(owner, t, {"split": np.where(owner < subjects, "train", "test")}),
            template=template,
            cells=np.stack([np.arange(resolution), np.roll(np.arange(resolution), -1)], axis=1),
            time_unit="units",
            length_unit="units",
            name=f"starman-{kind}",
            regions=regions(template),
        ),
        truth=_truth(kind, template, w, tau, clean),
        law=StarmanLaw(kind, max(noise, 1e-6), traits),
    )


def _traits(owner: np.ndarray, template: Points, traits: float, rng: np.random.Generator) -> Floats:
    """(N, M, 2) lasting displacements of each visit's subject."""
    fields = trait_fields(template)
    amplitude = traits * rng.standard_normal((owner.max() + 1, fields.shape[1]))
    return np.einsum("nj,mjk->nmk", amplitude[owner], fields)


def _truth(kind: Kind, template: Points, w: Floats, tau: Floats, clean: Floats) -> Truth:
    t_grid = np.linspace(0, 1, 101)
    return Truth(
        regions=np.array(REGIONS),
        landmarks=np.array([np.linalg.norm(template - _TIPS[i], axis=1).argmin() for i in (0, 2)]),
        tau=tau,
        clean=clean,
        t_grid=t_grid,
        sigma_tau=np.stack([np.asarray(s(t_grid)) for s in SPREADS[kind]], axis=-1),
        mean=template + t_grid[:, None, None] * w.sum(1),
    )


def _gaps(count: int, resolution: int, share: float, rng: np.random.Generator) -> np.ndarray:
    """(N, M) True on one run of round(share M) neighbouring vertices of every shape."""
    length = round(share * resolution)
    start = rng.integers(resolution, size=(count, 1))
    return (np.arange(resolution) - start) % resolution < length


def _check(
    kind: str,
    subjects: int,
    noise: float,
    missing: float,
    resolution: int,
    test_subjects: int,
    visits: int,
    traits: float,
    drift: float,
) -> None:
    if kind not in SPREADS:
        raise QueryError(f"kind must be 'global' or 'local'. Got {kind!r}.", "Choose one of them.")
    rules = {
        "subjects": (subjects, subjects >= 1, "at least 1"),
        "noise": (noise, 0 <= noise < np.inf, "zero or more"),
        "missing": (missing, 0 <= missing < 1, "at least 0 and below 1"),
        "resolution": (resolution, resolution >= 16, "at least 16"),
        "test_subjects": (test_subjects, test_subjects >= 0, "zero or more"),
        "visits": (visits, visits >= 1, "at least 1"),
        "traits": (traits, 0 <= traits < np.inf, "zero or more"),
        "drift": (drift, 0 <= drift < np.inf, "zero or more"),
    }
    require(rules)
