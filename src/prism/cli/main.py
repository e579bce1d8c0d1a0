"""`prism`: the verbs, and what is common to all of them."""

from __future__ import annotations

import logging
from typing import Annotated

import typer

from prism import __version__
from prism.cli._guard import GuardedGroup
from prism.cli.anomaly import anomaly
from prism.cli.chart import chart
from prism.cli.check import check
from prism.cli.demo import demo
from prism.cli.doctor import doctor
from prism.cli.evaluate import evaluate
from prism.cli.fit import FitCommand, fit
from prism.cli.predict import predict
from prism.cli.register import RegisterCommand, register
from prism.cli.report import report
from prism.cli.simulate import simulate
from prism.cli.time import time
from prism.cli.trajectory import trajectory

app = typer.Typer(
    cls=GuardedGroup,
    add_completion=False,
    invoke_without_command=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def house(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Say the version.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Say more while at work.")] = False,
) -> None:
    """How anatomy changes with age, how much healthy people differ, and where one departs.

    Research software; not a medical device. Nothing leaves this machine.
    """
    if version:
        typer.echo(f"prism {__version__}")
    elif ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())
    level = logging.INFO if verbose else logging.WARNING
    logging.basicConfig(level=level, format="%(name)s: %(message)s")


for verb in (demo, simulate, check):
    app.command()(verb)
app.command(cls=RegisterCommand)(register)
app.command(cls=FitCommand)(fit)
for verb in (trajectory, time, predict, anomaly, chart, evaluate, report, doctor):
    app.command()(verb)


def run() -> None:
    """Run the command line: what the installed `prism` calls."""
    app(prog_name="prism")
