"""docs/equations.md stays true: every equation has one function and a test, and says so."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "equations.md"
COLUMNS = ["tag", "paper", "function", "test"]
TAG = re.compile(r"\[(Eq\. [^\]]+)\]")
TEST = re.compile(r"(tests/[\w/]+\.py)::([\w:]+)")


class Row(NamedTuple):
    """One equation of the page."""

    tag: str
    paper: str
    function: str
    test: str


def read_page(text: str) -> list[Row]:
    """Rows of every table whose header is tag | paper | function | test."""
    rows, inside = [], False
    for line in text.splitlines():
        cells = [c.strip() for c in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
        if not line.strip().startswith("|"):
            inside = False
        elif [c.lower() for c in cells] == COLUMNS:
            inside = True
        elif inside and not set(line) <= set("|-: "):
            rows.append(_row(cells))
    return rows


def _row(cells: list[str]) -> Row:
    assert len(cells) == len(COLUMNS), f"docs/equations.md: expected 4 cells, got {cells}"
    tag = cells[0].strip("`[]")
    return Row(f"Eq. {tag.removeprefix('Eq. ')}", cells[1], cells[2].strip("`"), cells[3])


def find(path: str) -> Any:
    """Object at a dotted path: the longest module prefix, then attributes."""
    parts = path.split(".")
    for cut in range(len(parts), 0, -1):
        name = ".".join(parts[:cut])
        try:
            found = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise  # the module is there, but something it needs is not
            continue
        for attribute in parts[cut:]:
            found = getattr(found, attribute)
        return found
    raise ModuleNotFoundError(path)


def first_line(docstring: str | None) -> str:
    """First line of a docstring, empty if there is none."""
    return (docstring or "").strip().partition("\n")[0]


def tagged(source: str) -> Iterator[tuple[str, str]]:
    """Tag and object name of every docstring in a module whose first line carries a tag."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, documented):
            line = first_line(ast.get_docstring(node))
            yield from ((tag, getattr(node, "name", "the module")) for tag in TAG.findall(line))


def defined_tests(source: str) -> set[str]:
    """`test_name` and `TestClass::test_name` of a test module."""
    names = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.ClassDef):
            methods = (inner for inner in node.body if isinstance(inner, ast.FunctionDef))
            names |= {f"{node.name}::{method.name}" for method in methods}
    return names


def rows() -> list[Row]:
    """Rows of docs/equations.md; none while the page is missing, which a test below reports."""
    return read_page(PAGE.read_text()) if PAGE.exists() else []


def test_the_page_lists_equations() -> None:
    assert PAGE.exists(), "write docs/equations.md, a table: tag | paper | function | test"
    assert rows(), "docs/equations.md has no table headed tag | paper | function | test"


def test_tags_are_unique() -> None:
    tags = [row.tag for row in rows()]
    assert sorted(tags) == sorted(set(tags))


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.tag)
def test_function_carries_its_tag(row: Row) -> None:
    line = first_line(inspect.getdoc(find(row.function)))
    assert row.tag in TAG.findall(line), f"{row.function}: [{row.tag}] is not in {line!r}"


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.tag)
def test_test_exists(row: Row) -> None:
    named = TEST.findall(row.test)
    assert named, f"{row.tag}: name a test as tests/.../test_x.py::test_name"
    for path, name in named:
        assert (ROOT / path).exists(), f"{row.tag}: {path} does not exist"
        assert name in defined_tests((ROOT / path).read_text()), f"{row.tag}: no {name} in {path}"


def test_every_tag_in_the_source_is_listed_and_lives_once() -> None:
    files = sorted((ROOT / "src" / "prism").rglob("*.py"))
    homes: dict[str, list[str]] = {}
    for path in files:
        for tag, name in tagged(path.read_text()):
            homes.setdefault(tag, []).append(f"{path.relative_to(ROOT)}: {name}")
    unlisted = {tag: where for tag, where in homes.items() if tag not in {r.tag for r in rows()}}
    assert not unlisted, f"not in docs/equations.md: {unlisted}"
    repeated = {tag: where for tag, where in homes.items() if len(where) > 1}
    assert not repeated, f"one equation, one function: {repeated}"


def test_the_reader_reads() -> None:
    page = r"""
| verb | does |
|---|---|
| a | b |

| Tag | Paper | Function | Test |
|:--|---|---|---|
| `[Eq. I-mu]` | Sec. 3 | `prism.fisher.info` | `tests/unit/test_a.py::test_b` |
| Eq. det | \|J\| | prism.x | tests/unit/test_a.py::TestA::test_c |

| Eq. lost | outside | the | table |
"""
    found = read_page(page)
    assert [r.tag for r in found] == ["Eq. I-mu", "Eq. det"]
    assert found[0].function == "prism.fisher.info"
    assert TEST.findall(found[1].test) == [("tests/unit/test_a.py", "TestA::test_c")]


def test_the_finder_finds() -> None:
    assert find("prism.errors.PrismError.__init__").__name__ == "__init__"
    with pytest.raises(AttributeError):
        find("prism.errors.NoSuchError")
    with pytest.raises(ModuleNotFoundError):
        find("no_such_package.thing")


def test_the_parsers_parse() -> None:
    source = 'class A:\n    """A."""\n    def test_b(self):\n        """[Eq. x] B.\n\n[Eq. y]"""'
    assert list(tagged(source)) == [("Eq. x", "test_b")]
    assert defined_tests(source + "\ndef test_c(): ...") == {"A::test_b", "test_c"}
