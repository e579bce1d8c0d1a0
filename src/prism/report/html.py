"""Filling a page's template: one style sheet for all, everything from outside escaped."""

from __future__ import annotations

from importlib import resources
from typing import Any

STYLE_SHEET = "style.css"


def render(template: str, **values: Any) -> str:
    """Fill a template of this room, with the house's style sheet as `style`; values are escaped."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    room = resources.files("prism.report")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    style = Markup((room / STYLE_SHEET).read_text(encoding="utf-8").rstrip())
    page = environment.from_string((room / template).read_text(encoding="utf-8"))
    return page.render(style=style, **values)
