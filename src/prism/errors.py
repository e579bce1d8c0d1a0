"""What can go wrong, said so that the reader knows what to do next.

Every error a user can cause is a `PrismError` with two parts: *what* is wrong (file, row, value,
what was expected) and the *remedy* (the next thing to do). The command line prints the two parts
on two lines and exits with status 2.
"""

from __future__ import annotations


class PrismError(Exception):
    """Base of every error the user can fix.

    Args:
        what: One sentence naming the file, row or value and what was expected of it.
        remedy: One sentence saying what to do next.
    """

    def __init__(self, what: str, remedy: str) -> None:
        """Join the two parts into one readable message."""
        super().__init__(f"{what}\n{remedy}")
        self.what = what
        self.remedy = remedy


class CohortError(PrismError):
    """The data cannot be read or do not hold together."""


class ModelError(PrismError):
    """A model folder cannot be read, or does not fit the data it is asked about."""


class FitError(PrismError):
    """Training cannot start or cannot go on."""


class QueryError(PrismError):
    """A question was put to a model that it cannot answer."""
