"""The plates of a report: a figure, its title, and two sentences that say how to read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from prism.applications import Anomaly, Prediction, TimeMap, trajectory
from prism.cohort import Correspondence, Truth
from prism.model import PRISM
from prism.report import figures
from prism.report.bands import age_grid
from prism.report.forecasts import is_surface

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Plate:
    """A figure with its words.

    Attributes:
        name: Name of its file, without ending; never a subject's.
        title: Heading.
        caption: How to read it.
        figure: The drawing.
    """

    name: str
    title: str
    caption: str
    figure: Figure


@dataclass(frozen=True)
class Findings:
    """What the applications computed about the visits of a report."""

    model: PRISM
    cohort: Correspondence
    truth: Truth | None
    times: TimeMap
    anomaly: Anomaly
    prediction: Prediction | None


def draw_plates(found: Findings) -> list[Plate]:
    """Draw every figure the findings allow, in reading order."""
    plates = [*_population_plates(found.model, found.truth), *_visit_plates(found)]
    return [plate for plate in plates if plate is not None]


def _population_plates(model: PRISM, truth: Truth | None) -> list[Plate]:
    over_ages = trajectory(model, age_grid(model))
    known = truth is not None
    return [
        Plate(
            "shape_fan",
            "The average shape, and how far healthy people differ",
            _fan_caption(model, known),
            figures.shape_fan(model, truth),
        ),
        Plate(
            "spread_bands",
            "How wide is normal, age by age",
            "Each band holds the intrinsic times of about 95% of healthy people of an age; where "
            "it is narrow, age can be read from this place, and where it widens, people "
            "of one age differ."
            + _truth_words(
                known,
                " Blue is the truth of the simulation, "
                "red what the model found; the closer the rims, the better.",
            ),
            figures.spread_bands(model, truth, over_ages),
        ),
        Plate(
            "information_map",
            "Where on the shape time can be read",
            "Dark places have a small temporal spread and tell age precisely, bright ones "
            "tell it roughly. In grey places the shape does not move enough with age, against "
            "how much people differ, for time to be read at all.",
            figures.information_map(model),
        ),
        Plate(
            "information_ablation",
            "Why the mean's motion, not the changing variance, measures spread",
            "The red rims use the information in the motion of the average shape, the grey "
            "rims add the information in the changing variance, which is about the population "
            "and not about one person. The grey band is never wider"
            + ("; which of the two keeps to the rim of the blue truth?" if known else "."),
            figures.information_ablation(model, truth, over_ages),
        ),
    ]


def _fan_caption(model: PRISM, known: bool) -> str:
    if model.dimension == 3:
        return (
            "The average shape of the middle age between the average shapes of people who run two "
            "spreads behind and ahead of it as a whole; about 95% of healthy people run between "
            "them. Colour is the temporal spread of each place: dark ones keep close to their age."
        )
    return (
        "The red outline is the average shape of an age; about 95% of healthy people of that age "
        "look between the orange outline (younger) and the purple one (older). Where the three "
        "fall together, healthy people of one age look alike."
        + _truth_words(known, " The broad blue line is the true average of the simulation.")
    )


def _truth_words(known: bool, words: str) -> str:
    return words if known else ""


def _visit_plates(found: Findings) -> list[Plate | None]:
    model, truth = found.model, found.truth
    return [
        Plate(
            "time_scatter",
            "How old each visit looks",
            "Each dot is a visit, and thin lines join the visits of one subject; dots above the "
            "dashed line look older than they are, dots below look younger. About 95% of "
            "healthy visits are expected inside the band."
            + _truth_words(
                truth is not None, " The right panel sets the estimate against the truth."
            ),
            figures.time_scatter(model, found.times, truth),
        ),
        _forecast_plate(found),
        Plate(
            "anomaly_ranking",
            "Which visits are unusual, and where",
            "A high score means that some part of the shape is far from normal for the age; a "
            "p-value of 0.05 is reached by one healthy visit in twenty. The shape on the right is "
            "the most unusual visit, and its dark places are those that depart from normal.",
            figures.anomaly_ranking(model, found.cohort, found.anomaly),
        ),
    ]


def _forecast_plate(found: Findings) -> Plate | None:
    if found.prediction is None:
        return None
    return Plate(
        "prediction_overlay",
        "Forecasts from the first visit",
        _surface_words(found.prediction)
        if is_surface(found.model)
        else _outline_words(found.prediction, found.model.dimension),
        figures.prediction_overlay(found.model, found.cohort, found.prediction, found.truth),
    )


def _surface_words(prediction: Prediction) -> str:
    later = (prediction.row1 >= 0).any()
    compared = (
        " Above each stands how far it was off what was observed later, and how far the "
        "population's average was (root mean square)."
        if later
        else " No later visit was there to compare with."
    )
    return (
        "Each shape is forecast from the first visit alone, in two views; colour shows how far "
        "it lies from what the population average would have said." + compared + " The subjects "
        "are those with the longest forecasts."
    )


def _outline_words(prediction: Prediction, dimension: int) -> str:
    compared = (
        "the blue dots are what was observed later"
        if (prediction.row1 >= 0).any()
        else "no later visit was there to compare with"
    )
    row = (
        "The lower row enlarges the framed place, where the forecast departs most from the average"
        if dimension == 2
        else "The two rows are two views"
    )
    return (
        "The red shape is forecast from the first visit (grey) alone, the light band holds each "
        f"coordinate with 90% probability, and {compared}; the black one is what the "
        f"population average would have said. {row}; the subjects are those with the "
        "longest forecasts."
    )
