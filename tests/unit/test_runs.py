from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from prism.errors import QueryError
from prism.runs import check_file, fingerprint, fresh_file, fresh_folder, provenance


def test_fingerprint_changes_with_any_part() -> None:
    base = (np.arange(4.0), np.array(["a", "b"]), {"seed": 0, "rate": 0.1}, "name")
    others = [
        (np.array([0.0, 1.0, 2.0, 3.0000001]), *base[1:]),
        (np.arange(4.0).reshape(2, 2), *base[1:]),
        (np.arange(4), *base[1:]),
        (base[0], np.array(["a", "c"]), *base[2:]),
        (*base[:2], {"seed": 1, "rate": 0.1}, "name"),
        (*base[:3], "other"),
    ]
    assert fingerprint(*base) == fingerprint(*base)
    assert len({fingerprint(*parts) for parts in [base, *others]}) == 1 + len(others)


def test_fingerprint_ignores_the_order_of_settings_and_of_memory() -> None:
    assert fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
    square = np.arange(6.0).reshape(2, 3)
    assert fingerprint(square) == fingerprint(np.asfortranarray(square))


def test_provenance_says_what_made_it() -> None:
    facts = provenance(seed=3)
    assert facts["seed"] == 3
    assert {"prism", "python", "numpy", "created"} <= facts.keys()


def test_a_folder_appears_only_when_complete(tmp_path: Path) -> None:
    with fresh_folder(tmp_path / "out", "mark") as draft:
        (draft / "mark").write_text("new")
        assert not (tmp_path / "out").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def _fail_in_folder(path: Path) -> None:
    with fresh_folder(path, "mark") as draft:
        (draft / "mark").write_text("half")
        raise RuntimeError


def _fail_in_file(path: Path) -> None:
    with fresh_file(path) as draft:
        draft.write_text("half")
        raise RuntimeError


@pytest.mark.parametrize("fail", [_fail_in_folder, _fail_in_file])
def test_an_exception_leaves_nothing_behind(fail: Callable[[Path], None], tmp_path: Path) -> None:
    with pytest.raises(RuntimeError):
        fail(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_an_exception_leaves_the_older_folder_whole(tmp_path: Path) -> None:
    with fresh_folder(tmp_path / "out", "mark") as draft:
        (draft / "mark").write_text("old")
    with pytest.raises(RuntimeError):
        _fail_in_folder(tmp_path / "out")
    assert (tmp_path / "out" / "mark").read_text() == "old"


def test_a_folder_of_the_same_kind_is_replaced_whole(tmp_path: Path) -> None:
    for name in ("old", "new"):
        with fresh_folder(tmp_path / "out", "mark", ("old", "new")) as draft:
            (draft / "mark").touch()
            (draft / name).touch()
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"mark", "new"}


def test_what_belongs_to_the_user_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(QueryError, match="not empty"), fresh_folder(tmp_path, "mark"):
        pass
    with pytest.raises(QueryError, match="is a file"), fresh_folder(tmp_path / "thesis.tex", "m"):
        pass
    with pytest.raises(QueryError, match="is a folder"), fresh_file(tmp_path):
        pass
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


@pytest.mark.parametrize("mine", ["notes.txt", "a-7/x.vtp", "mine/a-7.vtp", "figures/b.png"])
def test_a_folder_with_something_of_the_user_is_not_replaced(tmp_path: Path, mine: str) -> None:
    out, holds = tmp_path / "out", ("a-*.vtp", "figures/a.png")
    for name in ("mark", "a-7.vtp", "provenance.json", "figures/a.png", ".DS_Store", mine):
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text("old")
    refused = pytest.raises(QueryError, match=f"{mine.split('/')[0]}.* was not written by PRISM")
    with refused, fresh_folder(out, "mark", holds):
        pass
    assert (out / mine).read_text() == (out / "mark").read_text() == "old"
    (out / mine).unlink()
    if mine.startswith(("a-7", "mine")):
        (out / mine).parent.rmdir()
    with fresh_folder(out, "mark", holds) as draft:
        (draft / "mark").write_text("new")
    assert [path.name for path in out.iterdir()] == ["mark"]


def test_a_file_named_as_a_folder_of_ours_is_the_users(tmp_path: Path) -> None:
    for name in ("mark", "figures"):
        (tmp_path / name).touch()
    refused = pytest.raises(QueryError, match="figures in it was not written")
    with refused, fresh_folder(tmp_path, "mark", ("figures/a.png",)):
        pass


def test_a_folder_of_another_verb_is_not_replaced(tmp_path: Path) -> None:
    for verb in ("time", "time"):
        with fresh_folder(tmp_path / "maps", "mark", (), verb) as draft:
            (draft / "mark").touch()
            (draft / "provenance.json").write_text('{"command": "time"}')
    with (
        pytest.raises(QueryError, match="was written by prism time"),
        fresh_folder(tmp_path / "maps", "mark", (), "anomaly"),
    ):
        pass


def test_a_file_is_replaced_by_the_verb_that_wrote_it_alone(tmp_path: Path) -> None:
    table, story = tmp_path / "t.csv", tmp_path / "t.provenance.json"
    table.write_text("mine")
    for told in (None, "{}", "[]", "{", '{"command": "anomaly"}'):
        if told is not None:
            story.write_text(told)
        with pytest.raises(QueryError, match="not written by prism time"):
            check_file(table, "time")
    story.write_text('{"command": "time", "files": ["t.png"]}')
    with pytest.raises(QueryError, match="not written by prism time"), fresh_file(table, "time"):
        pass
    assert table.read_text() == "mine"
    for told in ('{"command": "time", "files": ["t.csv"]}', '{"command": "time"}'):
        story.write_text(told)
        with fresh_file(table, "time") as draft:
            draft.write_text("new")
    assert table.read_text() == "new"
    inside = tmp_path / "m.json"
    inside.write_text('{"provenance": {"command": "evaluate"}}')
    check_file(inside, "evaluate")


def test_an_empty_file_may_be_replaced(tmp_path: Path) -> None:
    made = tmp_path / "times.csv"
    made.touch()
    check_file(made, "time")
    made.write_text("mine")
    with pytest.raises(QueryError, match="was not written by prism time"):
        check_file(made, "time")


def test_a_file_appears_only_when_complete(tmp_path: Path) -> None:
    with fresh_file(tmp_path / "new" / "page.html") as draft:
        draft.write_text("done")
        assert draft.suffix == ".html"
        assert not (tmp_path / "new" / "page.html").exists()
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["page.html"]
