"""`prism check`: say what is wrong, or looks wrong, with a cohort."""

from __future__ import annotations

from prism.cli._advance import shown_advance
from prism.cli._common import CohortFolder, count, say


def check(cohort: CohortFolder) -> None:
    """Say what is wrong, or looks wrong, with a cohort."""
    from prism.cohort import check_cohort
    from prism.errors import CohortError

    with shown_advance() as progress:
        findings = check_cohort(cohort, None, progress).findings
    for finding in findings:
        say(f"{finding.severity}: {finding.what}")
        if finding.remedy:
            say(f"  {finding.remedy}")
    number = {kind: sum(f.severity == kind for f in findings) for kind in ("error", "warning")}
    if number["error"]:
        first = findings[0]
        raise CohortError(f"{count(number['error'], 'error')}, first: {first.what}", first.remedy)
    say(f"check: no errors, {count(number['warning'], 'warning')} in {cohort}")
