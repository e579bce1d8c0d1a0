"""Timing and tables shared by the benchmarks."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import torch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def seconds(action: Callable[[], object], repeats: int, warm: int = 2) -> float:
    """Median seconds of one call, after warming up."""
    times = []
    for i in range(warm + repeats):
        _wait()
        start = time.perf_counter()
        action()
        _wait()
        if i >= warm:
            times.append(time.perf_counter() - start)
    return median(times)


def _wait() -> None:
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()


def report(name: str, rows: list[dict[str, object]]) -> None:
    """Print the rows as a table and write them as JSON beside this file."""
    columns = list(rows[0])
    print(f"\n{name} ({DEVICE.type}, {torch.get_num_threads()} threads, torch {torch.__version__})")
    print("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
    for row in rows:
        print("| " + " | ".join(_text(row[c]) for c in columns) + " |")
    folder = Path(__file__).parent / "results"
    folder.mkdir(exist_ok=True)
    facts = {"device": DEVICE.type, "machine": platform.machine(), "torch": torch.__version__}
    (folder / f"{name}-{DEVICE.type}.json").write_text(
        json.dumps({**facts, "rows": rows}, indent=1)
    )


def _text(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
