"""`python -m prism` is the command line."""

from prism.cli.main import run

run()
