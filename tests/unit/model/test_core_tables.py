"""The model's table of time is that of its population."""

from __future__ import annotations

import numpy as np

from prism.intrinsic import TimeTable
from prism.model import PRISM
from prism.simulate.study import Study
from tests.problems.tiny import fit_tiny


def test_averaged_tables_are_the_table_of_the_average(tiny_study: Study) -> None:
    model = fit_tiny(tiny_study.correspondence, members=3, steps=30)
    table = model.table
    direct = TimeTable.of(model.population, model.template, (table.first, table.last))
    scale = np.abs(direct.knots).max()
    np.testing.assert_allclose(table.knots, direct.knots, atol=1e-6 * scale)
    np.testing.assert_allclose(table.cubics, direct.cubics, atol=1e-6 * scale)
    assert np.abs(table.knots - model.member_tables[0].knots).max() > 1e-3 * scale


def test_one_member_is_tabulated_once(tiny_model: PRISM) -> None:
    assert len(tiny_model.population.members) == 1
    assert tiny_model.table is tiny_model.member_tables[0]
