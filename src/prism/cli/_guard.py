"""Errors a user can fix take two lines and status 2; a traceback means a defect of prism."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperGroup

from prism.errors import PrismError

USER_ERROR, INTERRUPTED = 2, 130
UsageError: Any = typer.BadParameter.__mro__[1]  # click's own, which typer does not name
RESUMABLE = {"fit": "Run the same command with --resume to go on from there."}
AGAIN = "Run the same command again."


def tell(what: str, remedy: str) -> None:
    """Write the two lines on stderr."""
    typer.echo(f"prism: {_one_line(what)}\n  {_one_line(remedy)}", err=True)


def _one_line(text: str) -> str:
    return " ".join(part.strip() for part in str(text).splitlines() if part.strip())


@contextmanager
def guard() -> Iterator[None]:
    """Turn what a user can fix into two lines and `typer.Exit(2)`."""
    try:
        yield
    except PrismError as error:
        tell(error.what, error.remedy)
    except BrokenPipeError:
        raise
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        tell(
            f"{place}{error.strerror or error}.",
            "Choose a place that exists, that you may use and that has free space.",
        )
    except UsageError as error:
        path = error.ctx.command_path if error.ctx else "prism"
        tell(error.format_message(), f"See: {path} --help")
    else:
        return
    raise typer.Exit(USER_ERROR)


class GuardedGroup(TyperGroup):
    """The group of all verbs, guarded as a whole."""

    def make_context(self, *args: Any, **extra: Any) -> Any:
        """Read the options that stand before the verb."""
        with guard():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: Any) -> Any:
        """Run a verb; Ctrl-C says how to go on."""
        try:
            with guard():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            sys.stderr.write("\n" if sys.stderr.isatty() else "")
            tell(
                "stopped. Nothing half-written was left behind.",
                RESUMABLE.get(ctx.invoked_subcommand, AGAIN),
            )
            raise typer.Exit(INTERRUPTED) from None
