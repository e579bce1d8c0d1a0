"""Makers of cohort folders that are broken, each in one way a user could meet.

Every maker takes an empty directory, writes the folder `cohort` (`FOLDER`) into it and returns a
text that the error message must contain. `BROKEN` folders cannot be read; `UNFITTABLE` folders can
be read, but no model can be fitted to them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.problems.good_cohort import (
    FOLDER,
    POINTS,
    SUBJECTS,
    VISITS,
    good_truth,
    shapes,
    table,
    write,
)

Maker = Callable[[Path], str]


def _lines(change: Callable[[list[str]], Any], message: str) -> Maker:
    """A maker whose visits table has its lines changed."""

    def make(tmp: Path) -> str:
        write(tmp, visits=table(change))
        return message

    return make


def _cell(row: int, text: str, message: str) -> Maker:
    """A maker whose visits table has one line replaced; rows as a spreadsheet numbers them."""
    return _lines(lambda lines: lines.__setitem__(row - 1, text), message)


def _parts(message: str, **parts: Any) -> Maker:
    """A maker that replaces whole parts of a good folder."""

    def make(tmp: Path) -> str:
        write(tmp, **parts)
        return message

    return make


def _points(index: Any, value: float, message: str) -> Maker:
    """A maker whose points hold a value where they should not."""
    points = shapes()
    points[index] = value
    return _parts(message, points=points)


def _truth(name: str, value: Any, message: str) -> Maker:
    """A maker whose truth has one array replaced, or left out where None is given."""

    def make(tmp: Path) -> str:
        folder = write(tmp)
        arrays = {**good_truth(), name: value}
        (folder / "truth").mkdir()
        stored = {key: array for key, array in arrays.items() if array is not None}
        np.savez(folder / "truth" / "truth.npz", **stored)
        return message

    return make


def truncated_npz(tmp: Path) -> str:
    """The copy of the shapes stopped half-way."""
    path = write(tmp) / "correspondence.npz"
    path.write_bytes(path.read_bytes()[:700])
    return "correspondence.npz"


def flipped_npz(tmp: Path) -> str:
    """One stored byte changed on the way, so that the checksum is wrong."""
    path = write(tmp) / "correspondence.npz"
    content = bytearray(path.read_bytes())
    content[900] ^= 0xFF
    path.write_bytes(bytes(content))
    return "correspondence.npz"


def empty_npz(tmp: Path) -> str:
    """A file of no bytes where the shapes should be."""
    (write(tmp) / "correspondence.npz").write_bytes(b"")
    return "correspondence.npz"


def npy_npz(tmp: Path) -> str:
    """A bare .npy file under an .npz name."""
    with (write(tmp) / "correspondence.npz").open("wb") as file:
        np.save(file, shapes())
    return "correspondence.npz"


def folder_missing(tmp: Path) -> str:
    """No folder at all."""
    return str(tmp / FOLDER)


def path_is_file(tmp: Path) -> str:
    """A file where the folder should be."""
    (tmp / FOLDER).write_text("subject,visit,t\n")
    return "is a file"


def two_tables(tmp: Path) -> str:
    """Both visits.csv and visits.tsv."""
    (write(tmp) / "visits.tsv").write_text(table().replace(",", "\t"))
    return "Found 2"


def _ragged() -> np.ndarray:
    points = np.empty(SUBJECTS * VISITS, dtype=object)
    points[:] = [list(range(k)) for k in range(len(points))]
    return points


def _semicolons() -> str:
    return table(lambda x: x.__setitem__(3, "001,v0,1,5")).replace(",", ";").replace("1;5", "1,5")


_ARM_7 = "[regions]\nleg = 0\narm = [1, 7]\n"

BROKEN: dict[str, Maker] = {
    # the folder
    "folder missing": folder_missing,
    "path is a file": path_is_file,
    "visits table missing": _parts("visits.csv", visits=None),
    "two visits tables": two_tables,
    "correspondence missing": _parts("prism register", points=None),
    # cohort.toml
    "toml broken": _parts("cohort.toml", toml='name = "toy\n'),
    "toml not UTF-8": _parts("cohort.toml", toml='name = "Köln"\n'.encode("latin-1")),
    "toml unit is a number": _parts("time_unit", toml="time_unit = 3\n"),
    "toml dimension is text": _parts("dimension", toml='dimension = "3"\n'),
    "toml dimension is true": _parts("must be a whole number", toml="dimension = true\n"),
    "toml dimension is four": _parts("dimension must be 2 or 3", toml="dimension = 4\n"),
    "dimension mismatch": _parts("dimension = 3", toml="dimension = 3\n"),
    "regions are a list": _parts("regions must be a table", toml="regions = [1, 2]\n"),
    "region is text": _parts("region 'arm'", toml='[regions]\narm = "left"\n'),
    "region is a fraction": _parts("region 'arm'", toml="[regions]\narm = [1.5]\n"),
    "region is true": _parts("region 'arm'", toml="[regions]\narm = true\n"),
    "region is empty": _parts("region 'arm'", toml="[regions]\narm = []\n"),
    "region is nested": _parts("region 'arm'", toml="[regions]\narm = [[1, 2], [3]]\n"),
    "region of lists": _parts("region 'arm'", toml="[regions]\narm = [[1, 2]]\n"),
    "region is a table": _parts("region 'arm'", toml="[regions.arm]\nleft = [1]\n"),
    "region below zero": _parts("names point -1", toml="[regions]\narm = [-1, 3]\n"),
    "region out of range": _parts("cohort.toml: region 'arm' names point 7", toml=_ARM_7),
    "region called 31": _parts("region '31'", toml="[regions]\n31 = [1]\n"),
    "region without a name": _parts("name must be printable", toml='[regions]\n"" = [1]\n'),
    # visits.csv: the table
    "table empty": _parts("visits.csv", visits=b""),
    "table of blank lines": _parts("visits.csv", visits="\n,,\n\n"),
    "header only": _parts("only a header", visits="subject,visit,t\n"),
    "table not UTF-8": _parts("UTF-8", visits=table().replace("000", "Jörg").encode("latin-1")),
    "table UTF-16": _parts("UTF-8", visits=table().encode("utf-16")),
    "column subject missing": _cell(1, "id,visit,t", "column subject is missing"),
    "column visit missing": _cell(1, "subject,scan,t", "column visit is missing"),
    "column t missing": _cell(1, "subject,visit,time", "column t is missing"),
    "column twice": _cell(1, "subject,visit,t,Visit", "column visit appears more than once"),
    "own column twice": _cell(1, "subject,visit,t,MMSE,mmse", "column mmse appears more than"),
    "t and age": _cell(1, "subject,visit,t,age", "t (or age)"),
    "column without a name": _cell(1, "subject,visit,t,", "column 4 has no name"),
    "quote never closed": _cell(5, '001,"v1,6.25', "unexpected end of data"),
    # visits.csv: the rows
    "text age": _cell(3, "000,v1,about two", "row 3: age 'about two'"),
    "infinite age": _cell(4, "001,v0,inf", "row 4: age 'inf' is infinite"),
    "age too large": _cell(4, "001,v0,1e999", "row 4: age '1e999' is infinite"),
    "ambiguous age": _cell(5, '001,v1,"1,234"', "row 5: age '1,234' is ambiguous"),
    "ambiguous point": _parts(
        "row 5: age '1.234' is ambiguous", visits=_semicolons().replace("6.25", "1.234")
    ),
    "age with two marks": _cell(5, '001,v1,"1.234,5"', "row 5: age '1.234,5'"),
    "age with unknown unit": _cell(5, "001,v1,3 moons", "row 5: age '3 moons'"),
    "age with m": _cell(5, "001,v1,3 m", "row 5: age '3 m'"),
    "age with two units": _cell(5, "001,v1,2 y 3 mo", "row 5: age '2 y 3 mo'"),
    "age with unit, cohort without": _parts(
        "row 3: age '23 months'", toml=None, visits="subject,visit,t\na,1,0\nb,1,23 months\n"
    ),
    "empty subject": _cell(6, ",v0,3.0", "row 6: subject is empty"),
    "empty visit": _cell(6, "002,,3.0", "row 6: visit is empty"),
    "duplicate visit": _cell(7, "000,v0,3.0", "row 7 repeats row 2"),
    "extra field": _cell(8, "003,v0,1,5", "row 8: 4 cells"),
    "field lacking": _cell(8, "003,v0", "row 8: 2 cells"),
    # correspondence.npz: the file
    "npz truncated": truncated_npz,
    "npz byte flipped": flipped_npz,
    "npz empty": empty_npz,
    "npz is a npy": npy_npz,
    "npz without points": _parts("array points is missing", points=None, shapes=shapes()),
    "points are objects": _parts("points holds Python objects", points=_ragged()),
    "points are complex": _parts("complex128", points=shapes().astype(complex)),
    "points are text": _parts("<U", points=shapes().astype(str)),
    "points are truth values": _parts("bool", points=shapes() > 0),
    # correspondence.npz: the arrays
    "points flat": _parts("(24, 14)", points=shapes().reshape(24, 14)),
    "points 4D": _parts("(24, 7, 4)", points=np.zeros((24, 7, 4))),
    "no points": _parts("(24, 0, 2)", points=np.zeros((24, 0, 2))),
    "shapes lacking": _parts("23 shapes, the visits table 24", points=shapes(23)),
    "infinite point": _points((4, 2, 0), np.inf, "point 2 of shape 5 (subject 002, visit v0)"),
    "half precision overflow": _parts("infinite", points=np.float16(np.inf) * np.ones((24, 7, 2))),
    "half a point": _points((5, 3, 1), np.nan, "point 3 of shape 6 (subject 002, visit v1)"),
    "shape all missing": _points(7, np.nan, "every point of shape 8 (subject 003, visit v1)"),
    "point missing everywhere": _points((slice(None), 6), np.nan, "template point 6"),
    "template wrong": _parts("(6, 2)", template=np.zeros((6, 2))),
    "template not finite": _parts("template point 0", template=np.full((7, 2), np.nan)),
    "template is text": _parts("template must hold", template=np.full((7, 2), "x")),
    "cells out of range": _parts("points 0 to 7", cells=[[0, 7]]),
    "cells count from one": _parts("points -1 to 3", cells=[[-1, 3]]),
    "cells are quads": _parts("(1, 4)", cells=[[0, 1, 2, 3]]),
    "cells are fractions": _parts("cells must hold whole numbers", cells=[[0.5, 1.0]]),
    "cells overflow": _parts("too large", cells=np.array([[0, 2**63 + 1]], dtype=np.uint64)),
    # truth/truth.npz
    "truth lacks tau": _truth("tau", None, "array tau is missing"),
    "truth of other visits": _truth("tau", np.zeros((3, 2)), "tau must have shape (24, 2)"),
    "truth of other points": _truth("clean", np.zeros((24, 6, 2)), "(24, 7, 2)"),
    "truth complex": _truth("mean", np.zeros((5, 7, 2), dtype=complex), "complex128"),
    "truth regions are numbers": _truth("regions", np.zeros(2), "regions must hold text"),
    "truth landmarks out of range": _truth("landmarks", np.array([0, 7]), "landmarks"),
    "truth abnormal is text": _truth("abnormal", np.full(24, "no"), "abnormal must hold"),
}


def _ages(text: str) -> str:
    """The good table with every age replaced."""
    return table(lambda x: x.__setitem__(slice(1, None), [f"{a[:6]},{text}" for a in x[1:]]))


UNFITTABLE: dict[str, Maker] = {
    "one age only": _parts("age", visits=_ages("12")),
    "all ages unknown": _parts("age", visits=_ages("n/a")),
    "one shape only": _parts(
        "subject", visits=table(lambda x: x.__delitem__(slice(2, None))), points=shapes(1)
    ),
    "one subject only": _parts(
        "subject", visits=table(lambda x: x.__delitem__(slice(3, None))), points=shapes(2)
    ),
    "point never seen": _parts(
        "point",
        points=np.where(np.arange(POINTS)[:, None] == 6, np.nan, shapes()),
        template=shapes(1)[0],
    ),
}
