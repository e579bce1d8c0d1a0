"""`prism demo`: the whole story on an embedded cohort."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from prism.cli import anomaly, evaluate, fit, predict, report, simulate, time, trajectory
from prism.cli._common import say

SUBJECTS, TEST_SUBJECTS, NOISE = 150, 40, 0.005
AGES = "0.05,0.25,0.5,0.75,0.95"


def demo(
    out: Annotated[
        Path, typer.Option(metavar="DIR", resolve_path=True, help="Folder to write.")
    ] = Path("demo"),
) -> None:
    """Tell the whole story on an embedded cohort.

    Simulates people, learns from them, asks every question and writes a report, in minutes.
    """
    cohort, model = out / "cohort", out / "model"
    simulate.simulate(
        simulate.Kind.starman_l,
        cohort,
        subjects=SUBJECTS,
        test_subjects=TEST_SUBJECTS,
        noise=NOISE,
    )
    with _one_thread():
        fit.fit(cohort, model, preset=fit.Preset.fast)
        trajectory.trajectory(model, AGES, out / "trajectory")
        time.time(model, cohort, out / "times.csv")
        predict.predict(model, cohort, out / "predictions")
        anomaly.anomaly(model, cohort, out / "anomaly.csv")
        evaluate.evaluate(model, cohort, out / "metrics.json", emd=False)
        report.report(model, cohort, out / "report", split="test")
    say(str(out / "report" / report.PAGE))


@contextmanager
def _one_thread() -> Iterator[None]:
    """Work on one core: so small a model gains nothing from more, and loses on a busy machine."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
