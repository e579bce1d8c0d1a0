"""The model card says what was measured."""

from __future__ import annotations

import re
from dataclasses import replace

from prism.model import PRISM
from prism.model.card import model_card


def test_every_coverage_is_told_beside_its_level(tiny_model: PRISM) -> None:
    known = tiny_model.calibration
    rows = re.findall(r"^\| ([\d.]+)% \| (.+?) \| (.+?) \| (.+?) \|$", model_card(tiny_model), re.M)
    assert [row[0] for row in rows] == ["50", "80", "90", "95"]
    for column, found in enumerate((known.coverage, known.coverage_time, known.coverage_forecast)):
        told = [f"{100 * share:.1f}%" for share in found.values()]
        assert [row[1 + column] for row in rows] == (told or ["not measured"] * 4)
    assert known.coverage_time["0.5"] < known.coverage_time["0.95"]


def test_what_was_not_measured_is_said_so(tiny_model: PRISM) -> None:
    blind = replace(tiny_model.calibration, coverage_time={})
    card = model_card(replace(tiny_model, calibration=blind))
    assert card.count("| not measured |") >= 4
