"""Which people a cohort is made of, as far as its columns say, and who falls outside."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from prism.cohort.values import Visits

TOLD = ("group", "sex", "site")  # never a column that could name a person


def known_covariates(visits: Visits) -> dict[str, list[str]]:
    """Values seen in the columns that describe people, rising."""
    seen = {name: visits.columns[name] for name in TOLD if name in visits.columns}
    values = {name: sorted({str(v) for v in column if str(v)}) for name, column in seen.items()}
    return {name: found for name, found in values.items() if found}


def unfamiliar(visits: Visits, known: Mapping[str, list[str]]) -> list[str]:
    """Sentences on visits whose covariates the cohort behind `known` did not have."""
    told = []
    for name, values in known.items():
        column = visits.columns.get(name, np.empty(0, dtype=np.str_))
        strange = sorted({str(v) for v in column if str(v) and str(v) not in values})
        if strange:
            count = int(np.isin(column, strange).sum())
            told.append(
                f"{count} visit(s) have {name} {', '.join(strange[:3])}, which the model was not "
                f"learned from ({', '.join(values[:5])})."
            )
    return told
