"""The same work for many shapes, over the processor's cores, with progress."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from prism.errors import PrismError

Item = TypeVar("Item")
Result = TypeVar("Result")
_REPORTS = 50


@dataclass(frozen=True)
class Advance:
    """One message to whoever shows progress.

    Attributes:
        phase: What is being done.
        step: How many shapes are done.
        steps: How many there are.
        seconds_left: What the pace so far makes of the rest.
    """

    phase: str
    step: int
    steps: int
    seconds_left: float


class Progress(Protocol):
    """Receives messages; the command line draws a bar, a library call may log them."""

    def __call__(self, advance: Advance) -> None:
        """Take note of a message."""
        ...


def silent(advance: Advance) -> None:
    """Show nothing."""


@dataclass(frozen=True)
class _Refused:
    """An error on its way home from a worker."""

    kind: type[PrismError]
    what: str
    remedy: str


def in_parallel(
    action: Callable[[Item], Result],
    items: Sequence[Item],
    phase: str,
    workers: int | None = None,
    progress: Progress = silent,
) -> Iterator[Result]:
    """Do the same to every item and yield the results in order.

    Args:
        action: A function of one item that can travel to another process.
        items: What to do it to.
        phase: What the work is called in progress messages.
        workers: Number of processes. Default: one a core; 1 works in this process.
        progress: Receives a message now and then.

    Raises:
        PrismError: The first item's error, in order.
    """
    started, every = time.monotonic(), max(1, len(items) // _REPORTS)
    for step, result in enumerate(_results(action, items, workers), start=1):
        if isinstance(result, _Refused):
            raise result.kind(result.what, result.remedy)
        if step % every == 0 or step == len(items):
            pace = (time.monotonic() - started) / step
            progress(Advance(phase, step, len(items), pace * (len(items) - step)))
        yield result


def _results(
    action: Callable[[Item], Result], items: Sequence[Item], workers: int | None
) -> Iterable[Any]:
    workers = min(_cores() if workers is None else workers, len(items))
    if workers <= 1:
        return (_attempt(action, item) for item in items)
    from joblib import Parallel, delayed, parallel_config

    with parallel_config(backend="loky", inner_max_num_threads=1):
        pool = Parallel(n_jobs=workers, return_as="generator")
        return pool(delayed(_in_worker)(action, item) for item in items)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _in_worker(action: Callable[[Item], Result], item: Item) -> Result | _Refused:
    """One thread a process: the processes share the cores already."""
    os.environ.setdefault("IGL_NUM_THREADS", "1")
    return _attempt(action, item)


def _attempt(action: Callable[[Item], Result], item: Item) -> Result | _Refused:
    try:
        return action(item)
    except PrismError as error:
        return _Refused(type(error), error.what, error.remedy)
