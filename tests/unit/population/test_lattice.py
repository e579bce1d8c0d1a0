from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from prism.population.lattice import TimeLattice, cubic_weights

TIMES = torch.linspace(0, 1, 101, dtype=torch.float64)


def read(course: Callable[[Tensor], Tensor], size: int, offset: float = 0.3) -> Tensor:
    """A course in time, read at TIMES off a lattice."""
    lattice = TimeLattice.over(TIMES, torch.tensor(offset, dtype=torch.float64), size)
    one_point = torch.zeros(1, 1, dtype=torch.float64)
    values = lattice.values(lambda p, s: course(s)[..., None] + 0 * p, one_point)
    return lattice.read(values)[:, 0, 0]


@pytest.mark.parametrize("offset", [0.0, 0.5, 0.999])
def test_cubic_courses_are_read_exactly_wherever_the_lattice_lies(offset: float) -> None:
    found = read(lambda s: s**3 - 2 * s + 1, size=8, offset=offset)
    torch.testing.assert_close(found, TIMES**3 - 2 * TIMES + 1)


def test_other_courses_are_read_to_fourth_order() -> None:
    error = [
        float((read(lambda s: torch.sin(5 * s), size) - torch.sin(5 * TIMES)).abs().max())
        for size in (12, 20, 36)
    ]
    assert np.diff(-np.log2(error)) == pytest.approx([4, 4], abs=0.4)


def test_weights_sum_to_one_over_four_neighbours() -> None:
    weights = cubic_weights(torch.linspace(1, 6, 50, dtype=torch.float64), 8)
    torch.testing.assert_close(weights.sum(-1), torch.ones(50, dtype=torch.float64))
    assert ((weights != 0).sum(-1) <= 4).all()


def test_no_lattice_takes_every_time_itself() -> None:
    assert torch.equal(read(torch.sin, size=0), torch.sin(TIMES))
