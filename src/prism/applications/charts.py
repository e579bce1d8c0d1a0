"""Growth charts: centiles over age of anything that can be measured on a shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from prism.applications.measures import Measure, measure_at
from prism.applications.trajectories import as_ages
from prism.cohort import Correspondence, Visits
from prism.errors import QueryError
from prism.model import PRISM
from prism.typing import Floats, Times

CENTILES = (3, 10, 25, 50, 75, 90, 97)
AGES = 61  # of the curves
KNOTS = 33  # ages at which shapes are drawn
DRAWS, LEAST_DRAWS = 4000, 250  # shapes an age
LEAST, MOST = 0.4, 99.6  # the draws tell no centile beyond
_FINE = (LEAST, 1, 2, 3, *range(5, 100, 5), 97, 98, 99, MOST)
_ORDER = 3  # of the differences that smoothing keeps small
_STIFFNESS = tuple(np.logspace(-2, 10, 49).tolist())
_CAUTION = 1.4  # Kim and Gu's (2004) factor, without which cross-validation follows noise
_BATCH = 4_000_000  # coordinates drawn at once

_NOBODY = Visits(np.empty(0, np.str_), np.empty(0, np.str_), np.empty(0))


@dataclass(frozen=True)
class GrowthChart:
    """Centiles of a measure over age, and some visits among them, in the user's units.

    Attributes:
        at: What was asked to be measured.
        label: The measure in words.
        unit: Unit of the measure, e.g. "mm²".
        time_unit: Unit of the ages.
        points: Indices of the template points the measure is read off.
        ages: (T,) ages of the curves.
        extrapolated: (T,) True outside the training ages.
        levels: (K,) centiles drawn, in percent, rising.
        centiles: (K, T) value of each centile at each age; curves never cross.
        visits: The V visits on the chart; none without a cohort.
        value: (V,) the measure at each visit; NaN where a point it needs is missing.
        centile: (V,) its centile at the visit's age, within 0.4 and 99.6; NaN where the value or
            the age is unknown.
        visit_extrapolated: (V,) True where the age lies outside the training ages.
    """

    at: str
    label: str
    unit: str
    time_unit: str
    points: np.ndarray
    ages: Times
    extrapolated: np.ndarray
    levels: Floats
    centiles: Floats
    visits: Visits
    value: Floats
    centile: Floats
    visit_extrapolated: np.ndarray


def growth_chart(
    model: PRISM,
    at: str,
    cohort: Correspondence | None = None,
    subject: str | None = None,
    centiles: Sequence[float] = CENTILES,
    ages: Times | None = None,
    *,
    draws: int = DRAWS,
    seed: int = 0,
) -> GrowthChart:
    """Centiles over age of a point, region, distance, length, area or volume.

    At 33 ages whole shapes are drawn from the population, so that what co-varies stays together,
    and measured. The median, the spread, and the logarithms of the gaps between neighbouring
    centiles as shares of the spread are smoothed over age: curves are smooth and cannot cross.

    Args:
        model: A trained model.
        at: What to measure: "31", "31:x", "12-40", "arm", "arm:size", "area", "volume", ...;
            all of it stands in `prism.applications.measures`.
        cohort: Visits to put on the chart.
        subject: Only the visits of this subject of the cohort.
        centiles: Percentages within 0.4 and 99.6.
        ages: Ages of the curves. Default: the training ages and those of the visits.
        draws: Shapes drawn at each age.
        seed: Same seed, same chart.
    """
    measure = measure_at(model, at)
    levels = _levels(centiles)
    if draws < LEAST_DRAWS:
        raise QueryError(
            f"draws must be at least {LEAST_DRAWS}. Got {draws}.", f"{DRAWS} is a good number."
        )
    shapes = _chosen(model, cohort, subject)
    visits = _NOBODY if shapes is None else shapes.visits
    value = np.empty(0) if shapes is None else measure.of(shapes.points)
    known = visits.t[np.isfinite(visits.t)]
    wanted = _ages(model, ages, known)
    fine = np.union1d(levels, _FINE)
    knots = _knots(np.concatenate([wanted, known]))
    drawn = _quantiles(model, measure, knots, fine, draws, seed)
    course = smooth_quantiles(knots, fine, drawn)
    return GrowthChart(
        at=measure.at,
        label=measure.label,
        unit=measure.unit,
        time_unit=model.time_unit,
        points=measure.points,
        ages=wanted,
        extrapolated=model.outside_ages(wanted),
        levels=levels,
        centiles=course(wanted)[np.isin(fine, levels)],
        visits=visits,
        value=value,
        centile=_centile(value, course(visits.t), fine),
        visit_extrapolated=model.outside_ages(visits.t),
    )


def _levels(centiles: Sequence[float]) -> Floats:
    levels = np.unique(np.asarray(centiles, dtype=np.float64))
    if not levels.size or not ((levels >= LEAST) & (levels <= MOST)).all():
        raise QueryError(
            f"centiles must lie within {LEAST} and {MOST}. Got {list(centiles)}.",
            f"Give percentages such as {', '.join(map(str, CENTILES))}.",
        )
    return levels


def _ages(model: PRISM, ages: Times | None, known: Times) -> Times:
    """Ages of the curves: those asked for, or the training ages stretched to hold the visits."""
    if ages is None:
        every = np.concatenate([np.array(model.ages), known])
        return np.linspace(every.min(), every.max(), AGES)
    return np.unique(as_ages(ages))


def _chosen(
    model: PRISM, cohort: Correspondence | None, subject: str | None
) -> Correspondence | None:
    """The visits to put on the chart, after checking that they fit the model."""
    if cohort is None:
        if subject is not None:
            raise QueryError(
                "a subject was named, but no cohort to find its visits in.",
                "Give the cohort too: cohort=..., or --cohort on the command line.",
            )
        return None
    model.displacements(cohort)  # refuses a cohort that does not fit
    return cohort if subject is None else cohort.of_subjects([subject])


def _knots(ages: Times) -> Times:
    low, high = ages.min(), ages.max()
    return np.linspace(low, high, KNOTS) if high > low else np.array([low])


def _quantiles(
    model: PRISM, measure: Measure, knots: Times, levels: Floats, draws: int, seed: int
) -> Floats:
    """(P, T) quantiles of the measure among shapes drawn at every knot."""
    size = max(1, _BATCH // model.template.size)
    counts = [min(size, draws - start) for start in range(0, draws, size)]
    seeds = np.random.default_rng(seed).integers(2**31, size=(len(knots), len(counts)))
    columns = []
    for t, own in zip(knots.tolist(), seeds.tolist(), strict=True):
        parts = zip(counts, own, strict=True)
        values = [measure.of(model.draw_shapes(t, count, number)) for count, number in parts]
        columns.append(np.quantile(np.concatenate(values), levels / 100))
    return np.stack(columns, axis=-1)


def smooth_quantiles(knots: Times, levels: Floats, drawn: Floats) -> Callable[[Times], Floats]:
    """Smooth quantiles over age so that they cannot cross.

    Args:
        knots: (T,) ages, evenly spaced and rising, or one.
        levels: (P,) percentages, rising.
        drawn: (P, T) quantiles at the knots, with the noise of a finite sample.

    Returns:
        A function of ages (V,) that gives (P, V) quantiles, rising with the level.
    """
    from scipy.interpolate import CubicSpline, PchipInterpolator

    low, middle, high = (int(np.abs(levels - level).argmin()) for level in (15, 50, 85))
    least = 1e-9 * (float(np.ptp(drawn)) or 1.0)
    width = np.maximum(drawn[high] - drawn[low], least)
    ratios = np.log(np.maximum(np.diff(drawn, axis=0), least) / width)
    one = np.ones(1)
    centre = whittaker(drawn[[middle]], width, one)
    scale = np.maximum(whittaker(width[None], width, one), width / 2)  # never none at all
    shares = whittaker(ratios, np.ones(len(knots)), np.diff(levels))
    if len(knots) == 1:
        knots = knots[0] + np.arange(2.0)
        centre, scale, shares = (np.repeat(rows, 2, axis=1) for rows in (centre, scale, shares))
    centre_at, shares_at = CubicSpline(knots, centre, axis=1), CubicSpline(knots, shares, axis=1)
    scale_at = PchipInterpolator(knots, scale, axis=1)  # positive between positive values

    def at(t: Times) -> Floats:
        gaps = scale_at(t) * np.exp(shares_at(t))
        rise = np.concatenate([np.zeros((1, len(t))), gaps.cumsum(axis=0)])
        return centre_at(t) + rise - rise[middle]

    return at


def whittaker(rows: Floats, noise: Floats, weight: Floats) -> Floats:
    """Whittaker's smoother: least sum of squares and of squared third differences, (R, T).

    The balance of the two, one for all rows, is chosen by generalised cross-validation.

    Args:
        rows: (R, T) noisy series over evenly spaced ages.
        noise: (T,) standard deviation of the noise at each age, to a factor.
        weight: (R,) how much each row counts in the choice of the balance.
    """
    count = rows.shape[1]
    if count <= _ORDER:
        return rows
    noise = np.maximum(noise / noise.max(), 1e-3)  # one age is not trusted beyond all measure
    bends = np.diff(np.eye(count), _ORDER, axis=0) * noise
    roughness, basis = np.linalg.eigh(bends.T @ bends)
    waves = (rows / noise) @ basis

    def keep(stiffness: float) -> Floats:
        return 1 / (1 + stiffness * np.maximum(roughness, 0))

    def cost(stiffness: float) -> float:
        lost = (weight[:, None] * ((1 - keep(stiffness)) * waves) ** 2).sum()
        free = 1 - _CAUTION * keep(stiffness).mean()
        return float(lost / free**2) if free > 0 else np.inf

    best = min(_STIFFNESS, key=cost)
    return (keep(best) * waves) @ basis.T * noise


def _centile(value: Floats, drawn: Floats, levels: Floats) -> Floats:
    """(V,) centile of each value among quantiles (P, V) of its age, even in normal deviates."""
    from scipy.special import ndtr, ndtri

    deviates = ndtri(levels / 100)
    z = [np.interp(v, own, deviates) for v, own in zip(value, drawn.T, strict=True)]
    unknown = np.isnan(value) | np.isnan(drawn).any(axis=0)
    return np.where(unknown, np.nan, 100 * ndtr(np.array(z, dtype=np.float64)))
