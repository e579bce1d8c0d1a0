"""Do stated uncertainties hold: coverage of intervals, PIT, error of a stated spread."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from prism.errors import QueryError
from prism.metrics._door import floats, level_inside, positive_count, same_shape
from prism.typing import Floats

LEVELS = (0.5, 0.8, 0.9, 0.95)


def coverage(lower: ArrayLike, upper: ArrayLike, value: ArrayLike) -> float:
    """Share of the finite values inside their intervals, ends included.

    Entries whose value is not finite or whose bound is NaN are left out; an infinite bound is an
    open end. An interval whose bounds cross holds nothing.

    Args:
        lower: Lower bounds, broadcast against the values.
        upper: Upper bounds, broadcast against the values.
        value: Values, any shape.

    Returns:
        The share, between 0 and 1.
    """
    value, lower, upper = floats(value, "value"), floats(lower, "lower"), floats(upper, "upper")
    try:
        lower, upper = (np.broadcast_to(bound, value.shape) for bound in (lower, upper))
    except ValueError as error:
        raise QueryError(
            f"lower {lower.shape} and upper {upper.shape} do not fit value {value.shape}.",
            "Pass one lower and one upper bound for each value.",
        ) from error
    known = np.isfinite(value) & ~np.isnan(lower) & ~np.isnan(upper)
    inside = (lower <= value) & (value <= upper)
    return float(_some(inside[known], "value").mean())


def coverage_table(z: ArrayLike, levels: Iterable[float] = LEVELS) -> dict[float, float]:
    """Coverage of central normal intervals of nominal levels by standardised residuals.

    Args:
        z: Residuals over their stated standard deviation, any shape; NaN is left out.
        levels: Nominal levels, between 0 and 1.

    Returns:
        Share of |z| within the level's normal quantile, by level.
    """
    size = np.abs(_known(z))
    # coverage(q) = share of |z| ≤ Φ⁻¹((1 + q) / 2)
    return {q: float((size <= ndtri((1 + level_inside(q)) / 2)).mean()) for q in levels}


def pit(z: ArrayLike) -> Floats:
    """Probability integral transform Φ(z): uniform on (0, 1) if the stated law holds.

    Args:
        z: Residuals over their stated standard deviation, any shape; NaN stays NaN.

    Returns:
        Values between 0 and 1, of the same shape.
    """
    return ndtr(floats(z, "z"))


def pit_histogram(z: ArrayLike, bins: int = 10) -> tuple[Floats, Floats]:
    """Histogram of the PIT: flat at 1 if calibrated, a bowl if over-, a hill if under-confident.

    Args:
        z: Residuals over their stated standard deviation, any shape; NaN is left out.
        bins: Number of bins of equal width on [0, 1].

    Returns:
        (bins,) density, of mean 1, and (bins + 1,) edges.
    """
    values = pit(_known(z))
    return np.histogram(values, bins=positive_count(bins, "bins"), range=(0.0, 1.0), density=True)


def relative_error(estimate: ArrayLike, truth: ArrayLike) -> float:
    """Mean of |estimate - truth| / truth over the entries where both are finite, without unit.

    Args:
        estimate: Estimated positive values, e.g. sigma_tau; any shape.
        truth: True positive values, the same shape.

    Returns:
        The error; 0.1 means ten per cent off.
    """
    estimate, truth = same_shape(estimate, truth, "estimate and truth")
    both = np.isfinite(estimate) & np.isfinite(truth)
    estimate, truth = _some(estimate[both], "pair of estimate and truth"), truth[both]
    if not (truth > 0).all():
        raise QueryError(
            f"truth must be positive for a relative error. Got {truth.min()}.",
            "Leave out the entries whose truth is zero, or use mae.",
        )
    return float((np.abs(estimate - truth) / truth).mean())


def _known(z: ArrayLike) -> Floats:
    """(k,) residuals that are not NaN; an infinite one is a miss and stays."""
    z = floats(z, "z")
    return _some(z[~np.isnan(z)], "z")


def _some(values: np.ndarray, name: str) -> np.ndarray:
    if values.size == 0:
        raise QueryError(
            f"no finite {name} is left to judge.",
            "Report the failures; there is nothing to average.",
        )
    return values
