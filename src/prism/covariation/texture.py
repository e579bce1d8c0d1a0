"""How smooth drawn people are beside the modes.

Dating, forecasting and judging take what a point does beside the modes for its own affair or for
noise. Where that is smooth over the shape, people drawn so would have a surface that nobody has:
longer outlines, larger areas.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prism.covariation.factors import believe, beside_modes, explained
from prism.covariation.learn import Covariation, evenly
from prism.covariation.small import lower_root, whole
from prism.typing import Floats, Points

MOST_VISITS, MOST_CENTRES, RANKS = 300, 300, 14
FEWEST_POINTS = 20
WAVES = 64  # of a drawn field, chosen anew whenever some people are drawn
LENGTHS = 60  # tried
NEAREST = 1e-3  # of the far ones, where points coincide


@dataclass(frozen=True)
class Texture:
    """How what is left beside the modes hangs together.

    Remainders of points a distance d > 0 apart covary by smooth exp(-d^2 / 2 length^2), and the
    variance of one is smooth + own, all in units of the covariation's own remainder and noise.

    Attributes:
        smooth: Variance of what neighbours share.
        length: Over which they share it, in the length unit.
        own: Variance of what each point has by itself, noise included.
    """

    smooth: float = 0.0
    length: float = 1.0
    own: float = 1.0

    def draw(
        self, how: Covariation, Sigma: Floats, places: Points, count: int, seed: int
    ) -> Floats:
        """Residuals (count, M, n) of people where the population has covariance Sigma (M, n, n).

        As they would be measured: noise included.
        """
        rng = np.random.default_rng(seed)
        x = how.visible(np.zeros(Sigma.shape[:-1]), Sigma)
        a = rng.standard_normal((count, how.factors.rank))
        shared = (x.A @ np.tensordot(a, how.factors.W, axes=1)[..., None])[..., 0]
        root = whole(lower_root(beside_modes(how.factors, x)))
        return shared + (root @ self._fields(rng, places, count)[..., None])[..., 0]

    def _fields(self, rng: np.random.Generator, places: Points, count: int) -> Floats:
        """Remainders in their own units, (count, M, n)."""
        M, n = places.shape
        own = np.sqrt(self.own) * rng.standard_normal((count, M, n))
        if self.smooth == 0:
            return own
        phase = rng.standard_normal((WAVES, n)) @ places.T / self.length
        waves = np.concatenate([np.cos(phase), np.sin(phase)]) * np.sqrt(self.smooth / WAVES)
        shared = rng.standard_normal((count * n, 2 * WAVES)) @ waves
        return own + shared.reshape(count, n, M).swapaxes(1, 2)


def learn_texture(how: Covariation, r: Floats, Sigma: Floats, places: Points) -> Texture:
    """[Eq. texture] Covariance of what is left beside the modes, over distance.

    Args:
        how: Modes and remainder of the cohort.
        r: (N, M, n) residuals; NaN where missing.
        Sigma: (N, M, n, n) the field's covariance at them.
        places: (M, n) the template.
    """
    if len(places) < FEWEST_POINTS:
        return Texture()
    rows = evenly(len(r), MOST_VISITS)
    x = how.visible(r[rows], Sigma[rows])
    known = believe(how.factors, x)
    left = x.r - whole(explained(how.factors, x, known.mean), axes=1)
    scale = np.sqrt(np.diagonal(whole(beside_modes(how.factors, x)), axis1=-2, axis2=-1))
    left, scale = (np.where(x.seen[..., None], y, 0.0) for y in (left, scale))
    centre, partner, distance = _pairs(places)
    found = float(np.square(left).sum() / np.maximum(np.square(scale).sum(), 1e-300))
    together = (left[:, centre] * left[:, partner]).sum((0, 1, 3))
    expected = (scale[:, centre] * scale[:, partner]).sum((0, 1, 3))
    if not (expected > 0).all():
        return Texture()
    smooth, length = smoothness(distance, together / expected, found)
    return Texture(smooth, length, max(found - smooth, 0.0))


def _pairs(places: Points) -> tuple[np.ndarray, np.ndarray, Floats]:
    """Points (C, K), partners of theirs from the nearest to far ones, and distances, (C, K)."""
    from scipy.spatial import KDTree

    centres = np.random.default_rng(0).permutation(len(places))[:MOST_CENTRES]
    ranks = np.unique(np.geomspace(1, len(places) // 2, RANKS).round().astype(int))
    distance, order = KDTree(places).query(places[centres], k=int(ranks[-1]) + 1)
    partner = np.asarray(order)[:, ranks]
    return np.broadcast_to(centres[:, None], partner.shape), partner, distance[:, ranks]


def smoothness(distance: Floats, together: Floats, most: float) -> tuple[float, float]:
    """Variance and length, by least squares, of covariances (K,) of partners (C, K) apart."""
    far = float(distance[:, -1].mean())
    near = max(float(distance[:, 0].mean()), NEAREST * far)
    best, found = float(np.square(together).sum()), (0.0, 1.0)
    for length in np.geomspace(near / 2, far, LENGTHS).tolist() if far > 0 else ():
        shape = np.exp(-np.square(distance / length) / 2).mean(0)
        smooth = float(np.clip(shape @ together / max(shape @ shape, 1e-12), 0, most))
        missed = float(np.square(together - smooth * shape).sum())
        if missed < best:
            best, found = missed, (smooth, length)
    return found
