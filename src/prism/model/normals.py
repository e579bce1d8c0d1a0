"""How strange normals are: the scores that a new anatomy's are held against."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from prism import rules
from prism.cohort import Correspondence
from prism.covariation import (
    GROWTH,
    TOGETHER,
    Covariation,
    Patches,
    Visible,
    believe,
    patch_scores,
)
from prism.model.state import Residuals
from prism.typing import Floats

if TYPE_CHECKING:
    from prism.model.calibrate import CrossFit
    from prism.model.core import PRISM

MOST_REFERENCE = 1000  # visits whose scores are kept
POINT_REFERENCE = 20_000
SCORES = ("scores", "scores_growth", "scores_low_rank", "scores_mahalanobis")  # of a calibration


@dataclass(frozen=True)
class Verdict:
    """What one judge says of N visits.

    Attributes:
        tests: (N, 3, P) tests of every patch.
        low_rank: (N,) surprise at the whole shape.
        mahalanobis: (N,) the most unusual points, each by itself.
    """

    tests: Floats
    low_rank: Floats
    mahalanobis: Floats

    @classmethod
    def of(cls, how: Covariation, seen: Residuals, patches: Patches, template: Floats) -> Verdict:
        """Judge residuals by how normals co-vary."""
        x = how.visible(seen.r, seen.Sigma)
        return cls(
            patch_scores(how, x, seen.mu_t, template, patches),
            low_rank_score(how, x),
            rules.mahalanobis_score(mahalanobis_distance(seen)),
        )

    def standardised(self, mean: Floats, sd: Floats) -> Verdict:
        """The same, with tests measured by their moments ([N,] 3, P) among normals."""
        return replace(self, tests=(self.tests - mean) / sd)

    @property
    def scores(self) -> dict[str, Floats]:
        """(N,) of each of `SCORES`, tests being standardised."""
        patches = (strongest(self.tests[:, test])[0] for test in (TOGETHER, GROWTH))
        return dict(zip(SCORES, (*patches, self.low_rank, self.mahalanobis), strict=True))


def normal_scores(model: PRISM, cross: CrossFit) -> dict[str, Any]:
    """Scores of normals by judges that have not seen them, as fields of a calibration."""
    patches, cross = Patches.of(model.template), cross.some(MOST_REFERENCE)
    count = len(cross.fold)
    verdict = Verdict(
        np.empty((count, 3, len(patches.centre))), np.empty(count), np.empty(count)
    )  # fmt: skip
    for rows, _, how in cross.parts():
        found = Verdict.of(how, cross.seen[rows], patches, model.template)
        for name, values in vars(found).items():
            getattr(verdict, name)[rows] = values
    mean, sd = moments_of_others(verdict.tests, cross.fold, len(cross.judges))
    verdict = verdict.standardised(mean[cross.fold], sd[cross.fold])
    maps = point_map(verdict.tests, patches, model.template)
    each = [np.sort(maps[cross.fold == k], axis=None) for k in range(len(cross.judges))]
    return {
        "patch_mean": mean,
        "patch_sd": sd,
        **verdict.scores,
        "scores_paper": paper_scores(model, cross.cohort),
        "points": np.stack([_quantiles(values, POINT_REFERENCE // len(each)) for values in each]),
        "judge": cross.fold,
    }


def _quantiles(values: Floats, count: int) -> Floats:
    """So many evenly chosen of sorted values, NaN last and left out."""
    known = values[~np.isnan(values)]
    if not len(known):
        return np.full(count, np.nan)
    return known[np.linspace(0, len(known) - 1, count).round().astype(int)]


def moments_of_others(tests: Floats, fold: np.ndarray, judges: int) -> tuple[Floats, Floats]:
    """(K, 3, P) mean and standard deviation that each judge measures by: of the other parts.

    An outlier widens a deviation it counts in, and would look tamer than a new one like it. A new
    anatomy has no part in any; whom a judge has not seen, has none in that judge's.
    """
    mean, sd = zip(*(_moments(tests[fold != k]) for k in range(judges)), strict=True)
    return np.stack(mean), np.stack(sd)


def _moments(scores: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of every patch's tests over normals, drawn to the common ones.

    A patch counts for as much as its visits; the common value stands in where it was hardly seen.
    """
    seen = ~np.isnan(scores)
    count = seen.sum(0)
    filled = np.where(seen, scores, 0.0)
    common = filled.sum((0, 2)) / np.maximum(count.sum(1), 1)
    mean = (filled.sum(0) + 10 * common[:, None]) / (count + 10)
    square = np.where(seen, np.square(scores - mean), 0.0)
    common_square = square.sum((0, 2)) / np.maximum(count.sum(1), 1)
    variance = (square.sum(0) + 10 * common_square[:, None]) / (count + 10)
    return mean, np.sqrt(np.maximum(variance, 1e-12))


def strongest(standard: Floats) -> tuple[Floats, np.ndarray]:
    """Greatest value over patches (N, P), NaN where none was seen, and the patch it is at."""
    filled = np.where(np.isnan(standard), -np.inf, standard)
    where = filled.argmax(axis=1)
    value = filled[np.arange(len(filled)), where]
    return np.where(np.isinf(value), np.nan, value), where


def point_map(standard: Floats, patches: Patches, template: Floats) -> Floats:
    """How far the small patch around every point has moved together, (N, M)."""
    from scipy.spatial import KDTree

    size = min(1, int(patches.size.max()))
    which = np.flatnonzero(patches.size == size)
    nearest = which[KDTree(template[patches.centre[which]]).query(template)[1]]
    return standard[:, TOGETHER, nearest]


def low_rank_score(how: Covariation, x: Visible) -> Floats:
    """[Eq. low-rank-score] Surprise at the whole shape for its age: minus the log evidence, (N,).

    In units of its own degrees of freedom, so that partial shapes compare.
    """
    count = np.maximum(x.seen.sum(-1), 1) * x.r.shape[-1]
    size = max(1, 200_000 // x.r[0].size)
    found = [believe(how.factors, x[v : v + size]).evidence for v in range(0, len(x), size)]
    return -np.concatenate(found) / count


def mahalanobis_distance(seen: Residuals) -> Floats:
    """|L^-1 (d - mu)| of every point, (N, M); NaN where missing."""
    solved = np.linalg.solve(seen.Sigma, np.nan_to_num(seen.r)[..., None])[..., 0]
    square = (np.nan_to_num(seen.r) * solved).sum(-1)
    return np.where(np.isnan(seen.r[..., 0]), np.nan, np.sqrt(square))


def paper_scores(model: PRISM, cohort: Correspondence) -> Floats:
    """The paper's anomaly score of every visit from the encoder's times, (N,)."""
    tau = model.encoder(model.template, model.displacements(cohort))
    return rules.paper_score(tau, model.spread(cohort.visits.t))
