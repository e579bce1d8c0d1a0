"""Calibration inside `fit`: what held-out subjects teach about the model's own statements."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import torch

from prism import rules
from prism.calibration import LEVELS, REFERENCE_SHAPES, inflation_of, interval_factors
from prism.cohort import Correspondence
from prism.intrinsic import mle_time
from prism.typing import Floats

if TYPE_CHECKING:
    from prism.model.core import PRISM, Calibration

MOST_PAIRS = 2000
MOST_VALUES = 20_000_000


def calibrate(model: PRISM, fitting: Correspondence, held_out: Correspondence) -> Calibration:
    """Measure interval factors on the whole cohort and anomaly scores on held-out subjects."""
    from prism.model.core import Calibration

    share = min(1.0, MOST_VALUES / fitting.template.size / (len(fitting) + len(held_out)))
    both = _join(*(_thin(part, math.ceil(share * len(part))) for part in (fitting, held_out)))
    unseen = np.isin(both.visits.subject, held_out.visits.subjects)
    u = standardised(model, both)
    inflation = inflation_of(u, both.visits.subject, unseen)
    population = interval_factors(u, inflation)
    u_forecast, pairs = _forecast_residuals(model, both)
    forecast = interval_factors(u_forecast, inflation) if pairs >= 20 else population
    inside = np.abs(u[unseen])
    reference = _thin(held_out, REFERENCE_SHAPES)
    distance = mahalanobis(model, reference)
    return Calibration(
        population=population,
        forecast=forecast,
        forecast_pairs=pairs,
        scores=rules.mahalanobis_score(distance),
        scores_paper=paper_scores(model, reference),
        distances=distance,
        coverage={
            f"{level:g}": float((inside <= population[i])[~np.isnan(inside)].mean())
            for i, level in enumerate(LEVELS)
        },
    )


def standardised(model: PRISM, cohort: Correspondence) -> Floats:
    """(d - mu) / std of every coordinate, (N, M, n); NaN where missing."""
    field = model.field_at(cohort.visits.t)
    d = torch.as_tensor(model.displacements(cohort))
    return ((d - field.mu) / field.std).numpy()


def mahalanobis(model: PRISM, cohort: Correspondence) -> Floats:
    """|L^-1 (d - mu)| of every point, (N, M); NaN where missing."""
    field = model.field_at(cohort.visits.t)
    white = field.whiten(torch.as_tensor(model.displacements(cohort)))
    return white.square().sum(-1).sqrt().numpy()


def paper_scores(model: PRISM, cohort: Correspondence) -> Floats:
    """The paper's anomaly score of every visit from the encoder's times, (N,)."""
    tau = model.encoder(model.template, model.displacements(cohort))
    return rules.paper_score(tau, model.spread(cohort.visits.t))


def _forecast_residuals(model: PRISM, cohort: Correspondence) -> tuple[Floats, int]:
    """Standardised errors of the paper's forecast from each first visit to the later ones."""
    start, later = rules.first_to_later(cohort.visits.subject, cohort.visits.t)
    keep = np.linspace(0, len(start) - 1, min(len(start), MOST_PAIRS)).round().astype(int)
    start, later = start[keep], later[keep]
    if not len(start):
        return np.empty((0, *model.template.shape)), 0
    t = cohort.visits.t
    tau = mle_time(model.table, model.displacements(cohort)[start]).tau
    z = rules.temporal_z(tau, t[start], model.spread(t[start]))
    tau1 = rules.forecast_time(z, t[later], model.spread(t[later]))
    error = cohort.points[later] - model.mean_shapes(tau1)
    return error / model.field_at(t[later]).std.numpy(), len(start)


def _join(a: Correspondence, b: Correspondence) -> Correspondence:
    from dataclasses import replace

    from prism.cohort import Visits

    visits = Visits(
        np.concatenate([a.visits.subject, b.visits.subject]),
        np.concatenate([a.visits.visit, b.visits.visit]),
        np.concatenate([a.visits.t, b.visits.t]),
    )
    return replace(a, points=np.concatenate([a.points, b.points]), visits=visits)


def _thin(cohort: Correspondence, most: int) -> Correspondence:
    """An even selection of at most `most` visits."""
    if len(cohort) <= most:
        return cohort
    return cohort[np.linspace(0, len(cohort) - 1, most).round().astype(int)]
