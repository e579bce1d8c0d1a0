"""The command line: one file a verb."""

from prism.cli.main import app

__all__ = ["app"]
