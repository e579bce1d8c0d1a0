"""A bar on a terminal for work that goes shape by shape; elsewhere nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prism.cohort import Advance, Progress


@contextmanager
def shown_advance() -> Iterator[Progress]:
    """Yield a receiver of messages that shows them on stderr."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    from prism.cohort import silent

    console = Console(stderr=True)
    if not console.is_terminal:
        yield silent
        return
    text = TextColumn("{task.description}")
    columns = (text, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bars(*columns, console=console, transient=True) as bars:
        task = bars.add_task("", total=None)

        def show(advance: Advance) -> None:
            described = {"description": advance.phase, "total": advance.steps}
            bars.update(task, completed=advance.step, **described)

        yield show
