"""From a model and a cohort to a report on disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from prism.applications import Prediction, anomaly, evaluate, intrinsic_time, predict_shape
from prism.cohort import Correspondence, Truth
from prism.errors import QueryError
from prism.model import PRISM
from prism.registration import Quality
from prism.report.matches import match_plate
from prism.report.page import Evaluation, render_page
from prism.report.plates import Findings, draw_plates
from prism.report.style import png
from prism.runs import check_folder, fresh_folder

MARK = "report.html"
_FIGURES = (
    *("shape_fan", "spread_bands", "information_map", "information_ablation"),
    *("time_scatter", "prediction_overlay", "anomaly_ranking", "correspondence"),
)
HOLDS = tuple(f"figures/{name}.png" for name in _FIGURES)
MOST_VISITS = 600
MOST_EVALUATED = {2: 600, 3: 60}  # by dimension: surfaces take long to sample


def write_report(
    model: PRISM,
    cohort: Correspondence,
    truth: Truth | None,
    out: Path,
    quality: Quality | None = None,
    subject: str | None = None,
) -> Path:
    """Write a self-contained page about a cohort as the model sees it.

    Cohorts of more than 600 visits are represented by evenly chosen subjects.

    Args:
        model: A trained model.
        cohort: Visits to report on, in correspondence with the model's template.
        truth: What a simulated cohort knows about itself, row by row with the cohort.
        out: Folder for `report.html` and `figures/*.png`; an earlier report is replaced.
        quality: How well the cohort's raw shapes were registered, if they were.
        subject: Set only the visits of this subject against the population. What is found over
            many people, the model's scores and the registration's quality, is then left out.

    Returns:
        Path of `report.html`.
    """
    check_folder(Path(out), MARK, HOLDS)
    if subject is not None:
        part, quality = np.isin(cohort.visits.subject, [subject]), None
        cohort, truth = cohort.of_subjects([subject]), None if truth is None else truth[part]
    rows = whole_subjects(cohort, MOST_VISITS)
    found = compute_findings(model, cohort[rows], None if truth is None else truth[rows])
    evaluation = None if subject is not None else _evaluation(model, cohort, truth)
    with fresh_folder(Path(out), MARK, HOLDS) as draft:
        match = quality and match_plate(quality, model.template, model.cells)
        drawn = [*draw_plates(found), *([match] if match else [])]
        plates = [(plate, png(plate.figure)) for plate in drawn]
        (draft / "figures").mkdir()
        for plate, image in plates:
            (draft / "figures" / f"{plate.name}.png").write_bytes(image)
        page = render_page(found, plates, evaluation, len(cohort), quality)
        (draft / MARK).write_text(page, encoding="utf-8")
    return Path(out) / MARK


def whole_subjects(cohort: Correspondence, most: int) -> np.ndarray:
    """At most `most` rows: all visits of evenly chosen subjects, so that series stay whole.

    Where no subject fits, the first rows.
    """
    if len(cohort) <= most:
        return np.arange(len(cohort))
    subjects = cohort.visits.subjects
    for count in range(min(len(subjects), most), 0, -1):
        places = np.linspace(0, len(subjects) - 1, count).round().astype(int)
        chosen = [subjects[i] for i in places]
        rows = np.flatnonzero(np.isin(cohort.visits.subject, chosen))
        if len(rows) <= most:
            return rows
    return np.arange(most)


def compute_findings(model: PRISM, cohort: Correspondence, truth: Truth | None) -> Findings:
    """Ask the model every question the report answers."""
    return Findings(
        model=model,
        cohort=cohort,
        truth=truth,
        times=intrinsic_time(model, cohort),
        anomaly=anomaly(model, cohort),
        prediction=_prediction(model, cohort),
    )


def _prediction(model: PRISM, cohort: Correspondence) -> Prediction | None:
    """Forecasts of later visits; without any, of the last training age; without ages, none."""
    if np.isnan(cohort.visits.t).all():
        return None
    try:
        return predict_shape(model, cohort)
    except QueryError:
        return predict_shape(model, cohort, t1=model.ages[1])


def _evaluation(model: PRISM, cohort: Correspondence, truth: Truth | None) -> Evaluation | None:
    """Measure the model on the test split if there is one, on visits of known age only."""
    split = cohort.visits.columns.get("split", np.full(len(cohort), ""))
    known = ~np.isnan(cohort.visits.t)
    test = known & (split == "test")
    chosen = np.flatnonzero(test if test.any() else known)
    if not len(chosen):
        return None
    chosen = chosen[whole_subjects(cohort[chosen], MOST_EVALUATED[cohort.dimension])]
    part = cohort[chosen]
    size = f"{len(part)} visits of {len(part.visits.subjects)} subjects"
    whom = f"{size} {_seen(model, cohort, bool(test.any()))}"
    try:
        scores = evaluate(model, part, None if truth is None else truth[chosen], emd=False)
    except QueryError as error:
        return Evaluation({}, whom, error.what)
    return Evaluation(scores, whom)


def _seen(model: PRISM, cohort: Correspondence, split: bool) -> str:
    """Say whether the model may have been trained on what it is measured on."""
    if split:
        return "in the test split"
    if cohort.fingerprint == model.provenance.get("data"):
        return "that the model was trained on, so the numbers flatter it"
    return "in this cohort; if the model was trained on some of them, the numbers flatter it"
