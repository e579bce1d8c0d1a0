"""Learning the covariation of a cohort: noise share and rank by held-out evidence, then all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from prism.covariation.factors import (
    Beliefs,
    Factors,
    believe,
    bold,
    extend,
    run_em,
    scaled_modes,
    widen,
)
from prism.covariation.persistence import Persistence, learn_persistence
from prism.covariation.visible import Visible
from prism.typing import Floats, Strings, Times

NOISE_SHARES = (0.0, 0.3, 0.95)
RANKS = (1, 2, 4, 8, 16)
FOLDS, FEW_FOLDS = 3, 10  # parts of the subjects: one is held out, of few subjects each in turn
STEPS, FINAL_STEPS = 5, 30  # rounds of EM at each rank, and at the last
MOST_POINTS = 400
CHOOSING_VALUES, LEARNING_VALUES = 80_000, 120_000  # most residual coordinates
WORTH = 0.25  # gain in log evidence a visit that a further choice must bring
WIDER = np.geomspace(1.0, 256.0, 17)  # tried


@dataclass(frozen=True)
class Covariation:
    """How points and visits vary together.

    Attributes:
        factors: Modes, remainder and noise.
        persistence: What lasts of them.
        noise_share: Share of Sigma's least eigenvalue that is measurement noise.
        tolerance: Residuals are not believed below this, in the length unit.
        tempo: (R,) share of every mode that runs along growth.
        wider: Variance of what modes leave of people not seen, over that of those learned from.
            Remainder and noise of the factors are of people not seen.
    """

    factors: Factors
    persistence: Persistence
    noise_share: float
    tolerance: float
    tempo: Floats
    wider: float = 1.0

    @property
    def measured(self) -> float:
        """Measurement noise, as a share of Sigma's least eigenvalue."""
        return min(self.factors.q / self.wider * self.noise_share, 1.0)

    @classmethod
    def none(cls, points: int, n: int) -> Covariation:
        """Points by themselves, nothing lasting."""
        lasting = Persistence(np.zeros(2), np.full(2, np.inf))
        return cls(Factors.none(points, n), lasting, 0.0, 0.0, np.zeros(0))

    @property
    def traits(self) -> Floats:
        """(R,) how far every mode is not tempo: 0 along growth, 1 as by chance or across it."""
        n = self.factors.W.shape[-1]
        return np.minimum((1 - self.tempo) * n / (n - 1), 1.0)

    def visible(self, r: Floats, Sigma: Floats) -> Visible:
        """Residuals (..., M, n) as this covariation sees them."""
        return Visible.of(r, Sigma, self.noise_share, self.tolerance)


@dataclass(frozen=True)
class Recipe:
    """What was chosen on held-out subjects.

    Attributes:
        noise_share: See `Covariation`.
        rank: Count modes.
        wider: Variance of what modes leave of people not seen, over that of those learned from.
    """

    noise_share: float
    rank: int
    wider: float = 1.0


def fit_covariation(
    r: Floats, Sigma: Floats, mu_t: Floats, subject: Strings, t: Times, tolerance: float,
    recipe: Recipe | None = None,
) -> tuple[Covariation, Recipe]:  # fmt: skip
    """Learn modes, remainder, noise and persistence from residuals of a training cohort.

    Args:
        r: (N, M, n) residuals, best of subjects the field has not seen; NaN where missing.
        Sigma: (N, M, n, n) the field's covariance at them.
        mu_t: (N, M, n) the field's growth at them.
        subject: (N,) whose they are.
        t: (N,) their ages.
        tolerance: See `Covariation`.
        recipe: What to use; chosen by held-out evidence if not given.
    """
    some = _some_points(r.shape[1])
    recipe = recipe or choose_recipe(r[:, some], Sigma[:, some], subject, tolerance)
    x = Visible.of(r[:, some], Sigma[:, some], recipe.noise_share, tolerance)
    factors = _grown(x, recipe.rank)
    beliefs = believe(factors, x)
    tempo = _tempo_share(scaled_modes(factors, x.A), mu_t[:, some])
    lasting = learn_persistence(factors, x, beliefs, subject, t, tempo)
    if len(some) < r.shape[1]:
        factors = _at_all_points(factors, beliefs, r, Sigma, recipe.noise_share, tolerance)
    factors = _with_wider(factors, recipe.wider)
    how = Covariation(factors, lasting, recipe.noise_share, tolerance, tempo, recipe.wider)
    return how, recipe


def _at_all_points(
    factors: Factors, beliefs: Beliefs, r: Floats, Sigma: Floats, share: float, tolerance: float
) -> Factors:
    """Carry modes learned at some points to all of them, a block at a time."""
    blocks = np.array_split(np.arange(r.shape[1]), -(-r.shape[1] // MOST_POINTS))
    parts = [
        extend(factors, beliefs, Visible.of(r[:, p], Sigma[:, p], share, tolerance)) for p in blocks
    ]
    W = np.concatenate([part.W for part in parts], axis=1)
    return Factors(W, np.concatenate([part.D for part in parts]), factors.q)


def choose_recipe(r: Floats, Sigma: Floats, subject: Strings, tolerance: float) -> Recipe:
    """Noise share, then rank and width of the remainder, of greatest evidence on held-out subjects.

    Modes of few people leave little of these and much more of others, so that the parts held out
    are then small: modes have to be learned from nearly as many as in the end.
    """
    points = np.arange(0, r.shape[1], -(-r.shape[1] // (MOST_POINTS // 2)))
    keep = evenly(len(r), CHOOSING_VALUES // (len(points) * r.shape[2]))
    r, Sigma, subject = r[keep][:, points], Sigma[keep][:, points], subject[keep]
    names, owner = np.unique(subject, return_inverse=True)
    few = r.size < CHOOSING_VALUES // 2
    fold = owner % (min(FEW_FOLDS, len(names)) if few else FOLDS)
    turns = range(fold.max() + 1 if few else 1)
    tried = []
    for share in NOISE_SHARES:
        race = _Race.start(Visible.of(r, Sigma, share, tolerance), fold, turns)
        tried.append((share, race.to_rank(1).to_rank(2)))
    share, race = max(tried, key=lambda pair: pair[1].evidence)
    race = race.best()
    return Recipe(share, race.rank, race.finished().held_out[1])


@dataclass(frozen=True)
class _Race:
    """Factors learned on some folds and judged on the others, rank by rank."""

    learn: list[Visible]
    judge: list[Visible]
    found: list[Factors]
    before: _Race | None = None

    @classmethod
    def start(cls, x: Visible, fold: np.ndarray, turns: range) -> _Race:
        learn, judge = [x[fold != k] for k in turns], [x[fold == k] for k in turns]
        none = Factors.none(*x.r.shape[1:])
        return cls(learn, judge, [run_em(none, part, STEPS) for part in learn])

    @property
    def rank(self) -> int:
        return self.found[0].rank

    @property
    def evidence(self) -> float:
        return self.held_out[0]

    @cached_property
    def held_out(self) -> tuple[float, float]:
        """Greatest evidence, and how much wider the remainder has to be for it."""
        best = -np.inf, 1.0
        for wider in WIDER:
            evidence = _evidence([_with_wider(f, wider) for f in self.found], self.judge)
            if evidence < best[0] + WORTH:
                break
            best = evidence, float(wider)
        return best

    def finished(self) -> _Race:
        """After all rounds of EM."""
        pairs = zip(self.found, self.learn, strict=True)
        done = [run_em(f, part, FINAL_STEPS, bold) for f, part in pairs]
        return replace(self, found=done)

    def to_rank(self, rank: int) -> _Race:
        pairs = zip(self.found, self.learn, strict=True)
        wider = [run_em(widen(f, part, rank), part, STEPS) for f, part in pairs]
        return _Race(self.learn, self.judge, wider, self)

    def best(self) -> _Race:
        """Go on while it pays; then the least rank near which evidence was greatest."""
        race, most = self, min(self.found[0].D.size, min(map(len, self.learn)) - 1)
        for rank in [k for k in RANKS if self.rank < k <= most]:
            wider = race.to_rank(rank)
            if wider.evidence < race.evidence + WORTH:
                break
            race = wider
        while race.before is not None and race.evidence < race.before.evidence + WORTH:
            race = race.before
        return race


def _with_wider(factors: Factors, wider: float) -> Factors:
    return replace(factors, D=wider * factors.D, q=wider * factors.q)


def evenly(count: int, most: int) -> np.ndarray:
    """At most so many of `count` rows (30 at least), from the first to the last."""
    return np.linspace(0, count - 1, min(count, max(most, 30))).round().astype(int)


def _evidence(found: list[Factors], judge: list[Visible]) -> float:
    each = [believe(f, part).evidence for f, part in zip(found, judge, strict=True)]
    return float(np.concatenate(each).mean())


def _grown(x: Visible, rank: int) -> Factors:
    """Modes added a few at a time, as the choice was made.

    All at once they share what one could carry: forecasts of Starman without noise were four
    times as wrong, and no number of further rounds parted them.
    """
    some = x[evenly(len(x), LEARNING_VALUES // (x.r.shape[1] * x.r.shape[2]))]
    factors = run_em(Factors.none(*x.r.shape[1:]), some, STEPS)
    for step in [k for k in RANKS if k <= rank]:
        factors = run_em(widen(factors, some, step), some, STEPS)
    return run_em(factors, some, FINAL_STEPS, bold)


def _tempo_share(AW: Floats, mu_t: Floats) -> Floats:
    """Share of every mode's displacement that runs along growth, (R,)."""
    speed = np.linalg.norm(mu_t, axis=-1, keepdims=True)
    course = np.divide(mu_t, speed, out=np.zeros_like(mu_t), where=speed > 0)
    along = np.square((AW * course[..., None]).sum(-2)).sum((0, 1))
    whole = np.square(AW).sum((0, 1, 2))
    return np.divide(along, whole, out=np.zeros_like(along), where=whole > 0)


def _some_points(count: int) -> np.ndarray:
    order = np.random.default_rng(0).permutation(count)[:MOST_POINTS]
    return np.sort(order)
