"""The page: one HTML file that needs nothing but a browser."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from typing import Any

import numpy as np

from prism.registration import Quality
from prism.report.bands import age_grid
from prism.report.html import render
from prism.report.matches import match_rows
from prism.report.plates import Findings, Plate
from prism.report.style import bare_age, real_unit
from prism.report.tables import MOST_ROWS, evaluation_rows, key_numbers, visit_rows

TEMPLATE = "template.html.j2"


@dataclass(frozen=True)
class Evaluation:
    """How well the model did, and on whom.

    Attributes:
        scores: The dictionary of `applications.evaluate`; empty where nothing could be measured.
        on_whom: Which visits it was measured on, in words.
        problem: Why nothing could be measured, or nothing.
    """

    scores: dict[str, Any]
    on_whom: str
    problem: str = ""


def render_page(
    found: Findings,
    plates: list[tuple[Plate, bytes]],
    evaluation: Evaluation | None,
    visits_given: int,
    quality: Quality | None = None,
) -> str:
    """Return the page as HTML text; everything in it that came from outside is escaped.

    Args:
        found: What the applications computed.
        plates: Figures with their PNG bytes.
        evaluation: How well the model did, if that could be measured.
        visits_given: Visits of the cohort before any were left out.
        quality: How well the raw shapes were registered, if they were.
    """
    return render(
        TEMPLATE,
        model=found.model,
        cohort=found.cohort,
        time_unit=real_unit(found.model.time_unit),
        length_unit=real_unit(found.model.length_unit),
        numbers=key_numbers(found),
        plates=[_inline(plate, image) for plate, image in plates],
        evaluation=evaluation,
        evaluation_rows=evaluation_rows(evaluation.scores, found.model) if evaluation else [],
        match_rows=match_rows(quality) if quality else [],
        visits=visit_rows(found),
        most_rows=MOST_ROWS,
        visits_given=visits_given,
        limits=limits(found),
        provenance=provenance_rows(found),
    )


def _inline(plate: Plate, image: bytes) -> dict[str, str]:
    data = "data:image/png;base64," + b64encode(image).decode("ascii")
    return {"name": plate.name, "title": plate.title, "caption": plate.caption, "image": data}


def limits(found: Findings) -> list[str]:
    """For which ages and anatomy the answers hold, and how many visits fall outside."""
    model, visits = found.model, found.cohort.visits
    first, last = (bare_age(model, t) for t in model.ages)
    unit = f" {real_unit(model.time_unit)}" if real_unit(model.time_unit) else ""
    sigma_tau = model.spread(age_grid(model, 21))
    never = int(np.isinf(sigma_tau).all(axis=0).sum())
    some = int(np.isinf(sigma_tau).any(axis=0).sum()) - never
    aged = model.outside_ages(visits.t)
    lines = [
        f"The model holds for ages {first} to {last}{unit} and for the anatomy of "
        f"“{model.name}”, brought into correspondence the same way; for nothing else.",
        f"{aged.sum()} of {len(visits)} visits lie outside these ages, and "
        f"{found.times.extrapolated.sum()} look younger or older than them: those answers "
        "are extrapolated.",
        f"Time cannot be read at {never} of {len(model.template)} template points at any age, and "
        f"at {some} more at some ages; no intrinsic time is given there.",
    ]
    missing = float((~found.cohort.observed).mean())
    if missing > 0:
        lines.append(f"{100 * missing:.1f}% of the points were missing and were left out.")
    lines += _assumed_ages(found)
    normals = len(model.calibration.scores)
    lines.append(
        f"P-values compare with {normals} held-out normal shapes: none can be smaller than "
        f"{1 / (normals + 1):.2g}, and unusual does not mean ill."
    )
    return lines


def _assumed_ages(found: Findings) -> list[str]:
    """What stood in for ages that were unknown or uncertain."""
    assumed, unknown = found.anomaly.age_assumed, np.isnan(found.cohort.visits.t)
    counts = {"unknown": (assumed & unknown).sum(), "uncertain": (assumed & ~unknown).sum()}
    told = " and of ".join(f"{number} {word}" for word, number in counts.items() if number)
    if not told:
        return []
    return [
        f"Ages that were not known exactly (of {len(assumed)} visits, those of {told}): the middle "
        "of what shape and record say of the age stood in, so that being early or late hardly "
        "counts as unusual there."
    ]


def provenance_rows(found: Findings) -> list[tuple[str, str]]:
    """What made the model and the report."""
    from prism import __version__

    facts = dict(found.model.provenance)
    config = facts.pop("config", {})
    cohort = found.cohort
    return [
        ("report written by", f"prism {__version__}"),
        ("visits in this report", f"{cohort.name}, fingerprint {cohort.fingerprint}"),
        *((f"model: {name}", str(value)) for name, value in facts.items()),
        ("model: config", ", ".join(f"{k} = {v}" for k, v in config.items())),
    ]
