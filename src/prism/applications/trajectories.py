"""What does the average anatomy look like at an age, and how far do healthy people differ?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from prism.errors import QueryError
from prism.fisher import (
    FieldRate,
    covariance_information,
    field_and_rate,
    mean_information,
    separated_spread,
)
from prism.model import PRISM
from prism.typing import Cells, Floats, Shapes, Times


@dataclass(frozen=True)
class Trajectory:
    """The population at a series of ages, in the user's units.

    Attributes:
        t: (T,) ages.
        points: (T, M, n) mean shape.
        Sigma: (T, M, n, n) covariance of every point.
        info: (T, M) Fisher information I_mu, 1 / (time unit)^2.
        info_full: (T, M) I_mu + I_Sigma.
        sigma_tau: (T, M) temporal spread of the population, the error of placing one point taken
            out; infinite where time cannot be read.
        sigma_tau_bound: (T, M) the paper's bound I_mu^-1/2; infinite likewise.
        lower, upper: (T, M, n) calibrated 90% interval of every coordinate.
        extrapolated: (T,) True outside the training ages.
        cells: Segments or triangles of the template, if any.
    """

    t: Times
    points: Shapes
    Sigma: Floats
    info: Floats
    info_full: Floats
    sigma_tau: Floats
    sigma_tau_bound: Floats
    lower: Shapes
    upper: Shapes
    extrapolated: np.ndarray
    cells: Cells | None


def trajectory(model: PRISM, t: float | Times, level: float = 0.9) -> Trajectory:
    """Mean shape, spread and Fisher information at ages t.

    Args:
        model: A trained model.
        t: One age or several, in the model's time unit.
        level: Nominal share of the interval (0.5, 0.8, 0.9 or 0.95).
    """
    times = as_ages(t)
    rates = [_at(model, float(time)) for time in times]
    mu = np.stack([rate.field.mu.numpy() for rate in rates])
    std = np.stack([rate.field.std.numpy() for rate in rates])
    info = np.stack([mean_information(rate).numpy() for rate in rates])
    extra = np.stack([covariance_information(rate).numpy() for rate in rates])
    bound = model.spread(times)
    noise = model.covariation.measured
    separated = np.stack([
        separated_spread(rate.field, rate.mu_t, noise).numpy() for rate in rates
    ])  # fmt: skip
    width = model.interval_factor("population", level) * std
    points = model.template + mu
    return Trajectory(
        t=times,
        points=points,
        Sigma=np.stack([rate.field.Sigma.numpy() for rate in rates]),
        info=info,
        info_full=info + extra,
        sigma_tau=np.where(np.isfinite(bound), separated, np.inf),
        sigma_tau_bound=bound,
        lower=points - width,
        upper=points + width,
        extrapolated=model.outside_ages(times),
        cells=model.cells,
    )


def as_ages(t: float | Times) -> Times:
    """Return one age or several as (T,) numbers, T at least 1.

    Raises:
        QueryError: They are none, or not numbers in a row, or not finite.
    """
    try:
        ages = np.atleast_1d(np.asarray(t, dtype=np.float64))
    except (TypeError, ValueError):
        ages = np.empty(0)
    if ages.ndim != 1 or not ages.size or not np.isfinite(ages).all():
        raise QueryError(
            f"ages must be finite numbers, one or a list. Got {t!r}.",
            "Give ages such as 5 or [1, 2, 5].",
        )
    return ages


def _at(model: PRISM, t: float) -> FieldRate:
    p = torch.as_tensor(model.template, device=model.device)
    rate = field_and_rate(model, p, torch.tensor(t, dtype=p.dtype, device=p.device))
    field = type(rate.field)(rate.field.mu.cpu(), rate.field.L.cpu())
    return FieldRate(field, rate.mu_t.cpu(), rate.L_t.cpu())
