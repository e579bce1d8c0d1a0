"""Law: what is written is what is read, for every cohort."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from prism.cohort import Cohort, Correspondence, Visits

NAMES = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=6)
CELLS = st.text(st.characters(exclude_categories=("C", "Z"), include_characters=" "), max_size=6)
FINITE = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def cohorts(draw: st.DrawFn) -> Cohort:
    """Any cohort whose names are printable: ages may be unknown, points missing."""
    keys = draw(st.lists(st.tuples(NAMES, NAMES), min_size=1, max_size=5, unique=True))
    t = draw(st.lists(FINITE | st.just(float("nan")), min_size=len(keys), max_size=len(keys)))
    columns = {
        name: draw(st.lists(CELLS.map(str.strip), min_size=len(keys), max_size=len(keys)))
        for name in draw(st.sets(st.sampled_from(["group", "split", "MMSE", "é, ü"])))
    }
    subject, visit = zip(*keys, strict=True)
    visits = Visits(np.array(subject), np.array(visit), np.array(t), columns)
    return Cohort.from_correspondence(draw(correspondences(visits)))


@st.composite
def correspondences(draw: st.DrawFn, visits: Visits) -> Correspondence:
    """Shapes for these visits; the first point is always there, the others may be missing."""
    shape = (len(visits), draw(st.integers(1, 4)), draw(st.sampled_from([2, 3])))
    points = draw(hnp.arrays(np.float64, shape, elements=FINITE))
    missing = draw(hnp.arrays(np.bool_, shape[:2]))
    missing[:, 0] = False
    points[missing] = np.nan
    template = draw(hnp.arrays(np.float64, shape[1:], elements=FINITE))
    cells = draw(st.none() | hnp.arrays(np.int64, (2, 2), elements=st.integers(0, shape[1] - 1)))
    unit, length, name = draw(CELLS), draw(CELLS), draw(st.text(max_size=6).filter(_encodable))
    return Correspondence(points, visits, template, cells, unit, length, name)


def _encodable(text: str) -> bool:
    return not any("\ud800" <= c <= "\udfff" for c in text)


@settings(deadline=None, max_examples=60)
@given(cohorts())
def test_write_then_read_is_the_identity(cohort: Cohort) -> None:
    with tempfile.TemporaryDirectory() as folder:
        again = Cohort.read(cohort.write(Path(folder) / "out").path or folder)
    stated = ("name", "time_unit", "length_unit", "dimension")
    assert [getattr(again, key) for key in stated] == [getattr(cohort, key) for key in stated]
    _assert_same(
        vars(again.visits) | again.visits.columns, vars(cohort.visits) | cohort.visits.columns
    )
    _assert_same(vars(again.correspondence), vars(cohort.correspondence))


def _assert_same(a: dict, b: dict) -> None:
    """Every array is the same to the last bit, signs of zero and missing points included."""
    assert a.keys() == b.keys()
    for key in a:
        if isinstance(a[key], np.ndarray):
            np.testing.assert_array_equal(a[key], b[key])
            if a[key].dtype == np.float64:
                np.testing.assert_array_equal(np.signbit(a[key]), np.signbit(b[key]))
