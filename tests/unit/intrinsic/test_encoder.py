from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from prism.intrinsic import EncoderConfig, InverseEncoder, TimeTable
from prism.training import Runtime
from tests.problems.linear_gaussian import LinearGaussian, points

CONFIG = EncoderConfig(width=16, hidden=1, steps=30, batch=256)
P = 1000 + points(5, 2).numpy()
TABLE = TimeTable.of(LinearGaussian.example(2), P - 1000, (-1.0, 2.0))


def encoder(config: EncoderConfig = CONFIG, span: tuple[float, float] = (0.0, 1.0)):
    return InverseEncoder.fit(TABLE, P, span, 0.01, config, seed=0, runtime=Runtime(device="cpu"))


def test_one_time_a_point_and_none_where_it_is_missing() -> None:
    d = np.zeros((3, 5, 2))
    d[1, 4] = np.nan
    tau = encoder()[0](P, d)
    assert tau.shape == (3, 5)
    assert tau.dtype == np.float64
    assert np.isnan(tau[1, 4])
    assert np.isnan(tau).sum() == 1


def test_scales_are_measured_on_the_span() -> None:
    scales = encoder(span=(0.25, 1.75))[0].scales
    assert (scales.tau_first, scales.tau_range) == (0.25, 1.5)
    assert scales.p_centre == pytest.approx(P.mean(axis=0))


def test_training_lowers_the_loss() -> None:
    losses = []
    runtime = Runtime(device="cpu", progress=lambda update: losses.append(update.loss))
    config = replace(CONFIG, steps=200)
    InverseEncoder.fit(TABLE, P, (0.0, 1.0), 0.01, config, seed=0, runtime=runtime)
    assert losses[-1] < 0.5 * losses[0]


def test_the_loss_is_the_mean_absolute_error_of_scaled_time() -> None:
    from prism.intrinsic.encoder import _EncoderTask

    g, _ = encoder()
    task = _EncoderTask(g.network, g.scales, TABLE, P, (0.0, 1.0), 0.01, CONFIG, 0, "cpu")
    inputs, s = task.batch(0)
    expected = (g.network(inputs)[..., 0] - s).abs().mean()
    assert float(task.loss(0, inputs, s)) == pytest.approx(float(expected))
    assert float(s.min()) >= 0
    assert float(s.max()) <= 1
