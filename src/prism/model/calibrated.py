"""What `fit` has learned about the model's own statements: plain data, read by the applications."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from prism.baselines import AgeRidge
from prism.calibration import LEVELS, combined_p_value
from prism.covariation import Covariation, Texture
from prism.model.age_rule import AgeRule
from prism.model.clock import CLOCK_AGES, CLOCK_SIZE
from prism.model.normals import Extent, Norms
from prism.typing import Floats, Points


@dataclass(frozen=True)
class Calibration:
    """What subjects not seen taught about the model's own statements.

    Attributes:
        population: (levels, M, n) interval factors for a shape of known age.
        forecast: (levels, M, n) interval factors of the pooled forecast.
        forecast_paper: (levels, M, n) interval factors of the paper's forecast.
        norms: (J) what each judge measures by.
        extent: How they change where a part of the shape was seen.
        scores: (H,) anomaly scores of normals: their strangest patch.
        scores_growth: (H,) the same along growth alone.
        scores_low_rank: (H,) surprise at their whole shape.
        scores_mahalanobis: (H,) their most unusual points, each by itself.
        scores_paper: (H,) the paper's scores, by networks of which most have seen them.
        points: (J, Q) map values of normals by each judge, rising.
        judge: (H,) which judge gave the scores.
        panel: (J,) which judges share a member of the population: their counts are added up.
        clock: (C, C) covariance of the cohort's own clock; NaN if nobody has shown it.
        clock_visits: (A,) visits it was learned from, about each of its ages.
        clock_pairs: (A, A) pairs of them that are of one subject.
        forecast_pairs: How many pairs of visits the forecast factors come from.
        pointwise: Share of the paper's rule in pooled forecasts.
        modes: Share of the modes, as far as they are not tempo, that counts in developmental time.
        spread_scale: Found over claimed spread of that time about the calendar.
        age: How calendar age is told, where all of the modes may count.
        coverage: Nominal level -> share of unseen displacements inside the interval.
        coverage_time: The same of developmental times about the calendar.
        coverage_forecast: The same of forecasts.
        texture: How smooth drawn people are.
        judges: (J) covariations, each learned without the subjects it judges.
    """

    population: Floats
    forecast: Floats
    forecast_paper: Floats
    norms: tuple[Norms, ...]
    extent: Extent
    scores: Floats
    scores_growth: Floats
    scores_low_rank: Floats
    scores_mahalanobis: Floats
    scores_paper: Floats
    points: Floats
    judge: np.ndarray
    panel: np.ndarray
    clock: Floats
    clock_visits: Floats
    clock_pairs: Floats
    age: AgeRule
    forecast_pairs: int = 0
    pointwise: float = 0.0
    modes: float = 0.0
    spread_scale: float = 1.0
    coverage: dict[str, float] = field(default_factory=dict)
    coverage_time: dict[str, float] = field(default_factory=dict)
    coverage_forecast: dict[str, float] = field(default_factory=dict)
    texture: Texture = field(default_factory=Texture)
    judges: tuple[Covariation, ...] = ()

    @classmethod
    def none(cls, template: Points) -> Calibration:
        """Before anything was learned."""
        ones, empty = np.ones((len(LEVELS), *template.shape)), np.empty(0)
        return cls(
            population=ones,
            forecast=ones,
            forecast_paper=ones,
            norms=(),
            extent=Extent.none(),
            scores=empty,
            scores_growth=empty,
            scores_low_rank=empty,
            scores_mahalanobis=empty,
            scores_paper=empty,
            points=np.empty((0, 0)),
            judge=np.empty(0, dtype=int),
            panel=np.empty(0, dtype=int),
            clock=np.full((CLOCK_SIZE, CLOCK_SIZE), np.nan),
            clock_visits=np.zeros(CLOCK_AGES),
            clock_pairs=np.zeros((CLOCK_AGES, CLOCK_AGES)),
            age=AgeRule(AgeRidge.none(template.size)),
        )

    @property
    def doubt(self) -> float:
        """How far errors of developmental time exceed what the covariation claims.

        Where modes count, it takes them for known, and was found too sure of itself about the
        calendar by this factor.
        """
        return max(self.spread_scale, 1.0) if self.modes else 1.0

    def p_value(self, verdicts: Floats, scores: str) -> Floats:
        """(N,) of what the judges say of new visits (J, N), by a field of scores of normals."""
        known: Floats = getattr(self, scores)
        references = [known[self.judge == k] for k in range(len(self.judges))]
        return combined_p_value(verdicts, references, self.panel)

    def point_p_value(self, maps: Floats) -> Floats:
        """(N, M) of what they say of every point (J, N, M)."""
        return combined_p_value(maps, list(self.points), self.panel)
