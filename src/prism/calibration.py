"""From scores to statements: interval widths and p-values learned from known normals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from prism.typing import Floats, Strings

LEVELS = (0.5, 0.8, 0.9, 0.95)
ROUNDING = 1e-9


def conformal_p_value(score: Floats, reference: Floats) -> Floats:
    """[Eq. conformal] p = (1 + #{reference >= score}) / (1 + #reference); high scores are strange.

    Uniform for a score exchangeable with the reference. NaN scores give NaN.
    """
    above, count = _counted(score, reference)
    return np.where(np.isnan(score), np.nan, (1 + above) / (1 + count))


def _counted(score: Floats, reference: Floats) -> tuple[np.ndarray, int]:
    """How many known references are as high as each score, and how many there are."""
    known = np.sort(reference[~np.isnan(reference)])
    return len(known) - np.searchsorted(known, score, side="left"), len(known)


def combined_p_value(
    scores: Floats, references: Sequence[Floats], panel: np.ndarray | None = None
) -> Floats:
    """[Eq. combined] One p-value of several judges, each with reference scores of its own.

    Each judge compares the new score with those it gave, both to subjects it has not seen. Judges
    of one panel are nearly one judge, and their counts are added up:
    p_k = (1/2 + #{reference >= score}) / (1 + #reference). tan(pi (1/2 - p_k)) is then Cauchy, and
    so is its mean over panels, be they independent or one; in between p < 0.1 holds for at most 12%
    of normals, where the mean of p-values, drawn to the middle, is that small for 4% (four panels
    who correlate by 0.6). Never below what counting allows; NaN where no judge speaks.

    Args:
        scores: (J, ...) one score a judge; NaN where it does not speak.
        references: J arrays of scores, each of its judge.
        panel: (J,) number of the panel each judge is of; by default each is one.
    """
    panels = (
        np.arange(len(references)) if panel is None else np.unique(panel, return_inverse=True)[1]
    )
    above = np.zeros((int(panels.max(initial=-1)) + 1, *scores.shape[1:]))
    people = np.zeros(above.shape)
    for k, score, reference in zip(panels, scores, references, strict=True):
        higher, count = _counted(score, reference)
        speaks = ~np.isnan(score)
        above[k] += np.where(speaks, higher, 0)
        people[k] += np.where(speaks, count, 0)
    speaks = people > 0
    strange = np.tan(np.pi * (0.5 - (above + 0.5) / (people + 1)))
    total = np.where(speaks, strange, 0.0).sum(0)
    p = 0.5 - np.arctan(total / np.maximum(speaks.sum(0), 1)) / np.pi
    return np.where(speaks.any(0), np.maximum(p, 1 / (1 + people.sum(0))), np.nan)


def false_discovery_rate(p: Floats) -> Floats:
    """[Eq. fdr] Benjamini and Hochberg's adjusted p-values along the last axis; NaN stays.

    Calling everything with a value below q abnormal, at most a share q of it is so by chance.
    """
    count = (~np.isnan(p)).sum(axis=-1, keepdims=True)
    order = np.argsort(p, axis=-1)  # NaN goes last
    rank = np.arange(1, p.shape[-1] + 1)
    raised = np.take_along_axis(p, order, axis=-1) * count / rank
    least = np.minimum.accumulate(np.where(np.isnan(raised), np.inf, raised)[..., ::-1], axis=-1)
    adjusted = np.empty_like(p)
    np.put_along_axis(adjusted, order, np.minimum(least[..., ::-1], 1.0), axis=-1)
    return np.where(np.isnan(p), np.nan, adjusted)


def interval_factors(u: Floats, subject: Strings | None = None) -> Floats:
    """How many standard deviations hold each nominal share of the cohort, by point.

    People count alike, however often they came.

    Args:
        u: (N, M, n) standardised residuals; NaN where missing.
        subject: (N,) whose they are; each a person's own if not given.

    Returns:
        (levels, M, n) factors for `LEVELS`; the normal law's own where a point was hardly seen.
    """
    if not len(u):
        normal = np.array([normal_factor(level) for level in LEVELS])
        return normal[:, None, None] * np.ones(u.shape[1:])
    weight = np.ones(len(u)) if subject is None else people_alike(subject)
    order = np.argsort(np.abs(u), axis=0)  # NaN goes last
    size = np.take_along_axis(np.abs(u), order, axis=0)
    held = np.cumsum(np.where(np.isnan(size), 0.0, weight[order]), axis=0)
    people, count = held[-1], (~np.isnan(size)).sum(axis=0)
    one_more = people + people / np.maximum(count, 1)
    factors = np.empty((len(LEVELS), *u.shape[1:]))
    for i, level in enumerate(LEVELS):
        wanted = np.minimum(level * one_more, people) * (1 - ROUNDING)
        rank = np.minimum((held < wanted).sum(axis=0), np.maximum(count - 1, 0))
        here = np.take_along_axis(size, rank[None], axis=0)[0]
        factors[i] = np.where(count >= 5, here, normal_factor(level))
    return factors


def people_alike(subject: Strings) -> Floats:
    """Weights (N,) of visits by which people count alike, however often they came."""
    owner = np.unique(subject, return_inverse=True)[1]
    return 1 / np.bincount(owner)[owner] if len(owner) else np.ones(0)


def between_factors(alone: Floats, together: Floats, subject: Strings | None = None) -> Floats:
    """Interval factors half-way, by factors, between two ways (N, M, n) to judge the same people.

    New people will be judged by several networks together, none of which has seen them: they err
    more than for those whom most of them have seen, and less than one that has not by itself.
    """
    return np.sqrt(interval_factors(alone, subject) * interval_factors(together, subject))


def normal_factor(level: float) -> float:
    """How many standard deviations either side hold this share of a normal."""
    from scipy.special import ndtri

    return float(ndtri(0.5 + level / 2))


def robust_scale(u: Floats, subject: Strings) -> float:
    """Standard deviation by what holds nine in ten: one stray visit of a few counts for little.

    Of n people nine in ten are 0.9 (n + 1), so that one more lies within as often as that; people
    count alike, however often they came. One where nothing is known (NaN).
    """
    known = np.isfinite(u)
    if not known.any():
        return 1.0
    size, weight = np.abs(u[known]), people_alike(subject[known])
    order = np.argsort(size)
    people, weight = len(np.unique(subject[known])), weight[order]
    rank = np.cumsum(weight) + (1 - weight) / 2  # 1 to n where everybody came once
    wanted = 0.9 * (people + 1)
    return float(np.interp(wanted, rank, size[order])) / normal_factor(0.9)
