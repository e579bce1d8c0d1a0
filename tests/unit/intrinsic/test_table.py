from __future__ import annotations

import numpy as np
import pytest
import torch

from prism.errors import QueryError
from prism.fisher import fisher_information
from prism.intrinsic import TimeTable
from tests.problems.linear_gaussian import Curved, LinearGaussian, points

both = pytest.mark.parametrize("n", [2, 3])
SPAN = (-0.5, 1.5)


def errors(n: int, knots: int) -> tuple[float, float]:
    """Largest errors of the tabulated mu and mu_t between the knots."""
    law, p = Curved(n), points(6, n)
    t = torch.linspace(*SPAN, 301, dtype=torch.float64)[:, None].expand(-1, 6)
    field, mu_t = TimeTable.of(law, p.numpy(), SPAN, knots).at(t)
    mu, rate = torch.func.jvp(
        lambda s: law(p, s).mu, (t.contiguous(),), (torch.ones_like(t).contiguous(),)
    )
    return float((field.mu - mu).abs().max()), float((mu_t - rate).abs().max())


@both
def test_interpolation_is_of_fourth_order_and_its_slope_of_third(n: int) -> None:
    value, slope = zip(*(errors(n, knots) for knots in (17, 33, 65)), strict=True)
    order = np.log2(np.array([value[:2], slope[:2]]) / np.array([value[1:], slope[1:]]))
    assert order[0] == pytest.approx([4, 4], abs=0.35)
    assert order[1] == pytest.approx([3, 3], abs=0.35)


def test_default_knots_are_fine_enough() -> None:
    assert errors(2, 65)[0] < 1e-6


@both
def test_the_table_is_exact_at_its_knots_and_on_a_straight_course(n: int) -> None:
    curved, straight, p = Curved(n), LinearGaussian.example(n), points(4, n)
    knots = torch.linspace(*SPAN, 9, dtype=torch.float64)[:, None].expand(-1, 4)
    field, _ = TimeTable.of(curved, p.numpy(), SPAN, 9).at(knots)
    torch.testing.assert_close(field.L, curved(p, knots).L)
    t = torch.linspace(*SPAN, 50, dtype=torch.float64)[:, None].expand(-1, 4)
    field, mu_t = TimeTable.of(straight, p.numpy(), SPAN, 3).at(t)
    torch.testing.assert_close(field.mu, straight(p, t).mu)
    torch.testing.assert_close(mu_t, straight.slope(p).expand_as(mu_t))


def test_times_beyond_the_span_are_answered_at_its_end() -> None:
    table = TimeTable.of(Curved(2), points(3, 2).numpy(), SPAN)
    far, end = (torch.full((1, 3), t, dtype=torch.float64) for t in (99.0, SPAN[1]))
    assert torch.equal(table.at(far)[0].mu, table.at(end)[0].mu)
    assert torch.equal(table.at(-far)[0].L, table.at(0 * far + SPAN[0])[0].L)


def test_an_unknown_time_gives_an_unknown_answer() -> None:
    table = TimeTable.of(Curved(2), points(2, 2).numpy(), SPAN)
    field, mu_t = table.at(torch.tensor([[torch.nan, 0.2]], dtype=torch.float64))
    assert torch.isnan(field.mu[0, 0]).all()
    assert torch.isfinite(field.mu[0, 1]).all()
    assert torch.isfinite(mu_t[0, 1]).all()


@both
def test_information_is_that_of_the_population(n: int) -> None:
    law, p = Curved(n), points(5, n)
    t = np.linspace(0, 1, 7)[:, None].repeat(5, axis=1)
    exact = fisher_information(law, p.numpy(), t)
    np.testing.assert_allclose(TimeTable.of(law, p, SPAN).information(t), exact, rtol=1e-3)


def test_nearest_knot_is_the_nearest() -> None:
    law, p = Curved(2), points(5, 2)
    table = TimeTable.of(law, p.numpy(), SPAN, 21)
    knots = torch.linspace(*SPAN, 21, dtype=torch.float64)
    d = torch.randn(8, 5, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    far = (d[:, :, None] - law(p[:, None], knots).mu).norm(dim=-1)
    np.testing.assert_allclose(
        table.nearest_knot(d.numpy()), knots[far.argmin(-1)].numpy(), atol=1e-12
    )


def test_points_in_parts_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = TimeTable.of(Curved(2), points(9, 2).numpy(), SPAN)
    monkeypatch.setattr("prism.intrinsic.table.CHUNK", 130)
    parts = TimeTable.of(Curved(2), points(9, 2).numpy(), SPAN)
    np.testing.assert_allclose(parts.cubics, whole.cubics)


def test_an_empty_span_is_refused() -> None:
    with pytest.raises(QueryError, match="empty"):
        TimeTable.of(Curved(2), points(1, 2).numpy(), (1.0, 1.0))
