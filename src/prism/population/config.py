"""Choices that shape the population model, with a line of documentation each."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

from prism.errors import FitError

ENSEMBLES = (250, 4), (600, 2)  # most subjects of a cohort, and networks to average
STEPS_A_SHAPE, STEPS = 20, (300, 1000, 2000)
TIME_FREQUENCIES = 2.0, 8.0
PLAIN_SHARE = 0.5


def _doc(default: Any, text: str) -> Any:
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class PopulationConfig:
    """Hyper-parameters of the population model; the command line's help is made from it."""

    width: int = _doc(128, "units of a hidden layer")
    hidden: int = _doc(3, "hidden layers besides the first and the last")
    omega_space: float = _doc(5.0, "spatial frequency of the networks")
    omega_time: float | None = _doc(
        None,
        "temporal frequency of the networks; default: 2 for few subjects, 8 for a thousand",
    )
    steps: int | None = _doc(
        None, "training steps of a network; default: twenty a shape, 300 to 2000"
    )
    shapes: int = _doc(256, "shapes in a training step")
    points: int = _doc(256, "most template points in a training step")
    lattice: int | None = _doc(
        None,
        "times at which a step evaluates the networks, shapes between them by cubic "
        "interpolation; default: 18 to 32, by the temporal frequency; 0: at each shape's own time",
    )
    learning_rate: float = _doc(4e-3, "peak learning rate of the one-cycle schedule")
    warm_epochs: int = _doc(10, "passes over the cohort that train the mean alone")
    warm_share: float = _doc(0.15, "most share of the steps spent on the mean alone")
    weight_mean: float = _doc(1.0, "weight of the mean's L1 loss")
    mean_corner: float = _doc(
        2.0, "width of the L1 loss's rounded corner, in standard deviations; 0: the paper's L1"
    )
    weight_covariance: float = _doc(1.0, "weight of the covariance's likelihood loss")
    weight_plain: float | None = _doc(
        None,
        "weight of a plain course of growth beside the data, on which the mean leans; "
        "default: a half where networks are averaged, otherwise none",
    )
    smoothness: float = _doc(
        0.04, "weight of the prior on curvature in time, over the root of the subjects"
    )
    smoothness_spread: float = _doc(
        400.0, "weight of the prior on the spread's curvature in time, over the visits squared"
    )
    noise_floor: float | None = _doc(
        None, "observation noise in the length unit; default: a small share of the shape's size"
    )
    floor_share: float = _doc(0.005, "default noise floor as a share of the shape's rms radius")
    held_out: float = _doc(0.1, "share of the subjects held out for early stop and calibration")
    members: int | None = _doc(
        None,
        "networks trained without different subjects, whose average is the population; "
        "default: 4 up to 250 subjects, 2 up to 600, otherwise 1",
    )
    patience: int = _doc(8, "checks (of 20) without a better held-out likelihood before stopping")

    def __post_init__(self) -> None:
        """Refuse values that cannot train."""
        for name in ("width", "hidden", "steps", "shapes", "points", "patience", "members"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise FitError(f"{name} must be at least 1. Got {value}.", "Raise it.")
        for name in ("omega_space", "omega_time", "learning_rate"):
            if getattr(self, name) is not None and not getattr(self, name) > 0:
                raise FitError(f"{name} must be positive. Got {getattr(self, name)}.", "Raise it.")
        if self.lattice is not None and self.lattice != 0 and self.lattice < 6:
            raise FitError(f"lattice must be 0 or at least 6. Got {self.lattice}.", "Raise it.")
        if not 0 < self.held_out < 0.9:
            raise FitError(
                f"held_out must lie between 0 and 0.9. Got {self.held_out}.",
                "Hold out about a tenth of the subjects.",
            )
        if self.noise_floor is not None and not self.noise_floor > 0:
            raise FitError(
                f"noise_floor must be positive. Got {self.noise_floor}.",
                "Give the observation noise in the length unit, or leave it out.",
            )

    def settled(self, subjects: int, shapes: int) -> PopulationConfig:
        """With what depends on the numbers of subjects and shapes, unless it was given.

        Many subjects show how the spread rises and falls over time; few show chance, which a long
        training learns by heart. Further visits of the same few people ask for a thousand steps.
        """
        low, high = TIME_FREQUENCIES
        omega_time = self.omega_time or min(max(math.sqrt(subjects) / 4, low), high)
        lattice = 4 + math.ceil((28 + 7 * omega_time) / 3) if self.lattice is None else self.lattice
        fewest, enough, most = STEPS
        wanted = min(STEPS_A_SHAPE * shapes, max(STEPS_A_SHAPE * subjects, enough), most)
        steps = self.steps or max(wanted, fewest)
        small = self.members_for(subjects) > 1
        plain = (PLAIN_SHARE if small else 0.0) if self.weight_plain is None else self.weight_plain
        return replace(
            self, omega_time=omega_time, lattice=lattice, steps=steps, weight_plain=plain
        )

    @property
    def schedule(self) -> tuple[int, int]:
        """Steps and lattice of a settled configuration."""
        if self.steps is None or self.lattice is None:
            raise ValueError("settle the configuration for a cohort first")
        return self.steps, self.lattice

    def members_for(self, subjects: int) -> int:
        """How many networks to average for a cohort of this many subjects."""
        default = next((count for most, count in ENSEMBLES if subjects <= most), 1)
        return min(self.members or default, max(subjects // 2, 1))  # each learns from two at least


PRESETS: dict[str, PopulationConfig] = {
    "fast": PopulationConfig(width=64, hidden=2, steps=800, shapes=128, learning_rate=5e-3),
    "default": PopulationConfig(),
    "paper": PopulationConfig(
        width=384,
        hidden=6,
        omega_time=2.0,
        steps=20_000,
        shapes=64,
        points=1024,
        lattice=0,
        learning_rate=5e-4,
        mean_corner=0.0,
        members=1,
        smoothness=0.0,
        smoothness_spread=0.0,
    ),
}
