"""A simulated cohort together with everything it knows about itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from prism.cohort import Cohort, Correspondence, Shape, Truth, write_shape
from prism.errors import QueryError

RAW = "shapes"


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

    def write(self, path: str | Path, raw: bool = False) -> None:
        """Write the cohort folder, with its truth under `truth/`.

        Args:
            path: Folder to write.
            raw: Write every shape as a file of its own as well, named in the column `path`: what
                `prism register` reads.
        """
        folder, shapes, v = Path(path), self.correspondence, self.correspondence.visits
        if raw:
            self._check_raw()
            kind = ".csv" if shapes.dimension == 2 else ".ply"
            files = [f"{RAW}/{a}_{b}{kind}" for a, b in zip(v.subject, v.visit, strict=True)]
            v = replace(v, columns={**v.columns, "path": np.array(files)})
            shapes = replace(shapes, visits=v)
        Cohort.from_correspondence(shapes, self.truth).write(folder)
        if raw:
            (folder / RAW).mkdir(exist_ok=True)
            for file, points in zip(files, shapes.points, strict=True):
                write_shape(Shape(points, shapes.cells, shapes.length_unit), folder / file)

    def _check_raw(self) -> None:
        if self.correspondence.cells is None or not self.correspondence.observed.all():
            raise QueryError(
                "points without cells, or with gaps, make no raw shapes.",
                "Simulate whole shapes: leave out --missing, or leave out --raw.",
            )
