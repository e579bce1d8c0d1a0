"""Where, and how far, does this anatomy depart from what is normal for its age?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prism import rules
from prism.calibration import conformal_p_value, pointwise_p_value
from prism.cohort import Correspondence, Visits
from prism.intrinsic import joint_mle_time
from prism.model import PRISM
from prism.model.calibrate import mahalanobis, paper_scores
from prism.typing import Floats, Times


@dataclass(frozen=True)
class Anomaly:
    """How unusual every visit is, and where.

    Attributes:
        visits: The visits the rows belong to.
        score: (N,) mean Mahalanobis distance of the most unusual twentieth of the points.
        p_value: (N,) conformal p-value of `score`; small is unusual.
        score_paper: (N,) the paper's score, never positive; low is unusual.
        p_value_paper: (N,) conformal p-value of `score_paper`.
        where: (N,) the most unusual point, in words.
        worst: (N,) its index.
        point_z: (N, M) Mahalanobis distance of every point; NaN where missing.
        point_p: (N, M) conformal p-value of every point against the same point of normals.
        age_assumed: (N,) True where the age was unknown and the intrinsic time stood in for it.
    """

    visits: Visits
    score: Floats
    p_value: Floats
    score_paper: Floats
    p_value_paper: Floats
    where: list[str]
    worst: np.ndarray
    point_z: Floats
    point_p: Floats
    age_assumed: np.ndarray


def anomaly(model: PRISM, cohort: Correspondence) -> Anomaly:
    """Score every visit against the normal population of its age."""
    aged, assumed = _with_ages(model, cohort)
    distance = mahalanobis(model, aged)
    score = rules.mahalanobis_score(distance)
    score_paper = paper_scores(model, aged)
    known = model.calibration
    worst = np.nanargmax(np.where(np.isnan(distance), -np.inf, distance), axis=1)
    return Anomaly(
        visits=cohort.visits,
        score=score,
        p_value=conformal_p_value(score, known.scores),
        score_paper=score_paper,
        p_value_paper=conformal_p_value(-score_paper, -known.scores_paper),
        where=[_in_words(model, int(m)) for m in worst],
        worst=worst,
        point_z=distance,
        point_p=pointwise_p_value(distance, known.distances),
        age_assumed=assumed,
    )


def _with_ages(model: PRISM, cohort: Correspondence) -> tuple[Correspondence, np.ndarray]:
    """Put the intrinsic time where the age is unknown."""
    from dataclasses import replace

    t: Times = cohort.visits.t
    unknown = np.isnan(t)
    if not unknown.any():
        return cohort, unknown
    tau = joint_mle_time(model.table, model.displacements(cohort)).tau
    visits = replace(cohort.visits, t=np.where(unknown, tau, t))
    return replace(cohort, visits=visits), unknown


def _in_words(model: PRISM, point: int) -> str:
    place = ", ".join(f"{x:.4g}" for x in model.template[point])
    unit = "" if model.length_unit in ("", "units") else f" {model.length_unit}"
    return f"point {point} at template ({place}){unit}"
