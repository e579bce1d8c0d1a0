"""Choices that shape a registration, with a line of documentation each."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

from prism.errors import FitError

NETWORKS = ("modulated", "hyper")
_COUNTS = ("code", "width", "hidden", "template_width", "template_hidden", "shapes", "surface")
_COUNTS += ("jacobians", "onto_steps", "vertices", "visits", "least_steps")
_RATES = ("omega", "template_omega", "learning_rate", "onto_rate", "code_gain", "reach")


def _doc(default: Any, text: str) -> Any:
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class RegistrationConfig:
    """Hyper-parameters of a registration. Lengths are in units of twice the rms radius."""

    network: str = _doc("modulated", "what turns codes into maps: modulated or hyper")
    code: int = _doc(128, "length of a code")
    width: int = _doc(128, "units of a layer of the displacement networks")
    hidden: int = _doc(3, "their hidden layers besides the first and the last")
    omega: float = _doc(8.0, "their spatial frequency")
    template_width: int = _doc(256, "units of a layer of the template")
    template_hidden: int = _doc(3, "its hidden layers besides the first and the last")
    template_omega: float = _doc(20.0, "its spatial frequency")
    steps: int | None = _doc(
        None, "training steps; default: enough for the visits of every shape, and the least"
    )
    visits: int = _doc(250, "how often each shape is seen")
    least_steps: int = _doc(6000, "fewest training steps, however few the shapes")
    warm_share: float = _doc(0.1, "share of the steps that train the template alone")
    shapes: int = _doc(32, "shapes in a step")
    surface: int = _doc(500, "surface points of a shape in a step")
    near: int = _doc(500, "points near the surface of a shape in a step")
    box: int = _doc(250, "points anywhere in the box of a shape in a step")
    jacobians: int = _doc(300, "points of a shape at which GradICON is judged in a step")
    learning_rate: float = _doc(1e-3, "peak learning rate of the one-cycle schedule")
    code_gain: float = _doc(5.0, "how much faster codes learn than networks")
    clip: float = _doc(1.0, "largest norm of a gradient")
    weight_sdf: float = _doc(1500.0, "weight of the signed distance")
    weight_normal: float = _doc(300.0, "weight of the normals on the surface")
    weight_eikonal: float = _doc(50.0, "weight of the unit gradient")
    weight_icon: float = _doc(10.0, "weight of the round trip from shape to template and back")
    weight_gradicon: float = _doc(10.0, "weight of that round trip's Jacobian")
    weight_reverse: float = _doc(10.0, "weight of the round trip from template to shape and back")
    weight_stiffness: float = _doc(50.0, "weight of |J - 1|^2: maps stay near rigid")
    weight_code: float = _doc(1.0, "weight of the prior on codes")
    reach: float = _doc(10.0, "signed distances beyond this are not told apart")
    onto_steps: int = _doc(300, "steps that find the codes of new shapes")
    onto_rate: float = _doc(3e-3, "peak learning rate of these steps")
    vertices: int = _doc(2500, "points of the template")

    def __post_init__(self) -> None:
        """Refuse values that cannot train."""
        if self.network not in NETWORKS:
            raise FitError(
                f"network must be one of {NETWORKS}. Got {self.network!r}.", "Choose one of them."
            )
        if not 0 <= self.warm_share < 1:
            what = f"warm_share must be at least 0 and below 1. Got {self.warm_share}."
            raise FitError(what, "A tenth is a good start.")
        if self.steps is not None and self.steps < 1:
            raise FitError(f"steps must be at least 1. Got {self.steps}.", "Raise it.")
        for names, low in ((_COUNTS, 1), (_RATES, 0), (("near", "box"), 0)):
            for name in names:
                value = getattr(self, name)
                if not value >= low or (names is _RATES and value == 0):
                    wanted = "positive" if names is _RATES else f"at least {low}"
                    raise FitError(f"{name} must be {wanted}. Got {value}.", "Raise it.")

    def steps_for(self, shapes: int) -> int:
        """Training steps of a cohort of so many shapes."""
        if self.steps is not None:
            return self.steps
        return max(self.least_steps, math.ceil(self.visits * shapes / self.shapes))


_CONTOURS: dict[str, Any] = {
    "template_width": 64,
    "least_steps": 4000,
    "shapes": 16,
    "surface": 100,
    "near": 100,
    "box": 50,
    "jacobians": 50,
    "onto_steps": 100,
    "vertices": 200,
}
# The paper's weights. Tangential slip is held by the stiffness alone, which those weights drown:
# the default's bring a body's chest and arms a quarter nearer to their true places.
_PAPER_WEIGHTS: dict[str, Any] = {
    "template_omega": 15.0,
    "weight_sdf": 3000.0,
    "weight_normal": 100.0,
    "weight_icon": 100.0,
    "weight_gradicon": 100.0,
    "weight_reverse": 100.0,
}
_DEFAULT = RegistrationConfig()
_HYPER = replace(
    _DEFAULT,
    network="hyper",
    code=1024,
    omega=4.0,
    learning_rate=6e-4,
    visits=170,
    weight_icon=20.0,
    weight_reverse=20.0,
    weight_stiffness=20.0,
)
# A third more error for a fiftieth of the work. Codes that learn faster than this, and are seen as
# rarely as here, run away.
_FAST = replace(
    _DEFAULT,
    shapes=8,
    surface=160,
    near=160,
    box=60,
    jacobians=100,
    learning_rate=7e-4,
    visits=100,
    least_steps=1500,
)
_PAPER = replace(_HYPER, omega=2.5, visits=_DEFAULT.visits, weight_stiffness=5.0, **_PAPER_WEIGHTS)
_CONTOUR = replace(
    _DEFAULT,
    code=32,
    width=64,
    omega=3.0,
    learning_rate=1.5e-3,
    code_gain=2.0,
    weight_stiffness=0.0,
    **_PAPER_WEIGHTS,
    **_CONTOURS,
)
PRESETS: dict[tuple[str, int], RegistrationConfig] = {
    ("default", 3): _DEFAULT,
    ("fast", 3): _FAST,
    ("hyper", 3): _HYPER,
    ("paper", 3): _PAPER,
    ("default", 2): _CONTOUR,
    ("fast", 2): replace(_CONTOUR, visits=80, least_steps=1500),
    ("hyper", 2): replace(_PAPER, **_CONTOURS),
    ("paper", 2): replace(_PAPER, **_CONTOURS),
}


def preset(name: str, dimension: int) -> RegistrationConfig:
    """The configuration of this name; contours need smaller networks and fewer points."""
    names = sorted({known for known, _ in PRESETS})
    if name not in names:
        raise FitError(f"preset must be one of {names}. Got {name!r}.", "Choose one of them.")
    return PRESETS[name, dimension]
