"""Where, and how far, does this anatomy depart from what is normal for its age?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prism import rules
from prism.applications.ages import with_ages
from prism.applications.places import place_in_words
from prism.calibration import conformal_p_value, false_discovery_rate
from prism.cohort import Correspondence, Visits
from prism.covariation import GROWTH, TOGETHER, Patches, patch_scores
from prism.model import PRISM
from prism.model.calibrate import (
    low_rank_score,
    mahalanobis_distance,
    paper_scores,
    point_map,
    strongest,
)
from prism.model.state import Residuals
from prism.typing import Floats

BLOCK_VALUES = 4_000_000


@dataclass(frozen=True)
class Anomaly:
    """How unusual every visit is, and where.

    Attributes:
        visits: The visits the rows belong to.
        score: (N,) strangest patch: how far it has moved or swollen from where the rest of the
            same anatomy says it should be.
        p_value: (N,) conformal p-value of `score`; small is unusual.
        score_growth: (N,) the same along growth: how far a patch runs ahead of or behind the rest.
        p_value_growth: (N,) its conformal p-value.
        score_low_rank: (N,) surprise at the whole shape, given age and how points co-vary.
        p_value_low_rank: (N,) its conformal p-value.
        score_mahalanobis: (N,) mean distance of the most unusual points, each by itself.
        p_value_mahalanobis: (N,) its conformal p-value.
        score_paper: (N,) the paper's score, never positive; low is unusual.
        p_value_paper: (N,) its conformal p-value.
        where: (N,) the place of the strangest patch, in words.
        worst: (N,) the point at its centre.
        point_z: (N, M) strangeness of the small patch around every point; NaN where not seen.
        point_p: (N, M) conformal p-value of every point.
        point_q: (N, M) the same with the false discovery rate over the visit's points controlled.
        age_assumed: (N,) True where the age was unknown or uncertain, and the posterior mean was
            taken for it.
    """

    visits: Visits
    score: Floats
    p_value: Floats
    score_growth: Floats
    p_value_growth: Floats
    score_low_rank: Floats
    p_value_low_rank: Floats
    score_mahalanobis: Floats
    p_value_mahalanobis: Floats
    score_paper: Floats
    p_value_paper: Floats
    where: list[str]
    worst: np.ndarray
    point_z: Floats
    point_p: Floats
    point_q: Floats
    age_assumed: np.ndarray


def anomaly(model: PRISM, cohort: Correspondence) -> Anomaly:
    """Score every visit against the normal population of its age."""
    model.displacements(cohort)  # refuses a cohort that does not fit
    aged, assumed = with_ages(model, cohort)
    patches, known = Patches.of(model.template), model.calibration
    size = max(1, BLOCK_VALUES // model.template.size)
    parts = [
        _scores(model, aged[row : row + size], patches) for row in range(0, max(len(aged), 1), size)
    ]
    score, worst, growth, low_rank, distance, point_z = (
        np.concatenate(kind) for kind in zip(*parts, strict=True)
    )
    point_p = np.where(np.isnan(point_z), np.nan, conformal_p_value(point_z, known.points))
    paper, mahalanobis = paper_scores(model, aged), rules.mahalanobis_score(distance)
    return Anomaly(
        visits=cohort.visits,
        score=score,
        p_value=conformal_p_value(score, known.scores),
        score_growth=growth,
        p_value_growth=conformal_p_value(growth, known.scores_growth),
        score_low_rank=low_rank,
        p_value_low_rank=conformal_p_value(low_rank, known.scores_low_rank),
        score_mahalanobis=mahalanobis,
        p_value_mahalanobis=conformal_p_value(mahalanobis, known.scores_mahalanobis),
        score_paper=paper,
        p_value_paper=conformal_p_value(-paper, -known.scores_paper),
        where=[
            place_in_words(model.template, model.regions, int(m), model.length_unit) for m in worst
        ],
        worst=worst,
        point_z=point_z,
        point_p=point_p,
        point_q=false_discovery_rate(point_p),
        age_assumed=assumed,
    )


def _scores(
    model: PRISM, cohort: Correspondence, patches: Patches
) -> tuple[Floats, np.ndarray, Floats, Floats, Floats, Floats]:
    """Strangest patch and its centre, the same along growth, surprise, distances, map."""
    seen = Residuals.of(model.table, model.template, cohort)
    x = model.covariation.visible(seen.r, seen.Sigma)
    found = patch_scores(model.covariation, x, seen.mu_t, model.template, patches)
    standard = (found - model.calibration.patch_mean) / model.calibration.patch_sd
    score, best = strongest(standard[:, TOGETHER])
    hidden = np.where(cohort.observed, 0.0, np.nan)  # no statement where nothing was seen
    return (
        score,
        patches.centre[best],
        strongest(standard[:, GROWTH])[0],
        low_rank_score(model.covariation, seen),
        mahalanobis_distance(seen),
        point_map(standard, patches, model.template) + hidden,
    )
