"""A bar on a terminal, plain lines elsewhere: phase, loss, held-out score, time left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

    from prism.training import Progress, Update


@contextmanager
def shown_progress() -> Iterator[Progress]:
    """Yield a receiver of training updates that shows them on stderr."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _line
        return
    from rich.progress import BarColumn, Progress, TextColumn

    columns = ("[progress.description]{task.description}", "{task.percentage:>3.0f}%")
    texts = [TextColumn(text) for text in columns]
    told = TextColumn("{task.fields[told]}")
    with Progress(texts[0], BarColumn(), texts[1], told, console=console) as bars:
        yield _Bar(bars)


class _Bar:
    """One bar a phase."""

    def __init__(self, bars: Bars) -> None:
        self.bars = bars
        self.phases: dict[str, TaskID] = {}

    def __call__(self, update: Update) -> None:
        """Move the bar of this phase; the phase before it is over, early stop or not."""
        if update.phase not in self.phases:
            for task in self.phases.values():
                self.bars.update(task, completed=self.bars.tasks[task].total)
            self.phases[update.phase] = self.bars.add_task(update.phase, total=None, told="")
        task = self.phases[update.phase]
        self.bars.update(task, total=update.steps, completed=update.step, told=_told(update))


def _line(update: Update) -> None:
    text = f"{update.phase} {update.step}/{update.steps}: {_told(update)}"
    typer.echo(text, err=True)


def _told(update: Update) -> str:
    held_out = "" if update.held_out is None else f", held-out {update.held_out:.3f}"
    return f"loss {update.loss:.3f}{held_out}, {_clock(update.seconds_left)} left"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
