from __future__ import annotations

import numpy as np
import pytest
import torch

from prism.population import Units
from prism.population.field import FieldNetworks, NeuralPopulation
from tests.problems.tiny import CONFIG


def far_away(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Template around 1000, displacements of a few units, ages in days."""
    rng = np.random.default_rng(seed)
    template = 1000 + 50 * rng.standard_normal((8, 3))
    return template, 3 * rng.standard_normal((20, 8, 3)), rng.uniform(7, 150, 20)


def test_ages_become_zero_to_one_and_points_a_unit_box() -> None:
    template, d, t = far_away()
    units = Units.of(template, d, t)
    s = units.times(torch.as_tensor(t))
    assert (float(s.min()), float(s.max())) == (0.0, 1.0)
    x = units.points(torch.as_tensor(template))
    assert x.dtype == torch.float32
    assert float(x.abs().max()) == pytest.approx(1.0)
    assert units.displacement == pytest.approx(np.sqrt((d.std(axis=0) ** 2).mean()))
    assert units.t_last == pytest.approx(t.max())


def test_round_trip_keeps_precision_far_from_the_origin() -> None:
    template, d, t = far_away()
    units = Units.of(template, d, t)
    x = units.points(torch.as_tensor(template)).double().numpy()
    np.testing.assert_allclose(x * units.scale + units.centre, template, atol=1e-5)
    s = units.times(torch.as_tensor(t)).double().numpy()
    np.testing.assert_allclose(s * units.t_range + units.t_first, t, atol=1e-4)


def test_the_answer_does_not_depend_on_where_the_origin_lies() -> None:
    template, d, t = far_away()
    torch.manual_seed(0)
    networks = FieldNetworks(3, CONFIG, 0.01)
    near, far = (
        NeuralPopulation(networks, Units.of(place, d, t), CONFIG)(
            torch.as_tensor(place), torch.tensor(70.0)
        )
        for place in (template - 1000, template)
    )
    torch.testing.assert_close(near.mu, far.mu, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(near.L, far.L, rtol=1e-5, atol=1e-5)


def test_a_point_nobody_has_does_not_spoil_the_units() -> None:
    template, d, t = far_away()
    d[:, 3] = np.nan
    units = Units.of(template, d, t)
    kept = np.delete(d, 3, axis=1)
    assert units.displacement == pytest.approx(np.sqrt((kept.std(axis=0) ** 2).mean()))


def test_one_place_has_scale_one() -> None:
    assert Units.of(np.ones((1, 2)), np.zeros((2, 1, 2)), np.array([0.0, 1.0])).scale == 1.0
