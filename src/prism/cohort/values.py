"""Frozen values that carry a cohort through the house: checked once, at birth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from prism.cohort import checks
from prism.cohort.ages import ERROR_COLUMN
from prism.cohort.regions import as_regions
from prism.errors import CohortError
from prism.runs import fingerprint
from prism.typing import Cells, Floats, Points, Shapes, Strings, Times

Index = int | slice | np.ndarray


def _rows(index: Index) -> slice | np.ndarray:
    """Turn an integer into a slice of length one, so that indexing keeps the batch axis."""
    if isinstance(index, (int, np.integer)):
        return slice(int(index), int(index) + 1 or None)
    return index


@dataclass(frozen=True)
class Visits:
    """Who was seen, and when: one row a visit.

    Attributes:
        subject: (N,) subject identifiers.
        visit: (N,) visit identifiers, unique within a subject.
        t: (N,) chronological times in the cohort's time unit; NaN where unknown.
        columns: Further columns by name (`group`, `sex`, `site`, `split`, ...), each (N,) text;
            `t_error` is the standard error of an uncertain age, in the time unit.
    """

    subject: Strings
    visit: Strings
    t: Times
    columns: Mapping[str, Strings] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check lengths, finiteness and uniqueness."""
        set_ = object.__setattr__
        set_(self, "subject", np.asarray(self.subject, dtype=np.str_))
        set_(self, "visit", np.asarray(self.visit, dtype=np.str_))
        set_(self, "t", checks.as_reals("t", self.t))
        columns = {k: np.asarray(v, dtype=np.str_) for k, v in self.columns.items()}
        set_(self, "columns", MappingProxyType(columns))
        checks.check_columns(self.subject, {"visit": self.visit, "t": self.t, **columns})
        if ERROR_COLUMN in columns:
            named = columns[ERROR_COLUMN], self.subject, self.visit
            columns[ERROR_COLUMN] = checks.as_age_errors(*named)
        checks.check_times(self.t, self.subject, self.visit)
        checks.check_unique(self.subject, self.visit)

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel to worker processes: a mapping proxy cannot be pickled, a dict can."""
        return Visits, (self.subject, self.visit, self.t, dict(self.columns))

    def __len__(self) -> int:
        """Count visits."""
        return len(self.subject)

    def __getitem__(self, index: Index) -> Visits:
        """Select visits; an integer selects one and keeps the batch axis."""
        rows = _rows(index)
        columns = {name: column[rows] for name, column in self.columns.items()}
        return Visits(self.subject[rows], self.visit[rows], self.t[rows], columns)

    @property
    def t_error(self) -> Times:
        """(N,) standard errors of the ages, from the column `t_error`; zero where none is given."""
        column = self.columns.get(ERROR_COLUMN)
        if column is None:
            return np.zeros(len(self))
        return np.array([float(text or 0) for text in column.tolist()])

    @property
    def subjects(self) -> list[str]:
        """Subject names in order of first appearance."""
        return list(dict.fromkeys(self.subject.tolist()))


@dataclass(frozen=True)
class Correspondence:
    """Shapes whose points correspond: row m of every shape is the same anatomical place.

    Attributes:
        points: (N, M, n) positions in the length unit; a missing point is NaN in every coordinate.
        visits: The N visits the shapes belong to.
        template: (M, n) reference positions. Default: the mean shape.
        cells: (K, 2) segments or (K, 3) triangles over the points, or None.
        time_unit: Unit of `visits.t`, e.g. "months".
        length_unit: Unit of `points`, e.g. "mm".
        name: Name of the cohort.
        regions: Name -> indices of the points that belong to it; regions may overlap.
    """

    points: Shapes
    visits: Visits
    template: Points = None  # type: ignore[assignment]  # filled with the mean shape at birth
    cells: Cells | None = None
    time_unit: str = ""
    length_unit: str = ""
    name: str = "cohort"
    regions: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check shapes and finiteness; fill the default template."""
        set_ = object.__setattr__
        set_(self, "points", checks.as_reals("points", self.points))
        checks.check_points(self.points, self.visits)
        if self.template is None:
            set_(self, "template", _mean_shape(self.points))
        set_(self, "template", checks.as_reals("template", self.template))
        checks.check_template(self.template, self.points.shape[1:])
        if self.cells is not None:
            set_(self, "cells", checks.as_indices("cells", self.cells))
            checks.check_cells(self.cells, self.points.shape[1])
        set_(self, "regions", as_regions(self.regions, self.points.shape[1]))

    def __len__(self) -> int:
        """Count shapes."""
        return len(self.visits)

    def __getitem__(self, index: Index) -> Correspondence:
        """Select shapes; an integer selects one and keeps the batch axis."""
        return replace(self, points=self.points[_rows(index)], visits=self.visits[index])

    @property
    def dimension(self) -> int:
        """Space dimension n."""
        return self.points.shape[-1]

    @property
    def displacements(self) -> Shapes:
        """Displacements d = y - p of every shape, (N, M, n)."""
        return self.points - self.template

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits of shapes, template and times: the same data, the same digits."""
        return fingerprint(self.points, self.template, self.visits.t)

    @property
    def observed(self) -> np.ndarray:
        """(N, M) True where a point was observed."""
        return ~np.isnan(self.points[..., 0])

    def of_subjects(self, subjects: list[str]) -> Correspondence:
        """Return the visits of these subjects, in their present order; none may be unknown."""
        checks.check_subjects(subjects, self.visits.subjects, self.name)
        return self[np.isin(self.visits.subject, subjects)]

    def split_subjects(
        self, fraction: float, seed: int = 0
    ) -> tuple[Correspondence, Correspondence]:
        """Split by subject: (rest, held-out fraction of the subjects, at least one)."""
        subjects = self.visits.subjects
        order = np.random.default_rng(seed).permutation(len(subjects))
        count = max(1, round(fraction * len(subjects)))
        held = [subjects[i] for i in order[:count]]
        mask = np.isin(self.visits.subject, held)
        return self[~mask], self[mask]

    def of_split(self, name: str) -> Correspondence:
        """Return the visits whose `split` column holds this name."""
        split = self.visits.columns.get("split")
        if split is None or name not in split:
            raise CohortError(
                f"no visit of cohort {self.name!r} is in split {name!r}.",
                f"Add a column split to visits.csv that says {name!r} where it applies.",
            )
        return self[split == name]


def _mean_shape(points: Shapes) -> Points:
    """Mean of the observed positions of every point; NaN where none was observed."""
    seen = ~np.isnan(points)
    with np.errstate(invalid="ignore"):
        return np.where(seen, points, 0.0).sum(axis=0) / seen.sum(axis=0)


@dataclass(frozen=True)
class Truth:
    """What a simulated cohort knows about itself; every entry is optional but the first four.

    Attributes:
        regions: (R,) names of the places where the truth is stated, e.g. ("arm", "leg").
        landmarks: (R,) the template point that stands for each region.
        tau: (N, R) true intrinsic time of each visit at each region.
        clean: (N, M, n) shapes without noise and without gaps.
        t_grid: (T,) times at which the population truth below is tabulated.
        sigma_tau: (T, R) true temporal spread of the population.
        mean: (T, M, n) true mean shape.
        abnormal: (N,) True where the visit was made abnormal on purpose.
    """

    regions: Strings
    landmarks: np.ndarray
    tau: Floats
    clean: Shapes
    t_grid: Times
    sigma_tau: Floats
    mean: Shapes
    abnormal: np.ndarray | None = None

    def __getitem__(self, index: Index) -> Truth:
        """Select visits, in step with the correspondence the truth belongs to."""
        rows = _rows(index)
        abnormal = None if self.abnormal is None else self.abnormal[rows]
        return replace(self, tau=self.tau[rows], clean=self.clean[rows], abnormal=abnormal)

    @property
    def tau_global(self) -> Times | None:
        """(N,) the one intrinsic time of each visit, where all regions share it."""
        same = np.allclose(self.tau, self.tau[:, :1], atol=1e-12)
        return self.tau[:, 0] if same else None

    def arrays(self) -> dict[str, Any]:
        """Return the entries that are present, by name, as stored under `truth/`."""
        return {k: v for k, v in vars(self).items() if v is not None}
