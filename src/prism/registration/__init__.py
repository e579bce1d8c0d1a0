"""Samples of raw shapes -> a template, maps both ways, correspondence."""

from __future__ import annotations

from prism.registration.config import RegistrationConfig, preset
from prism.registration.core import Registration
from prism.registration.maps import Maps
from prism.registration.quality import Quality, quality, read_quality
from prism.registration.similarity import Similarity

__all__ = [
    "Maps",
    "Quality",
    "Registration",
    "RegistrationConfig",
    "Similarity",
    "preset",
    "quality",
    "read_quality",
]
