"""How strange normals are: the scores that a new anatomy's are held against."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from prism import rules
from prism.cohort import Correspondence
from prism.course import local_mean
from prism.covariation import (
    GROWTH,
    TOGETHER,
    Covariation,
    Patches,
    Visible,
    believe,
    evenly,
    patch_scores,
)
from prism.model.clock import clock_ages
from prism.model.state import Residuals
from prism.typing import Floats, Points, Shapes, Times

if TYPE_CHECKING:
    from prism.model.calibrate import CrossFit
    from prism.model.core import PRISM

MOST_REFERENCE = 1000  # visits whose scores are kept
POINT_REFERENCE = 20_000
PRIOR_VISITS = 10.0  # that the common moments count as, beside those of an age or a patch
PARTS, MOST_IN_PART = (0.7, 0.4, 0.1), 60  # shares of a shape, and visits, to learn parts from
NEAR = 0.1  # of the age range: visits of about an age
TINY = 1e-12
LIKELIHOOD_ROUNDS = 20
SCORES = ("scores", "scores_growth", "scores_low_rank", "scores_mahalanobis")  # of a calibration


@dataclass(frozen=True)
class Verdict:
    """What one judge says of N visits.

    Attributes:
        tests: (N, 3, P) tests of every patch.
        whole: (N, 2) surprise at the whole shape, and its most unusual points, each by itself.
    """

    tests: Floats
    whole: Floats

    @classmethod
    def of(cls, how: Covariation, seen: Residuals, patches: Patches, template: Floats) -> Verdict:
        """Judge residuals by how normals co-vary."""
        x = how.visible(seen.r, seen.Sigma)
        points = rules.mahalanobis_score(mahalanobis_distance(seen))
        whole = np.stack([low_rank_score(how, x), points], axis=1)
        return cls(patch_scores(how, x, seen.mu_t, template, patches), whole)

    @classmethod
    def of_parts(cls, parts: list[Verdict], fold: np.ndarray) -> Verdict:
        """Verdicts on the parts of a cohort, the first of fold 0, as one in the cohort's order."""
        back = np.argsort(np.argsort(fold, kind="stable"))
        tests, whole = zip(*((part.tests, part.whole) for part in parts), strict=True)
        return cls(np.concatenate(tests)[back], np.concatenate(whole)[back])

    def __getitem__(self, rows: np.ndarray) -> Verdict:
        """Select visits."""
        return Verdict(self.tests[rows], self.whole[rows])

    @property
    def scores(self) -> Floats:
        """(N, 4) in the order of `SCORES`, tests being standardised."""
        patches = (strongest(self.tests[:, test])[0] for test in (TOGETHER, GROWTH))
        return np.stack([*patches, *self.whole.T], axis=1)


@dataclass(frozen=True)
class Norms:
    """[Eq. norms] What a judge measures by: how what is said of other normals spreads.

    About an age, and by patch.

    Where the field's mean or spread is off at some ages, everybody there looks strange, or nobody.

    Attributes:
        ages: (A,) ages.
        mean, sd: (3, A) of the tests about an age, patches alike.
        patch_mean, patch_sd: (3, P) of every patch's tests, then.
        score_mean, score_sd: (4, A) about an age of the scores that follow.
    """

    ages: Times
    mean: Floats
    sd: Floats
    patch_mean: Floats
    patch_sd: Floats
    score_mean: Floats
    score_sd: Floats

    @classmethod
    def of(cls, verdict: Verdict, t: Times, ages: Times) -> Norms:
        """Learn from normals of ages t (N,).

        Few people are at an age: the common moments count as so many visits more.
        """
        mean = _about(_mean(verdict.tests), t, ages)
        off = verdict.tests - _at(t, ages, mean)[..., None]
        sd = _root(_about(_mean(np.square(off)), t, ages))
        standard = off / _at(t, ages, sd)[..., None]
        patch_mean, patch_sd = _moments(standard)
        scores = Verdict((standard - patch_mean) / patch_sd, verdict.whole).scores
        score_mean = _about(scores, t, ages)
        square = np.square(scores - _at(t, ages, score_mean))
        score_sd = _root(_about(square, t, ages))
        return cls(ages, mean, sd, patch_mean, patch_sd, score_mean, score_sd)

    def measured(self, verdict: Verdict, t: Times) -> Verdict:
        """The same with tests in units of normals of ages t (N,)."""
        off = verdict.tests - _at(t, self.ages, self.mean)[..., None]
        standard = off / _at(t, self.ages, self.sd)[..., None]
        return Verdict((standard - self.patch_mean) / self.patch_sd, verdict.whole)

    def scores(self, measured: Verdict, t: Times) -> Floats:
        """(N, 4) scores of what was measured so, in the same units."""
        off = measured.scores - _at(t, self.ages, self.score_mean)
        return off / _at(t, self.ages, self.score_sd)


def _root(variance: Floats) -> Floats:
    return np.sqrt(np.maximum(variance, TINY))


def _about(values: Floats, t: Times, ages: Times) -> Floats:
    """Mean of values (N, K) of visits of about each age, (K, A)."""
    return local_mean(values, t, ages, PRIOR_VISITS, NEAR).T


def _at(t: Times, ages: Times, values: Floats) -> Floats:
    """Values (K, A) at ages t (N,), (N, K)."""
    return np.stack([np.interp(t, ages, row) for row in values], axis=1)


def _mean(values: Floats) -> Floats:
    """Mean over the last axis of what is known; NaN where nothing is."""
    known = ~np.isnan(values)
    count = known.sum(-1)
    total = np.where(known, values, 0.0).sum(-1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


@dataclass(frozen=True)
class Extent:
    """[Eq. extent] How scores of normals change with the share of the shape that was seen.

    Where less is seen less can stand out, and less is known of what to expect there: compared
    with whole normals, parts would look tame.

    Attributes:
        mean, log_sd: (5, 3) coefficients of parabolas in the share, of the scores and of the map.
        span: (2,) least and greatest share they were learned from; beyond they stand still.
    """

    mean: Floats
    log_sd: Floats
    span: Floats

    @classmethod
    def none(cls) -> Extent:
        """Before anything was learned: scores as they are."""
        flat = np.zeros((len(SCORES) + 1, 3))
        return cls(flat, flat, np.array([0.0, 1.0]))

    @classmethod
    def of(cls, scores: Floats, maps: Floats, share: Floats) -> Extent:
        """Learn from scores (N, 4) and maps (N, M) of normals, some of them seen in part only."""
        seen = share[share > 0]
        span = np.array([seen.min(initial=1.0), seen.max(initial=0.0)])
        mean = [_parabola(share, row) for row in (*scores.T, _mean(maps))]
        draft = cls(np.stack(mean), np.zeros((len(mean), 3)), span)
        off, off_map = draft.scores(scores, share), draft.map(maps, share)
        squares = *np.square(off).T, _mean(np.square(off_map))
        return replace(draft, log_sd=np.stack([_log_root(share, row) for row in squares]))

    def scores(self, scores: Floats, share: Floats) -> Floats:
        """(N, 4) in units of normals seen as far."""
        mean, sd = self._at(share)
        return (scores - mean[:, :-1]) / sd[:, :-1]

    def map(self, maps: Floats, share: Floats) -> Floats:
        """(N, M) likewise."""
        mean, sd = self._at(share)
        return (maps - mean[:, -1:]) / sd[:, -1:]

    def _at(self, share: Floats) -> tuple[Floats, Floats]:
        powers = np.vander(np.clip(share, *self.span), 3)
        return powers @ self.mean.T, np.exp(powers @ self.log_sd.T)


def _parabola(x: Floats, y: Floats) -> Floats:
    """Coefficients (3,) of least squares, the flattest where x does not tell."""
    known = np.isfinite(x) & np.isfinite(y)
    if not known.any():
        return np.zeros(3)
    level = y[known].mean()
    powers = np.vander(x[known], 3)
    return np.linalg.lstsq(powers, y[known] - level, rcond=1e-9)[0] + [0.0, 0.0, level]


def _log_root(x: Floats, square: Floats) -> Floats:
    """Coefficients (3,) of log sd, of greatest likelihood where squares are of normals."""
    if not np.isfinite(square).any():
        return np.zeros(3)
    square = np.maximum(square, TINY)
    found = _parabola(x, np.log(square + np.nanmean(square)) / 2)  # steps down never overshoot
    for _ in range(LIKELIHOOD_ROUNDS):
        sd = np.exp(np.vander(x, 3) @ found)
        found += _parabola(x, (square / sd**2 - 1) / 2)
    return found


def share_seen(r: Shapes) -> Floats:
    """(N,) share of the points of each visit that were seen; r (N, M, n)."""
    return (~np.isnan(r[..., 0])).mean(axis=-1)


def normal_scores(model: PRISM, cross: CrossFit) -> dict[str, Any]:
    """Scores of normals by judges that have not seen them, as fields of a calibration.

    An outlier widens a deviation it counts in, and would look tamer than a new one like it: every
    part of the cohort is measured by how the others spread. So are new anatomies by its judge:
    judges differ, and by what they say themselves whom they judge would look tamer.
    """
    patches, ages = Patches.of(model.template), clock_ages(model)
    cross, whole = _with_parts(cross.some(MOST_REFERENCE), model.template)
    fold, t, r = cross.fold, cross.seen.t, cross.seen.r
    said = [
        Verdict.of(how, cross.seen[rows], patches, model.template)
        for rows, _, how in cross.parts()
    ]  # fmt: skip
    verdict = Verdict.of_parts(said, fold)
    scores, maps = np.empty((len(t), len(SCORES))), np.empty(r.shape[:2])
    norms = []
    for k in range(len(cross.judges)):
        others, rows = whole & (fold != k), np.flatnonzero(fold == k)
        norms.append(Norms.of(verdict[others], t[others], ages))
        measured = norms[k].measured(verdict[rows], t[rows])
        scores[rows] = norms[k].scores(measured, t[rows])
        maps[rows] = point_map(measured.tests, patches, model.template)
    maps[np.isnan(r[..., 0])] = np.nan
    extent = Extent.of(scores, maps, share_seen(r))
    scores = extent.scores(scores, share_seen(r))[whole]
    maps, judge = extent.map(maps, share_seen(r))[whole], fold[whole]
    each = [np.sort(maps[judge == k], axis=None) for k in range(len(cross.judges))]
    return {
        "norms": tuple(norms),
        "extent": extent,
        **dict(zip(SCORES, scores.T, strict=True)),
        "scores_paper": paper_scores(model, cross.cohort),
        "points": np.stack([_quantiles(values, POINT_REFERENCE // len(each)) for values in each]),
        "judge": judge,
    }


def _with_parts(cross: CrossFit, template: Points) -> tuple[CrossFit, np.ndarray]:
    """Residuals of the visits and, of some, of parts as scans show them: all about a place.

    And (N,) True where a visit is whole.
    """
    count, M = len(cross.fold), len(template)
    some = np.tile(evenly(count, MOST_IN_PART), len(PARTS))
    left = np.repeat(np.maximum(np.round(np.array(PARTS) * M), 1), len(some) // len(PARTS))
    place = template[np.random.default_rng(0).integers(M, size=len(some))]
    far = np.square(template - place[:, None]).sum(-1)
    hidden = far.argsort(axis=1).argsort(axis=1) >= left[:, None]
    rows = np.concatenate([np.arange(count), some])
    seen = cross.seen[rows]
    r = seen.r.copy()
    r[count:][hidden] = np.nan
    both = replace(cross, seen=replace(seen, r=r), fold=cross.fold[rows])
    return both, np.arange(len(rows)) < count


def _quantiles(values: Floats, count: int) -> Floats:
    """At most so many evenly chosen of sorted values; NaN last, and for what is missing."""
    known, chosen = values[~np.isnan(values)], np.full(count, np.nan)
    rows = np.linspace(0, len(known) - 1, min(count, len(known))).round().astype(int)
    chosen[: len(rows)] = known[rows]
    return chosen


def _moments(scores: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of every patch's tests over normals, drawn to the common ones.

    A patch counts for as much as its visits; the common value stands in where it was hardly seen.
    """
    seen = ~np.isnan(scores)
    count = seen.sum(0)
    filled = np.where(seen, scores, 0.0)
    common = filled.sum((0, 2)) / np.maximum(count.sum(1), 1)
    mean = (filled.sum(0) + PRIOR_VISITS * common[:, None]) / (count + PRIOR_VISITS)
    square = np.where(seen, np.square(scores - mean), 0.0)
    common_square = square.sum((0, 2)) / np.maximum(count.sum(1), 1)
    common_square = PRIOR_VISITS * common_square[:, None]
    variance = (square.sum(0) + common_square) / (count + PRIOR_VISITS)
    return mean, _root(variance)


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
