"""How long a registration trains, and what it refuses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from prism.errors import FitError
from prism.registration import RegistrationConfig, preset

CONFIG = RegistrationConfig(shapes=32, visits=250, least_steps=6000)


@pytest.mark.parametrize(("shapes", "steps"), [(2, 6000), (768, 6000), (1507, 11774)])
def test_every_shape_is_seen_often_enough(shapes: int, steps: int) -> None:
    assert CONFIG.steps_for(shapes) == steps


def test_steps_asked_for_are_taken_as_they_are() -> None:
    assert replace(CONFIG, steps=7).steps_for(100_000) == 7
    with pytest.raises(FitError, match="at least 1"):
        replace(CONFIG, steps=0)


def test_paper_keeps_the_weights_of_the_paper() -> None:
    for n in (2, 3):
        config = preset("paper", n)
        assert (config.network, config.code) == ("hyper", 1024)
        assert (config.weight_sdf, config.weight_normal, config.weight_eikonal) == (3000, 100, 50)
        assert (config.weight_icon, config.weight_gradicon) == (100, 100)


def test_hyper_is_the_papers_network_with_weights_that_hold_slip() -> None:
    paper, hyper, default = (preset(name, 3) for name in ("paper", "hyper", "default"))
    assert (hyper.network, hyper.code) == (paper.network, paper.code)
    for name in ("weight_sdf", "weight_normal", "template_omega"):
        assert getattr(hyper, name) == getattr(default, name)


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("shapes", [10, 300, 3000])
def test_fast_is_at_most_two_fifths_of_the_work(n: int, shapes: int) -> None:
    def work(config: RegistrationConfig) -> int:
        points = config.surface + config.near + config.box
        return config.steps_for(shapes) * config.shapes * points

    assert work(preset("fast", n)) < 0.4 * work(preset("default", n))
