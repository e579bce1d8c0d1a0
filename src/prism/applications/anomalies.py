"""Where, and how far, does this anatomy depart from what is normal for its age?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prism.applications.ages import with_ages
from prism.applications.places import place_in_words
from prism.calibration import conformal_p_value, false_discovery_rate
from prism.cohort import Correspondence, Visits
from prism.covariation import GROWTH, TOGETHER, Patches
from prism.model import PRISM
from prism.model.normals import (
    SCORES,
    Verdict,
    paper_scores,
    point_map,
    share_seen,
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
        score_low_rank: (N,) surprise at the whole shape, given age and how points co-vary, in
            standard deviations of normals of that age.
        p_value_low_rank: (N,) its conformal p-value.
        score_mahalanobis: (N,) the most unusual points, each by itself, in the same units.
        p_value_mahalanobis: (N,) its conformal p-value.
        score_paper: (N,) the paper's score, never positive; low is unusual.
        p_value_paper: (N,) its conformal p-value.
        where: (N,) the place of the strangest patch, in words.
        worst: (N,) the point at its centre.
        point_z: (N, M) strangeness of the small patch around every point; NaN where not seen.
        point_p: (N, M) conformal p-value of every point.
        point_q: (N, M) the same with the false discovery rate over the visit's points controlled.
        age_assumed: (N,) True where the age was unknown or uncertain, and the posterior median was
            taken for it.
        extrapolated: (N,) True where the age lies outside the training ages, of which no normals
            were seen.
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
    extrapolated: np.ndarray


def anomaly(model: PRISM, cohort: Correspondence) -> Anomaly:
    """Score every visit against the normal population of its age.

    Scores are averages over the model's judges; p-values compare what each judge says of the
    visit with what it said of normals it had not seen either.
    """
    model.displacements(cohort)  # refuses a cohort that does not fit
    aged, assumed = with_ages(model, cohort)
    patches, known = Patches.of(model.template), model.calibration
    size = max(1, BLOCK_VALUES // model.template.size)
    blocks = [
        _judge(model, aged[row : row + size], patches) for row in range(0, max(len(aged), 1), size)
    ]
    found = _Verdicts.join(blocks)
    p = {name: known.p_value(said, name) for name, said in found.opinions.items()}
    point_p, paper = known.point_p_value(found.points), paper_scores(model, aged)
    return Anomaly(
        visits=cohort.visits,
        score=found.score,
        p_value=p["scores"],
        score_growth=found.score_growth,
        p_value_growth=p["scores_growth"],
        score_low_rank=found.opinions["scores_low_rank"].mean(0),
        p_value_low_rank=p["scores_low_rank"],
        score_mahalanobis=found.opinions["scores_mahalanobis"].mean(0),
        p_value_mahalanobis=p["scores_mahalanobis"],
        score_paper=paper,
        p_value_paper=conformal_p_value(-paper, -known.scores_paper),
        where=[
            place_in_words(model.template, model.regions, int(m), model.length_unit)
            for m in found.worst
        ],
        worst=found.worst,
        point_z=found.points.mean(0),
        point_p=point_p,
        point_q=false_discovery_rate(point_p),
        age_assumed=assumed,
        extrapolated=model.outside_ages(aged.visits.t),
    )


@dataclass(frozen=True)
class _Verdicts:
    """What J judges say of N visits.

    Attributes:
        score, worst: (N,) strangest patch by their average, and its centre.
        score_growth: (N,) the same along growth.
        opinions: Kind of score -> (J, N) what each says.
        points: (J, N, M) map of each.
    """

    score: Floats
    worst: np.ndarray
    score_growth: Floats
    opinions: dict[str, Floats]
    points: Floats

    @classmethod
    def join(cls, blocks: list[_Verdicts]) -> _Verdicts:
        """Verdicts on all visits, block after block."""
        whole = {
            name: np.concatenate([getattr(b, name) for b in blocks])
            for name in ("score", "worst", "score_growth")
        }
        said = {k: np.concatenate([b.opinions[k] for b in blocks], axis=1) for k in SCORES}
        points = np.concatenate([b.points for b in blocks], axis=1)
        return cls(**whole, opinions=said, points=points)


def _judge(model: PRISM, cohort: Correspondence, patches: Patches) -> _Verdicts:
    verdicts, said = [], []
    extent, share = model.calibration.extent, share_seen(cohort.points)
    for (table, how), norms in zip(model.judges, model.calibration.norms, strict=True):
        seen = Residuals.of(table, model.template, cohort)
        verdict = Verdict.of(how, seen, patches, model.template)
        verdicts.append(norms.measured(verdict, seen.t))
        said.append(extent.scores(norms.scores(verdicts[-1], seen.t), share))
    together = np.mean([each.tests for each in verdicts], axis=0)  # (N, 3, P)
    score, best = strongest(together[:, TOGETHER])
    maps = [extent.map(point_map(v.tests, patches, model.template), share) for v in verdicts]
    return _Verdicts(
        score,
        patches.centre[best],
        strongest(together[:, GROWTH])[0],
        dict(zip(SCORES, np.stack(said).transpose(2, 0, 1), strict=True)),
        np.where(cohort.observed, np.stack(maps), np.nan),  # silent where nothing was seen
    )
