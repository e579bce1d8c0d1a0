"""A simulated cohort together with everything it knows about itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from prism.cohort import Cohort, Correspondence, Truth


@dataclass(frozen=True)
class Study:
    """A cohort whose truth is known.

    Attributes:
        correspondence: What a user would have: shapes, subjects, times.
        truth: Intrinsic times, clean shapes, mean trajectory, temporal spread.
        law: The exact population (p, t) -> N(mu, Sigma) the shapes were drawn from.
    """

    correspondence: Correspondence
    truth: Truth
    law: Any

    def __len__(self) -> int:
        """Count shapes."""
        return len(self.correspondence)

    def __getitem__(self, index: int | slice | np.ndarray) -> Study:
        """Select visits of correspondence and truth in step."""
        return replace(self, correspondence=self.correspondence[index], truth=self.truth[index])

    def of_split(self, name: str) -> Study:
        """Return the visits in split `name` ("train" or "test")."""
        return self[self.correspondence.visits.columns["split"] == name]

    def write(self, path: str | Path) -> None:
        """Write the cohort folder, with its truth under `truth/`."""
        Cohort.from_correspondence(self.correspondence, self.truth).write(Path(path))
