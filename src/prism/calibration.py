"""From scores to statements: interval widths and p-values learned from known normals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from prism.typing import Floats, Strings

LEVELS = (0.5, 0.8, 0.9, 0.95)


def conformal_p_value(score: Floats, reference: Floats) -> Floats:
    """[Eq. conformal] p = (1 + #{reference >= score}) / (1 + #reference); high scores are strange.

    Uniform for a score exchangeable with the reference. NaN scores give NaN.
    """
    return crossed_p_value(np.asarray(score)[None], [reference])


def crossed_p_value(scores: Floats, references: Sequence[Floats]) -> Floats:
    """[Eq. cross-conformal] The same where several judges each know reference scores of their own.

    p = (1 + sum over judges of #{reference >= score}) / (1 + #references), each judge comparing
    the new score with those it gave, both to subjects it has not seen. NaN where no judge speaks.

    Args:
        scores: (K, ...) one score a judge.
        references: K arrays of scores, each of its judge.
    """
    above, count = np.zeros(scores.shape[1:]), 0
    for score, reference in zip(scores, references, strict=True):
        higher, known = _counted(score, reference)
        above, count = above + higher, count + known
    return np.where(np.isnan(scores).all(axis=0), np.nan, (1 + above) / (1 + count))


def _counted(score: Floats, reference: Floats) -> tuple[np.ndarray, int]:
    """How many known references are as high as each score, and how many there are."""
    known = np.sort(reference[~np.isnan(reference)])
    return len(known) - np.searchsorted(known, score, side="left"), len(known)


def agreed_p_value(scores: Floats, references: Sequence[Floats], agreement: float) -> Floats:
    """[Eq. agreed] p-value of the judges' mean opinion, for judges who agree only so far.

    Where each judge errs in its own way the mean of p-values is drawn to the middle, and too few
    normals are called unusual. Here ranks become normal scores z, whose mean over K judges has the
    variance (1 + (K - 1) a) / K if any two correlate by a: p = Phi(mean z / its deviation), never
    below what counting allows. NaN where no judge speaks.

    Args:
        scores: (K, N) one score a judge.
        references: K arrays of scores, each of its judge.
        agreement: a, see `agreement`.
    """
    from scipy.special import ndtr, ndtri

    z = np.full(scores.shape, np.nan)
    for k, (score, reference) in enumerate(zip(scores, references, strict=True)):
        above, known = _counted(score, reference)
        if known:
            z[k] = np.where(np.isnan(score), np.nan, ndtri((above + 0.5) / (known + 1)))
    heard = ~np.isnan(z)
    judges = np.maximum(heard.sum(axis=0), 1)
    deviation = np.sqrt((1 + (judges - 1) * agreement) / judges)
    p = ndtr(np.where(heard, z, 0.0).sum(axis=0) / judges / deviation)
    least = crossed_p_value(np.full((len(scores), 1), np.inf), references)
    return np.where(heard.any(axis=0), np.maximum(p, least), np.nan)


def agreement(opinions: Floats, own: np.ndarray) -> float:
    """[Eq. agreement] Correlation of a judge's scores of those it has not seen with others' scores.

    By normal scores of ranks among those a judge has not seen. The others have seen them, so that
    it is rather too low than too high. 1 where nothing can be compared.

    Args:
        opinions: (K, N) one score a judge; NaN where it does not speak.
        own: (N,) which judge has not seen the subject.
    """
    from scipy.special import ndtri
    from scipy.stats import rankdata

    common, each = 0.0, 0.0
    for k in range(len(opinions)):
        heard = opinions[:, (own == k) & ~np.isnan(opinions).any(axis=0)]
        z = ndtri(rankdata(heard, axis=1) / (heard.shape[1] + 1))
        common += float(z[k] @ z.sum(axis=0) - z[k] @ z[k])
        each += float(z[k] @ z[k]) * (len(opinions) - 1)
    return min(max(common / each, 0.0), 1.0) if each else 1.0


def pays(gain: Floats, subject: Strings) -> bool:
    """Whether visits (N,) of some subjects gain more than one standard error over the subjects."""
    known = np.isfinite(gain)
    _, owner = np.unique(subject[known], return_inverse=True)
    mean = np.bincount(owner, gain[known]) / np.bincount(owner)
    return len(mean) > 1 and bool(mean.mean() > mean.std(ddof=1) / np.sqrt(len(mean)))


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


def interval_factors(u: Floats) -> Floats:
    """How many standard deviations hold each nominal share of the cohort, by point.

    Args:
        u: (N, M, n) standardised residuals; NaN where missing.

    Returns:
        (levels, M, n) factors for `LEVELS`; the normal law's own where a point was hardly seen.
    """
    if not len(u):
        normal = np.array([normal_factor(level) for level in LEVELS])
        return normal[:, None, None] * np.ones(u.shape[1:])
    size = np.sort(np.abs(u), axis=0)  # NaN goes last
    count = (~np.isnan(u)).sum(axis=0)
    factors = np.empty((len(LEVELS), *u.shape[1:]))
    for i, level in enumerate(LEVELS):
        rank = np.minimum(np.ceil(level * (count + 1)).astype(int), count) - 1
        here = np.take_along_axis(size, np.maximum(rank, 0)[None], axis=0)[0]
        factors[i] = np.where(count >= 5, here, normal_factor(level))
    return factors


def normal_factor(level: float) -> float:
    """How many standard deviations either side hold this share of a normal."""
    from scipy.special import ndtri

    return float(ndtri(0.5 + level / 2))
