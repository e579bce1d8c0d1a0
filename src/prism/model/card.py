"""The model card: what a model is, where it holds and how well it was calibrated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from prism.calibration import LEVELS
from prism.covariation import Covariation

if TYPE_CHECKING:
    from prism.model.core import PRISM


def model_card(model: PRISM) -> str:
    """Say in a page what the model is, where it holds and how well it was calibrated."""
    first, last = model.ages
    unit, length = model.time_unit, model.length_unit
    facts, known, how = model.provenance, model.calibration, model.covariation
    people = "; ".join(f"{k} {', '.join(v)}" for k, v in facts.get("covariates", {}).items())
    return f"""# Model card: {model.name}

Research software; not a medical device.

- Holds for ages {first:g} to {last:g} {unit} and for this anatomy only; outside, answers are
  extrapolated and flagged.
- People: {people or "no covariates were given"}; others are flagged.
- {len(model.template)} template points, {model.dimension}D, lengths in {length or "own units"}.
- Learned from {facts.get("subjects")} subjects, {facts.get("shapes")} shapes;
  {facts.get("members")} network(s), {facts.get("held_out_subjects")} of the subjects were held
  out of at least one for early stop and calibration.
- Noise floor {model.population.floor:.4g} {length}: no point is claimed to be better known than
  this. It inflates the paper's sigma_tau by sqrt(1 + floor^2 / (sigma_tau^2 |mu_t|^2)) at worst.
- Measurement noise found: {100 * how.measured:.0f}% of the least variance of a point. The separated
  sigma_tau has the share of that variance taken out.
- {how.factors.rank} mode(s) of covariation{_lasting(how) if known.forecast_pairs else ""}.
- The mean minimises an L1 loss whose corner is rounded over
  {model.population.config.mean_corner:g} standard deviations.
- Seed {facts.get("seed")}, preset {facts.get("preset")}, prism {facts.get("prism")},
  data {facts.get("data")}.

## Coverage on subjects not seen

| nominal | displacement | developmental time | forecast |
|---|---|---|---|
{_coverage_rows(known.coverage, known.coverage_time, known.coverage_forecast)}

Displacement and developmental time: how many people lie within the interval for their age. Of
several networks one judges that has not seen them, and is less steady than the average.

Forecast intervals come from {known.forecast_pairs} pairs of visits, anomaly scores from
{len(known.scores)} visits. Of a forecast {100 * known.pointwise:.0f}% follow the paper's rule.
"""


def _lasting(how: Covariation) -> str:
    """What repeat visits show of the largest mode, if there is one."""
    if not how.factors.rank:
        return ""
    largest = int(np.square(how.factors.W).sum((1, 2)).argmax())
    share, span = how.persistence.share[largest], how.persistence.span[largest]
    fading = "without fading" if np.isinf(span) else f"fading over {span:.3g}"
    return f"; the largest keeps {100 * share:.0f}% from visit to visit, {fading}"


def _coverage_rows(*coverages: dict[str, float]) -> str:
    def told(found: dict[str, float], level: float) -> str:
        share = found.get(f"{level:g}")
        return "not measured" if share is None else f"{100 * share:.1f}%"

    return "\n".join(
        f"| {100 * level:g}% | " + " | ".join(told(each, level) for each in coverages) + " |"
        for level in LEVELS
    )
