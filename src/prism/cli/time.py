"""`prism time`: how old does this anatomy look?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prism.cli._common import (
    CohortFolder,
    MapsFolder,
    ModelFolder,
    OutFile,
    count,
    in_unit,
    open_both,
    outside,
    say,
)
from prism.cli._write import answer_table, check_answer, record, write_maps

if TYPE_CHECKING:
    from prism.applications import TimeMap

NUMBERS = ("tau", "tau_se", "tau_mean", "tau_fisher", "tau_mle", "z")


def time(model: ModelFolder, cohort: CohortFolder, out: OutFile, maps: MapsFolder = None) -> None:
    """Write how old every visit looks.

    The intrinsic time of the whole shape, and with --maps of every point. Where an age is unknown,
    or the column t_error gives its error, also what the shape says of it (columns age...).
    """
    from prism.cohort.vtp_file import require_vtp

    if maps is not None:
        require_vtp()
    check_answer(out, "time", maps)
    from prism.applications import intrinsic_time

    known, shapes, _ = open_both(model, cohort)
    found = intrinsic_time(known, shapes)
    beyond = found.extrapolated | known.outside_ages(shapes.visits.t)
    facts = record("time", known, shapes, extrapolated=beyond.tolist())
    with answer_table(out, _columns(found), facts):
        if maps is not None:
            arrays = {
                "tau": found.point_tau,
                "se": found.point_se,
                "tau_mle": found.point_tau_mle,
            }
            write_maps(maps, shapes, arrays, facts)
    note = outside(known, beyond, "visit")
    say(f"time: {_summary(found, known.time_unit)}{note}. Wrote {out}")


def _columns(found: TimeMap) -> dict[str, Any]:
    visits = found.visits
    named = {"subject": visits.subject, "visit": visits.visit, "t": visits.t}
    numbers = {name: getattr(found, name) for name in NUMBERS}
    if not found.age.uncertain.any():
        return named | numbers
    age = found.age
    dated = {"age": age.median, "age_se": age.se, "age_lower": age.lower, "age_upper": age.upper}
    return named | numbers | dated


def _summary(found: TimeMap, unit: str) -> str:
    import numpy as np

    dated = np.isfinite(found.tau)
    parts = [f"{count(int(dated.sum()), 'visit')} of {len(dated)} dated"]
    if dated.any():
        parts.append(f"median standard error {in_unit(np.median(found.tau_se[dated]), unit)}")
    bounds = int((dated & np.isinf(found.tau_se)).sum())
    if bounds:
        parts.append(f"{count(bounds, 'visit')} beyond the searched times: tau is a bound there")
    aged = dated & np.isfinite(found.visits.t)
    if aged.any():
        gap = np.median(np.abs(found.tau - found.visits.t)[aged])
        parts.append(f"median distance from age {in_unit(gap, unit)}")
    return ", ".join(parts)
