"""Networks that know no anatomy."""

from prism.nets.siren import Siren

__all__ = ["Siren"]
