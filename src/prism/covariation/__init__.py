"""How the points of one body, and the visits of one person, vary together."""

from prism.covariation.condition import Forecast, condition
from prism.covariation.dating import GlobalTimes, Reading, date_shapes
from prism.covariation.factors import Beliefs, Factors, believe
from prism.covariation.learn import Covariation, evenly, fit_covariation
from prism.covariation.patches import GROWTH, TOGETHER, Patches, patch_scores
from prism.covariation.persistence import Persistence
from prism.covariation.texture import Texture, learn_texture
from prism.covariation.visible import Visible

__all__ = [
    "GROWTH",
    "TOGETHER",
    "Beliefs",
    "Covariation",
    "Factors",
    "Forecast",
    "GlobalTimes",
    "Patches",
    "Persistence",
    "Reading",
    "Texture",
    "Visible",
    "believe",
    "condition",
    "date_shapes",
    "evenly",
    "fit_covariation",
    "learn_texture",
    "patch_scores",
]
