"""One age as people write it: a number, perhaps with a unit or a decimal comma; never guessed."""

from __future__ import annotations

import math
import re

from prism.errors import CohortError

ERROR_COLUMN = "t_error"
UNKNOWN = frozenset({"", "n/a", "na", "nan"})
_SPELLINGS = {
    1.0: ("d", "day", "days"),
    7.0: ("w", "wk", "wks", "week", "weeks"),
    30.4375: ("mo", "mos", "month", "months"),
    365.25: ("y", "yr", "yrs", "year", "years"),
}
_DAYS = {word: days for days, words in _SPELLINGS.items() for word in words}
_AGE = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*|,[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"\s*(?P<unit>[^\W\d_]*)"
)
_INFINITE = re.compile(r"[+-]?(inf|infinity|∞)", re.IGNORECASE)


def parse_age(text: str, time_unit: str = "", grouping: str = ",") -> float:
    """Read an age in the cohort's time unit; NaN where it is unknown.

    Args:
        text: What the cell holds, e.g. `2.5`, `2,5`, `23 months`, `n/a`.
        time_unit: The cohort's time unit; needed when the age carries a unit of its own.
        grouping: The mark that may group thousands in this table (`,` or `.`), or nothing.

    Raises:
        CohortError: The age cannot be read without guessing.
    """
    text = text.strip().replace("\N{MINUS SIGN}", "-")
    if text.lower() in UNKNOWN:
        return math.nan
    if _INFINITE.fullmatch(text):
        raise _infinite(text)
    match = _AGE.fullmatch(text)
    if match is None:
        raise CohortError(
            f"age {text!r} is not a number.",
            "Write a plain number such as 2.5, or leave the cell empty if the age is unknown.",
        )
    value = _convert(_number(match["number"], grouping), match["unit"], time_unit, text)
    if math.isinf(value):
        raise _infinite(text)
    return value


def parse_age_error(text: str, time_unit: str = "", grouping: str = ",") -> float:
    """Read the standard error of an age, written as ages are; NaN where none is given.

    Raises:
        CohortError: It cannot be read without guessing, or is below zero.
    """
    try:
        error = parse_age(text, time_unit, grouping)
    except CohortError as refused:
        what = refused.what.replace("age ", f"{ERROR_COLUMN} ", 1)
        raise CohortError(what, refused.remedy) from refused
    if error < 0:
        raise CohortError(
            f"{ERROR_COLUMN} {text.strip()!r} is below zero.",
            "Give the standard error of the age, or leave the cell empty if the age is exact.",
        )
    return error


def same_unit(a: str, b: str) -> bool:
    """True where two names are alike, or mean one unit of time, such as `day` and `days`."""
    a, b = (name.strip().lower() for name in (a, b))
    return a == b or _DAYS.get(a, a) == _DAYS.get(b, b)


def _number(text: str, grouping: str) -> float:
    """Read a number whose decimal mark is a point or a comma."""
    if grouping and re.fullmatch(rf"[+-]?[1-9][0-9]{{0,2}}[{grouping}][0-9]{{3}}", text):
        bare = text.replace(grouping, "")
        raise CohortError(
            f"age {text!r} is ambiguous: {bare} or {text.replace(',', '.')}?",
            "Write it without a thousands mark and with a decimal point.",
        )
    return float(text.replace(",", "."))


def _convert(value: float, unit: str, time_unit: str, text: str) -> float:
    """Convert from the age's own unit to the cohort's; both must be known."""
    own, common = unit.lower(), time_unit.strip().lower()
    if own in ("", common):
        return value
    if own not in _DAYS:
        raise CohortError(
            f"age {text!r} carries the unit {unit!r}, which is not known.",
            "Use days, weeks, months or years, or write the number alone.",
        )
    if common not in _DAYS:
        raise CohortError(
            f"age {text!r} carries a unit, but the cohort's time unit is {time_unit!r}.",
            'State the unit in cohort.toml, e.g. time_unit = "months", or write the number alone.',
        )
    return value * _DAYS[own] / _DAYS[common]


def _infinite(text: str) -> CohortError:
    return CohortError(
        f"age {text!r} is infinite.",
        "Give a finite age, or leave the cell empty if it is unknown.",
    )
