"""Samples of a cohort: cached by content, the same over processes, errors by row and file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from prism.cohort import Cohort, SDFSamples, Shape, Visits
from prism.errors import CohortError
from prism.preprocess import SamplingConfig, many, sample_cohort
from tests.problems.broken_shapes import BAD, REFUSED, ROWS, ball, write_raw
from tests.problems.good_cohort import FOLDER

pytest.importorskip("igl")
FEW = SamplingConfig(surface=60, near=40, box=20)


def _same(a: list[SDFSamples], b: list[SDFSamples]) -> bool:
    names = ("surface", "normals", "points", "distance")
    pairs = zip(a, b, strict=True)
    return all(np.array_equal(getattr(x, n), getattr(y, n)) for x, y in pairs for n in names)


def test_cores_and_cache_change_nothing(tmp_path: Path) -> None:
    cohort = Cohort.read(write_raw(tmp_path))
    alone = sample_cohort(cohort, FEW, workers=1)
    assert len(alone) == ROWS
    seen: list[int] = []
    cache = tmp_path / "deep" / "cache"
    both = sample_cohort(
        cohort, FEW, cache=cache, workers=2, progress=lambda a: seen.append(a.step)
    )
    assert _same(alone, both)
    assert seen == list(range(1, ROWS + 1))
    assert len(list(cache.iterdir())) == ROWS
    assert _same(alone, sample_cohort(cohort, FEW, cache=cache, workers=1))


def test_the_cache_goes_by_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, cache = write_raw(tmp_path), tmp_path / "cache"
    cohort = Cohort.read(folder)
    first = sample_cohort(cohort, FEW, cache=cache, workers=1)
    made: list[str] = []
    sample = many._sample
    monkeypatch.setattr(many, "_sample", lambda *a: made.append(a[0].path.name) or sample(*a))
    (folder / "shapes" / "1.ply").rename(folder / "shapes" / "keep.ply")
    (folder / "shapes" / "2.ply").rename(folder / "shapes" / "1.ply")
    (folder / "shapes" / "keep.ply").rename(folder / "shapes" / "2.ply")
    swapped = sample_cohort(cohort, FEW, cache=cache, workers=1)
    assert not made
    assert _same([swapped[1], swapped[2]], [first[2], first[1]])
    sample_cohort(cohort, FEW, seed=1, cache=cache, workers=1)
    assert len(made) == ROWS


def test_a_damaged_cache_is_made_again(tmp_path: Path) -> None:
    cohort, cache = Cohort.read(write_raw(tmp_path)), tmp_path / "cache"
    first = sample_cohort(cohort, FEW, cache=cache, workers=1)
    for path in cache.iterdir():
        path.write_bytes(path.read_bytes()[:500])
    assert _same(first, sample_cohort(cohort, FEW, cache=cache, workers=1))


def test_shapes_at_hand_need_no_files(tmp_path: Path) -> None:
    shapes = [Shape(*ball(size)) for size in (9.0, 10.0)]
    assert [s.size > 15 for s in sample_cohort(shapes, FEW, workers=1)] == [True, True]
    assert sample_cohort([], FEW) == []


@pytest.mark.parametrize(
    "kind",
    ["one triangle", "file missing", "row without a file", "wrong units, 1000 times too large"],
)
def test_broken_shapes_are_refused_by_row_and_file(kind: str, tmp_path: Path) -> None:
    message = REFUSED[kind](tmp_path)
    with pytest.raises(CohortError) as caught:
        sample_cohort(Cohort.read(tmp_path / FOLDER), FEW, workers=1)
    assert "row 7 (subject 005, visit v0)" in caught.value.what
    if not kind.startswith("wrong"):
        assert message in caught.value.what
    assert str(BAD) in caught.value.what


def test_a_cohort_without_raw_shapes_says_so() -> None:
    visits = Visits(["a"], ["1"], [0.0])
    with pytest.raises(CohortError, match="names no raw shapes"):
        sample_cohort(Cohort("toy", "", "", None, visits))
