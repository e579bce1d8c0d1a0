"""Starman: a small man in the plane whose limbs grow along known directions at a known pace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from prism.cohort import Correspondence, Truth, Visits
from prism.errors import QueryError
from prism.simulate.clock import LogisticSpread, draw_visits, intrinsic_time
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
_DIRECTIONS = np.array([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0], [-1.0, 0.0]])
_LIMBS = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]])  # of each region
_GLOBAL = LogisticSpread(0.01, 0.20, 0.88, 0.12)
SPREADS: dict[str, tuple[LogisticSpread, LogisticSpread]] = {
    "global": (_GLOBAL, _GLOBAL),
    "local": (LogisticSpread(0.01, 0.15, 0.30, 0.10), _GLOBAL),
}


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


def growth_directions(p: ArrayLike) -> ArrayLike:
    """[Eq. starman-rbf] w_r(p) = sum over limbs i of region r of rbf_i(p) v_i, (..., R, 2).

    For arrays and tensors alike; p (..., 2).
    """
    like: Any = getattr(p, "new_tensor", np.asarray)
    square = ((p[..., None, :] - like(_TIPS)) ** 2).sum(-1)
    pull = (np.e ** (-square / (2 * RBF_WIDTH**2)))[..., None] * like(_DIRECTIONS)
    return like(_LIMBS) @ pull


@dataclass(frozen=True)
class StarmanLaw:
    """The exact population of a Starman cohort, a `Population`.

    d = sum_r tau_r w_r(p) + noise with tau_r = t + z sigma_r(t), hence
    mu = t sum_r w_r and Sigma = v v' + noise^2 1 with v = sum_r sigma_r(t) w_r(p).
    """

    kind: Kind
    noise: float

    def __call__(self, p: Tensor, t: Tensor) -> GaussianField:
        """Return N(mu, Sigma) at template points p (..., 2) and times t (...)."""
        import torch

        from prism.gaussian import GaussianField

        w: Any = growth_directions(p)  # (..., R, 2)
        mu = t[..., None] * w.sum(-2)
        pace = torch.stack([torch.as_tensor(s(t)) for s in SPREADS[self.kind]], dim=-1)
        v = (pace[..., None] * w).sum(-2)
        Sigma = v[..., :, None] * v[..., None, :] + self.noise**2 * torch.eye(2).to(p)
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
    """
    _check(kind, subjects, noise, missing, resolution, test_subjects, visits)
    rng = np.random.default_rng(seed)
    owner, t, z = draw_visits(subjects + test_subjects, visits, rng)
    template = outline(resolution)
    w = np.asarray(growth_directions(template))
    tau = np.stack([intrinsic_time(t, z, spread) for spread in SPREADS[kind]], axis=-1)
    clean = template + np.einsum("nr,mrk->nmk", tau, w)
    points = clean + noise * rng.standard_normal(clean.shape)
    points[_gaps(len(points), resolution, missing, rng)] = np.nan
    return Study(
        correspondence=Correspondence(
            points,
            _visits_table(owner, t, subjects),
            template=template,
            cells=np.stack([np.arange(resolution), np.roll(np.arange(resolution), -1)], axis=1),
            time_unit="units",
            length_unit="units",
            name=f"starman-{kind}",
        ),
        truth=_truth(kind, template, w, tau, clean),
        law=StarmanLaw(kind, max(noise, 1e-6)),
    )


def _visits_table(owner: np.ndarray, t: Floats, subjects: int) -> Visits:
    first = np.searchsorted(owner, owner)
    return Visits(
        subject=np.array([f"s{i:04d}" for i in owner]),
        visit=np.array([f"v{i + 1}" for i in np.arange(len(owner)) - first]),
        t=t,
        columns={"split": np.where(owner < subjects, "train", "test")},
    )


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
    }
    for name, (value, holds, rule) in rules.items():
        if not holds:
            raise QueryError(f"{name} must be {rule}. Got {value}.", f"Change {name}.")
