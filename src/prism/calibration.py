"""From scores to statements: interval widths and p-values learned from known normals."""

from __future__ import annotations

import numpy as np

from prism.typing import Floats, Strings

LEVELS = (0.5, 0.8, 0.9, 0.95)
REFERENCE_SHAPES = 256


def conformal_p_value(score: Floats, reference: Floats) -> Floats:
    """[Eq. conformal] p = (1 + #{reference >= score}) / (1 + #reference); high scores are strange.

    Uniform for a score exchangeable with the reference. NaN scores give NaN.
    """
    reference = np.sort(reference[~np.isnan(reference)])
    above = len(reference) - np.searchsorted(reference, score, side="left")
    return np.where(np.isnan(score), np.nan, (1 + above) / (1 + len(reference)))


def pointwise_p_value(score: Floats, reference: Floats) -> Floats:
    """Conformal p-value at every point: score (N, M) against reference (H, M)."""
    columns = [conformal_p_value(score[:, m], reference[:, m]) for m in range(score.shape[1])]
    return np.stack(columns, axis=1)


def interval_factors(u: Floats, inflation: float) -> Floats:
    """How many standard deviations hold each nominal share of the cohort, by point.

    Args:
        u: (N, M, n) standardised residuals; NaN where missing.
        inflation: How much wider residuals of unseen subjects are than those of the seen.

    Returns:
        (levels, M, n) factors for `LEVELS`; the normal law's own where a point was hardly seen.
    """
    size = np.sort(np.abs(u), axis=0)  # NaN goes last
    count = (~np.isnan(u)).sum(axis=0)
    factors = np.empty((len(LEVELS), *u.shape[1:]))
    for i, level in enumerate(LEVELS):
        rank = np.minimum(np.ceil(level * (count + 1)).astype(int), count) - 1
        here = np.take_along_axis(size, np.maximum(rank, 0)[None], axis=0)[0]
        factors[i] = np.where(count >= 5, here, _normal_factor(level))
    return factors * inflation


def _normal_factor(level: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(0.5 + level / 2))


def inflation_of(u: Floats, subject: Strings, unseen: np.ndarray) -> float:
    """Ratio of the spread of unseen to seen subjects' residuals, believed past its error only.

    Each subject counts once. The ratio of mean squares is moved towards one by one standard
    error, so that a chance difference of a few held-out subjects does not change the intervals.
    """
    size = np.nanmean(np.square(u).reshape(len(u), -1), axis=1)
    names, owner = np.unique(subject, return_inverse=True)
    by_subject = np.bincount(owner, weights=size) / np.bincount(owner)
    is_unseen = np.zeros(len(names), dtype=bool)
    is_unseen[owner[unseen]] = True
    seen, new = by_subject[~is_unseen], by_subject[is_unseen]
    if len(seen) < 2 or len(new) < 2 or seen.mean() == 0:
        return 1.0
    ratio = new.mean() / seen.mean()
    error = ratio * np.hypot(
        new.std(ddof=1) / new.mean() / np.sqrt(len(new)),
        seen.std(ddof=1) / seen.mean() / np.sqrt(len(seen)),
    )
    excess = np.sign(ratio - 1) * max(0.0, abs(ratio - 1) - error)
    return float(np.sqrt(max(1 + excess, 0.25)))
