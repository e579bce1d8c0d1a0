"""`prism trajectory`: the average anatomy at some ages, and how far healthy people differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from prism.cli._common import ModelFolder, OutFolder, count, open_model, outside, parse_ages, say
from prism.cli._write import PROVENANCE, record, write_json

if TYPE_CHECKING:
    from pathlib import Path

    from prism.applications import Trajectory

ARRAYS = "trajectory.npz"
HOLDS = ("trajectory-*.vtp", "trajectory.vtp.series")
KEYS = ("t", "points", "sigma_tau", "sigma_tau_bound", "info", "Sigma")


def trajectory(
    model: ModelFolder,
    at: Annotated[str, typer.Option(metavar="T1,T2", help="Ages, in the model's time unit.")],
    out: OutFolder,
) -> None:
    """Write the average shape at some ages.

    With the covariance, the Fisher information and the temporal spread of every point.
    """
    from prism.cohort.vtp_file import require_vtp
    from prism.runs import fresh_folder

    ages = parse_ages(at)
    require_vtp()
    import numpy as np

    from prism.applications import trajectory as follow

    known = open_model(model)
    found = follow(known, np.asarray(ages))
    with fresh_folder(out, ARRAYS, HOLDS) as draft:
        _write(draft, found)
        extrapolated = found.extrapolated.tolist()
        write_json(
            draft / PROVENANCE,
            record("trajectory", known, at=ages, extrapolated=extrapolated),
        )
    note = outside(known, found.extrapolated, "age")
    points = count(len(known.template), "point")
    unit = f" ({known.time_unit})" if known.time_unit else ""
    say(f"trajectory: {count(len(ages), 'age')}{unit}, {points}{note}. Wrote {out}")


def _write(folder: Path, found: Trajectory) -> None:
    from prism.cohort.files import write_arrays
    from prism.cohort.vtp_file import write_series, write_vtp

    write_arrays(folder / ARRAYS, {key: getattr(found, key) for key in KEYS})
    names = [f"trajectory-{i:04d}.vtp" for i in range(len(found.t))]
    for i, name in enumerate(names):
        data = {key: getattr(found, key)[i] for key in KEYS[2:]}
        write_vtp(folder / name, found.points[i], found.cells, data)
    write_series(folder / "trajectory.vtp.series", names, found.t.tolist())
