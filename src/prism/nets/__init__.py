"""Networks that know no anatomy."""

from prism.nets.hyper import HyperSiren
from prism.nets.modulated import ModulatedSiren
from prism.nets.sines import Sines
from prism.nets.siren import Siren

__all__ = ["HyperSiren", "ModulatedSiren", "Sines", "Siren"]
