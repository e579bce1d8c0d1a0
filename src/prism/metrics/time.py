"""How well intrinsic time is recovered: correlation, determination, error in the user's unit."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from prism.errors import QueryError
from prism.metrics._door import same_shape
from prism.typing import Floats

_NAMES = "tau_hat and tau_true"


def pearson_r(tau_hat: ArrayLike, tau_true: ArrayLike) -> float:
    """Pearson correlation, between -1 and 1, without unit.

    Args:
        tau_hat: Estimates, any shape, finite.
        tau_true: Truth, the same shape.

    Returns:
        The correlation; NaN where it is undefined (either side constant).
    """
    x, y = _finite(tau_hat, tau_true)
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    x, y = x - x.mean(), y - y.mean()
    # r = ⟨x, y⟩ / (|x| |y|)
    return float(np.clip((x / np.linalg.norm(x)) @ (y / np.linalg.norm(y)), -1.0, 1.0))


def r_squared(tau_hat: ArrayLike, tau_true: ArrayLike) -> float:
    """Coefficient of determination R², at most 1, without unit; not the square of `pearson_r`.

    It falls below the squared correlation when estimates are biased or stretched, and below zero
    when the mean of the truth would have been the better estimate.

    Args:
        tau_hat: Estimates, any shape, finite.
        tau_true: Truth, the same shape.

    Returns:
        The coefficient; NaN where it is undefined (truth constant).
    """
    x, y = _finite(tau_hat, tau_true)
    if np.ptp(y) == 0:
        return float("nan")
    # R² = 1 − Σ(τ̂ − τ)² / Σ(τ − τ̄)²
    return float(1 - ((x - y) ** 2).sum() / ((y - y.mean()) ** 2).sum())


def mae(tau_hat: ArrayLike, tau_true: ArrayLike) -> float:
    """Mean absolute error in the unit of the times.

    Args:
        tau_hat: Estimates, any shape, finite.
        tau_true: Truth, the same shape.

    Returns:
        The error.
    """
    x, y = _finite(tau_hat, tau_true)
    return float(np.abs(x - y).mean())


def time_metrics(tau_hat: ArrayLike, tau_true: ArrayLike) -> dict[str, float | int]:
    """Every time metric over the pairs that have both times, with the others counted.

    Args:
        tau_hat: Estimates, any shape, NaN = failed.
        tau_true: Truth, the same shape, NaN = unknown.

    Returns:
        `r`, `r2`, `mae` (unit of the times; NaN where undefined), `count` pairs used and
        `missing` pairs left out.
    """
    x, y = same_shape(tau_hat, tau_true, _NAMES)
    both = np.isfinite(x) & np.isfinite(y)
    counts = {"count": int(both.sum()), "missing": int((~both).sum())}
    if not both.any():
        return {"r": np.nan, "r2": np.nan, "mae": np.nan, **counts}
    pair = x[both], y[both]
    return {"r": pearson_r(*pair), "r2": r_squared(*pair), "mae": mae(*pair), **counts}


def _finite(tau_hat: ArrayLike, tau_true: ArrayLike) -> tuple[Floats, Floats]:
    x, y = same_shape(tau_hat, tau_true, _NAMES)
    if x.size == 0 or not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise QueryError(
            f"{_NAMES} must be finite, at least one pair. Got shape {x.shape} with "
            f"{int((~np.isfinite(x)).sum())} and {int((~np.isfinite(y)).sum())} missing values.",
            "Use prism.metrics.time_metrics: it leaves missing pairs out and counts them.",
        )
    return x.ravel(), y.ravel()
