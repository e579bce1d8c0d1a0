"""Figures and the page that shows them: draw what was computed, compute nothing."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["write_report"]


def __getattr__(name: str) -> Any:
    """Open the door on first use: importing this room loads no drawing library."""
    if name in __all__:
        return getattr(import_module("prism.report.write"), name)
    raise AttributeError(f"module 'prism.report' has no attribute {name!r}")


if TYPE_CHECKING:
    from prism.report.write import write_report
