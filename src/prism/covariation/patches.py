"""Leave a patch out: does it look as the rest of the same anatomy says it should?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix
from scipy.spatial import KDTree

from prism.covariation.factors import point_precision, scaled_modes
from prism.covariation.learn import Covariation
from prism.covariation.visible import Visible
from prism.typing import Floats, Points, Shapes

SIZES = (0.02, 0.05, 0.12, 0.25)  # of the points
MOST_CENTRES = 400
PATCH_TESTS = ("any", "growth", "together")
ANY, GROWTH, TOGETHER = range(3)


@dataclass(frozen=True)
class Patches:
    """Neighbourhoods on the template.

    Attributes:
        member: (P, M) sparse, one where a point belongs to a patch.
        centre: (P,) the point a patch is named after.
        place: (P, n) its centroid.
        size: (P,) which of the sizes it has, 0 the smallest.
    """

    member: csr_matrix
    centre: np.ndarray
    place: Points
    size: np.ndarray

    @classmethod
    def of(cls, template: Points) -> Patches:
        """Nearest neighbours of evenly chosen centres, at each size that differs."""
        M = len(template)
        counts = sorted({max(1, round(f * M)) for f in SIZES})
        centres = spread_out(template, min(M, MOST_CENTRES))
        tree = KDTree(template)
        rows, size = [], []
        for k, count in enumerate(counts):
            near = tree.query(template[centres], k=count)[1].reshape(len(centres), count)
            rows += list(near)
            size += [k] * len(centres)
        start = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
        index = np.concatenate(rows)
        member = csr_matrix((np.ones(len(index)), index, start), shape=(len(rows), M))
        place = np.asarray(member @ template) / np.diff(start)[:, None]
        return cls(member, np.tile(centres, len(counts)), place, np.array(size))


def spread_out(points: Points, count: int) -> np.ndarray:
    """Indices of `count` points, each the farthest from those before it, in rising order."""
    if count >= len(points):
        return np.arange(len(points))
    chosen = np.zeros(count, dtype=int)
    far = np.full(len(points), np.inf)
    for k in range(1, count):
        far = np.minimum(far, np.square(points - points[chosen[k - 1]]).sum(-1))
        chosen[k] = far.argmax()
    return np.sort(chosen)


def patch_scores(
    how: Covariation, x: Visible, mu_t: Shapes, template: Points, patches: Patches
) -> Floats:
    """[Eq. leave-patch-out] How far every patch is from what the rest predicts, (N, 3, P).

    With amplitudes a of the rest and their covariance S, the patch's residual is
    e = r - A W a ~ N(0, Q + A W S W' A'). Three tests of e, each about standard normal for a
    normal anatomy: of its size as a whole, of its part along growth, and of the patch moving
    together (shift and swelling). NaN where a patch was not seen.
    """
    return np.stack([
        _one_visit(how, x[v : v + 1], mu_t[v], template, patches) for v in range(len(x))
    ])  # fmt: skip


def _one_visit(
    how: Covariation, x: Visible, mu_t: Floats, template: Points, patches: Patches
) -> Floats:
    seen, n = x.seen[0], x.r.shape[-1]
    Qi = np.where(seen[:, None, None], point_precision(how.factors, x)[0], 0.0)
    AW, r = scaled_modes(how.factors, x.A[0]), x.r[0]
    R = AW.shape[-1]
    moves = np.concatenate([
        mu_t[..., None], np.broadcast_to(np.eye(n), (len(r), n, n)), template[..., None],
    ], axis=-1)  # fmt: skip  # (M, n, 2 + n): growth, shifts, swelling about the origin
    basis = np.concatenate([AW, moves, r[..., None]], axis=-1)
    gram = basis.swapaxes(-1, -2) @ (Qi @ basis)  # per point, (M, b, b)
    b = basis.shape[-1]
    i, j = np.triu_indices(b)
    sums = np.empty((len(patches.centre), b, b))
    sums[:, i, j] = sums[:, j, i] = patches.member @ gram[:, i, j]
    total = gram.sum(0)
    count = np.asarray(patches.member @ seen.astype(float))
    return _tests(sums, total, count * n, patches.place, R, n)


def _tests(sums: Floats, total: Floats, freedom: Floats, place: Points, R: int, n: int) -> Floats:
    """The three scores of every patch from its sums of b' Q^-1 b over modes, moves, residual."""
    eye = np.eye(R)
    rest = eye + total[:R, :R] - sums[:, :R, :R]
    a = np.linalg.solve(rest, (total[:R, -1] - sums[:, :R, -1])[..., None])  # from the rest
    # replace the residual by e = r - A W a in all products
    modes_e = sums[:, :R, -1:] - sums[:, :R, :R] @ a
    moves_e = sums[:, R:-1, -1:] - sums[:, R:-1, :R] @ a
    e_e = sums[:, -1, -1] - 2 * (sums[:, -1:, :R] @ a)[:, 0, 0]
    e_e = e_e + (a.swapaxes(-1, -2) @ sums[:, :R, :R] @ a)[:, 0, 0]
    all_seen = np.linalg.inv(eye + total[:R, :R])
    size = e_e - (modes_e * (all_seen @ modes_e)).sum((1, 2))
    moved = all_seen @ sums[:, :R, R:-1]
    pull = moves_e - moved.swapaxes(-1, -2) @ modes_e
    info = sums[:, R:-1, R:-1] - sums[:, R:-1, :R] @ moved
    ready = freedom > 0
    growth = np.abs(pull[:, 0, 0]) / np.sqrt(np.maximum(info[:, 0, 0], 1e-300))
    # swelling about the patch's own centroid: (p - c) = p - sum_i c_i e_i
    turn = np.concatenate([np.broadcast_to(np.eye(n), (len(place), n, n)),
                           -place[:, None, :]], axis=1)  # fmt: skip
    shift = np.zeros((len(place), n + 1, n + 1))
    shift[:, :n, :n], shift[:, n, :n], shift[:, n, n] = turn[:, :n], turn[:, n], 1.0
    together = shift @ info[:, 1:, 1:] @ shift.swapaxes(-1, -2)
    pulled = (shift @ pull[:, 1:])[..., 0]
    own = np.diagonal(info[:, 1:, 1:], axis1=-2, axis2=-1)
    least = 1e-9 * own + 1e-300  # one point cannot swell
    scale = np.sqrt(np.maximum(np.diagonal(together, axis1=-2, axis2=-1), least))
    together = together / scale[:, :, None] / scale[:, None, :] + 1e-6 * np.eye(n + 1)
    pulled = pulled / scale
    both = (pulled * np.linalg.solve(together, pulled[..., None])[..., 0]).sum(-1)
    scores = np.stack([
        normal_score(size, np.maximum(freedom, 1)), normal_score(growth**2, np.ones_like(growth)),
        normal_score(both, np.full_like(both, n + 1)),
    ])  # fmt: skip
    return np.where(ready, scores, np.nan)


def normal_score(chi_square: Floats, freedom: Floats) -> Floats:
    """Wilson and Hilferty's cube root: about standard normal for a chi-square variable."""
    spread = 2 / (9 * freedom)
    return (np.cbrt(np.maximum(chi_square, 0.0) / freedom) - (1 - spread)) / np.sqrt(spread)
