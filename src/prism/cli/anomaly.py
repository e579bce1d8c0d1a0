"""`prism anomaly`: where, and how far, from normal for the age?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prism.cli._common import (
    CohortFolder,
    MapsFolder,
    ModelFolder,
    OutFile,
    count,
    open_both,
    outside,
    say,
)
from prism.cli._write import answer_table, check_answer, record, write_maps

if TYPE_CHECKING:
    from prism.applications import Anomaly

UNUSUAL = 0.05


def anomaly(
    model: ModelFolder, cohort: CohortFolder, out: OutFile, maps: MapsFolder = None
) -> None:
    """Write how unusual every visit is for its age.

    With a p-value and the place that departs most; point by point with --maps.
    """
    from prism.cohort.vtp_file import require_vtp

    if maps is not None:
        require_vtp()
    check_answer(out, "anomaly", maps)
    from prism.applications import anomaly as judge

    known, shapes, _ = open_both(model, cohort)
    found = judge(known, shapes)
    flags = {name: getattr(found, name).tolist() for name in ("age_assumed", "extrapolated")}
    facts = record("anomaly", known, shapes, **flags)
    with answer_table(out, _columns(found), facts):
        if maps is not None:
            arrays = {"z": found.point_z, "p": found.point_p, "q": found.point_q}
            write_maps(maps, shapes, arrays, facts)
    unusual = count(int((found.p_value < UNUSUAL).sum()), "visit")
    assumed = int(found.age_assumed.sum())
    told = f"; {count(assumed, 'age')} unknown or uncertain, taken from the shape"
    note = (told if assumed else "") + outside(known, found.extrapolated, "visit")
    say(f"anomaly: {unusual} of {len(shapes)} unusual (p < {UNUSUAL}){note}. Wrote {out}")


def _columns(found: Anomaly) -> dict[str, Any]:
    visits = found.visits
    return {
        "subject": visits.subject,
        "visit": visits.visit,
        "t": visits.t,
        "score": found.score,
        "p_value": found.p_value,
        "score_paper": found.score_paper,
        "where": found.where,
    }
