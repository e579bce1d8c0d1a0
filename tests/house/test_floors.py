"""The floors of docs/architecture.md, and the house rules a linter does not know."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src"
FLOORS = {
    **dict.fromkeys(["typing", "errors"], 0),
    **dict.fromkeys(["nets", "training", "runs", "course"], 1),
    **dict.fromkeys(["cohort", "gaussian", "fisher", "metrics"], 2),
    **dict.fromkeys(["preprocess", "simulate", "registration", "population"], 3),
    **dict.fromkeys(["intrinsic", "covariation", "calibration", "rules", "baselines"], 3),
    "model": 4,
    "applications": 5,
    "report": 6,
    "cli": 7,  # with __main__.py, see room_of
}
SHARING = 2  # up to this floor, rooms of one floor may use each other
DOOR = {"", "__init__", "_door"}  # the front door: may import everything, belongs to no floor
ADVICE = "add it to the table of docs/architecture.md and to FLOORS in tests/house/test_floors.py"
LONGEST = 400
HEAVY = ("torch", "vtk", "vtkmodules", "pyvista", "ot", "matplotlib", "jinja2")
HEAVY += ("igl", "SimpleITK", "skimage", "joblib")

Rule = tuple[int, str]  # line, what is wrong


def modules() -> list[Path]:
    """Every module of the package, relative to src."""
    return sorted(path.relative_to(SRC) for path in (SRC / "prism").rglob("*.py"))


def room_of(dotted: str) -> str:
    """`prism.cohort.values` lies in room `cohort`; `__main__` is the outer door of `cli`."""
    room = dotted.split(".")[1] if "." in dotted else ""
    return "cli" if room == "__main__" else room


def imported(tree: ast.AST, package: str) -> Iterator[tuple[int, str]]:
    """Line and dotted name of everything a module of this package imports, lazily or not."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            base = parts[: len(parts) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            # `from prism import cohort` names a room, `from prism.cohort import X` is in one.
            names = [f"{origin}.{a.name}" if origin == "prism" else origin for a in node.names]
            yield from ((node.lineno, name) for name in names)


def floor_faults(source: str, module: str, package: str) -> list[Rule]:
    """Imports of a module that break the floors."""
    room = room_of(module)
    if room in DOOR:
        return []
    if room not in FLOORS:
        return [(1, f"room {room!r} stands on no floor: {ADVICE}")]
    faults = []
    for line, name in imported(ast.parse(source), package):
        other = room_of(name)
        if name.split(".")[0] != "prism" or other in (room, "__version__"):
            continue
        if other not in FLOORS:
            faults.append((line, f"{name} is no room: go round the front door, or {ADVICE}"))
        elif FLOORS[other] > FLOORS[room]:
            faults.append((line, f"floor {FLOORS[room]} must not look up to {name}"))
        elif FLOORS[other] == FLOORS[room] > SHARING:
            faults.append((line, f"{room} and {other} share floor {FLOORS[room]}: strangers"))
    return faults


def habit_faults(source: str, module: str) -> list[Rule]:
    """Calls and lengths that break the house rules."""
    faults = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        if called == "print" and room_of(module) != "cli":
            faults.append((node.lineno, "only cli/ prints; use logging"))
        settings = {ast.unparse(keyword) for keyword in node.keywords}
        if called == "torch.load" and "weights_only=True" not in settings:
            faults.append((node.lineno, "torch.load runs code unless weights_only=True"))
    if (lines := source.count("\n")) > LONGEST:
        faults.append((lines, f"{lines} lines, more than {LONGEST}: split the module"))
    return faults


def _names(path: Path) -> tuple[str, str]:
    """Dotted name of a module and of the package that holds it."""
    package = ".".join(path.parent.parts)
    return (package if path.stem == "__init__" else f"{package}.{path.stem}"), package


def _told(path: Path, faults: list[Rule]) -> str:
    return "".join(f"\nsrc/{path}:{line}: {what}" for line, what in faults)


@pytest.mark.parametrize("path", modules(), ids=str)
def test_module_keeps_the_floors(path: Path) -> None:
    faults = floor_faults((SRC / path).read_text(), *_names(path))
    assert not faults, _told(path, faults)


@pytest.mark.parametrize("path", modules(), ids=str)
def test_module_keeps_the_house_rules(path: Path) -> None:
    faults = habit_faults((SRC / path).read_text(), _names(path)[0])
    assert not faults, _told(path, faults)


def test_there_are_modules_to_judge() -> None:
    assert Path("prism/errors.py") in modules()


@pytest.mark.parametrize(
    "name",
    [
        "prism",
        "prism.metrics",
        "prism.simulate",
        "prism.baselines",
        "prism.cli",
        "prism.preprocess",
    ],
)
def test_import_is_light(name: str) -> None:
    # Without its __init__.py a folder imports as an empty namespace, and would pass unread.
    check = f"assert {name}.__file__, 'no __init__.py in {name}'"
    code = f"import sys, {name}; {check}; print(*sorted(set(sys.modules) & set({HEAVY})))"
    env = {**os.environ, "PYTHONPATH": str(SRC)}
    call = [sys.executable, "-c", code]
    done = subprocess.run(call, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [], f"`import {name}` pulls in {done.stdout}"


@pytest.mark.parametrize(
    ("source", "module"),
    [
        ("import prism.model", "prism.fisher"),
        ("from prism.population.field import Field", "prism.simulate.starman"),
        ("def late():\n    from prism.cli import app", "prism.report.page"),
        ("from prism import model", "prism.calibration"),
        ("from prism import PRISM", "prism.applications.time"),
        ("import prism", "prism.model"),
        ("from ..population import Field", "prism.intrinsic.encoder"),
        ("from .. import model", "prism.intrinsic.encoder"),
        ("import prism.runs", "prism.errors"),
        ("x = 1", "prism.attic.box"),
    ],
)
def test_broken_floors_are_seen(source: str, module: str) -> None:
    assert floor_faults(source, module, module.rpartition(".")[0])


@pytest.mark.parametrize(
    ("source", "module"),
    [
        ("from prism.errors import QueryError", "prism.metrics.time"),
        ("from prism.gaussian import GaussianField", "prism.fisher"),
        ("from .clock import tick\nfrom . import clock", "prism.simulate.starman"),
        ("from ..cohort.values import Visits\nfrom .. import errors", "prism.simulate.starman"),
        ("from prism import __version__", "prism.runs"),
        ("import torch, prismatic", "prism.nets.siren"),
        ("from prism.cli import app", "prism.__main__"),
        ("from prism.cli import app", "prism"),
    ],
)
def test_sound_floors_are_left_alone(source: str, module: str) -> None:
    assert floor_faults(source, module, module.rpartition(".")[0] or "prism") == []


@pytest.mark.parametrize(
    "source",
    [
        "print('hello')",
        "torch.load(path)",
        "torch.load(path, weights_only=False)",
        "x = 1\n" * (LONGEST + 1),
    ],
)
def test_broken_house_rules_are_seen(source: str) -> None:
    assert len(habit_faults(source, "prism.runs")) == 1
    assert habit_faults("pprint(1)\ntorch.load(p, weights_only=True)", "prism.runs") == []
    assert habit_faults("print('hello')", "prism.cli.fit") == []
