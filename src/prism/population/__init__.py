"""Correspondence -> mu, L: networks, losses, curriculum."""

from prism.population.config import PRESETS, PopulationConfig
from prism.population.field import NeuralPopulation, Units
from prism.population.fit import fit_population

__all__ = ["PRESETS", "NeuralPopulation", "PopulationConfig", "Units", "fit_population"]
