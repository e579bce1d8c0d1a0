"""What the simulators ask of their options, checked once, at the door."""

from __future__ import annotations

from collections.abc import Mapping

from prism.errors import QueryError

Rule = tuple[float, bool, str]  # value, whether it holds, what is asked


def require(rules: Mapping[str, Rule]) -> None:
    """Refuse the first option, by name, whose rule does not hold."""
    for name, (value, holds, rule) in rules.items():
        if not holds:
            raise QueryError(f"{name} must be {rule}. Got {value}.", f"Change {name}.")
