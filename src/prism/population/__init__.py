"""Correspondence -> mu, L: networks, losses, curriculum."""

from prism.population.config import PRESETS, PopulationConfig
from prism.population.field import NeuralPopulation, Units
from prism.population.fit import Scales, check_trainable, fit_population

__all__ = [
    "PRESETS",
    "NeuralPopulation",
    "PopulationConfig",
    "Scales",
    "Units",
    "check_trainable",
    "fit_population",
]
