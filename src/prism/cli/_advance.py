"""A bar on a terminal for work that goes shape by shape; elsewhere a line now and then."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from prism.cohort import Advance, Progress


SILENCE = 10.0  # seconds: short work says nothing


class _Lines:
    """A plain line every ten seconds."""

    def __init__(self) -> None:
        self.told = time.monotonic()

    def __call__(self, advance: Advance) -> None:
        """Write the line if it is time."""
        now = time.monotonic()
        if now - self.told >= SILENCE:
            self.told = now
            left = f"{advance.seconds_left:.0f} s left"
            typer.echo(f"{advance.phase} {advance.step}/{advance.steps}: {left}", err=True)


@contextmanager
def shown_advance() -> Iterator[Progress]:
    """Yield a receiver of messages that shows them on stderr."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines()
        return
    text = TextColumn("{task.description}")
    columns = (text, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bars(*columns, console=console, transient=True) as bars:
        task = bars.add_task("", total=None)

        def show(advance: Advance) -> None:
            described = {"description": advance.phase, "total": advance.steps}
            bars.update(task, completed=advance.step, **described)

        yield show
