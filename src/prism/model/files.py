"""The model folder: TOML for what a person reads, safetensors for numbers, no code anywhere."""

from __future__ import annotations

import json
import tomllib
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from prism.calibration import LEVELS
from prism.errors import ModelError
from prism.intrinsic import EncoderConfig, InverseEncoder
from prism.intrinsic.encoder import EncoderScales
from prism.nets import Siren
from prism.population import NeuralPopulation, PopulationConfig, Units
from prism.population.field import FieldNetworks
from prism.runs import fresh_folder

if TYPE_CHECKING:
    from prism.model.core import PRISM

FORMAT = 1
MARK = "model.toml"
_ARRAYS = ("population", "forecast", "scores", "scores_paper", "distances")


def save_model(model: PRISM, path: Path) -> None:
    """Write the folder; it appears under its name only when it is complete."""
    import tomli_w
    from safetensors.torch import save_file

    with fresh_folder(path, MARK) as draft:
        (draft / MARK).write_text(tomli_w.dumps(_settings(model)), encoding="utf-8")
        save_file(_contiguous(model.population.networks), draft / "population.safetensors")
        save_file(_contiguous(model.encoder.network), draft / "encoder.safetensors")
        save_file(_arrays(model), draft / "arrays.safetensors")
        text = json.dumps(model.provenance, indent=2, default=str)
        (draft / "provenance.json").write_text(text, encoding="utf-8")
        (draft / "card.md").write_text(model_card(model), encoding="utf-8")


def _contiguous(network: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.contiguous().cpu() for name, value in network.state_dict().items()}


def _settings(model: PRISM) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "name": model.name,
        "time_unit": model.time_unit,
        "length_unit": model.length_unit,
        "dimension": model.dimension,
        "floor": model.population.networks.floor,
        "forecast_pairs": model.calibration.forecast_pairs,
        "units": asdict(model.population.units),
        "population": {k: v for k, v in asdict(model.population.config).items() if v is not None},
        "encoder": asdict(model.encoder.config),
        "encoder_scales": asdict(model.encoder.scales),
        "coverage": model.calibration.coverage,
    }


def _arrays(model: PRISM) -> dict[str, torch.Tensor]:
    arrays: dict[str, np.ndarray] = {"template": model.template}
    arrays |= {name: getattr(model.calibration, name) for name in _ARRAYS}
    if model.cells is not None:
        arrays["cells"] = model.cells
    return {name: torch.from_numpy(np.array(value)) for name, value in arrays.items()}


def load_model(path: Path) -> PRISM:
    """Read the folder, refusing anything that does not hold together."""
    from prism.model.core import PRISM, Calibration

    settings = _read_settings(path)
    try:
        arrays = {k: v.numpy() for k, v in _read_tensors(path / "arrays.safetensors").items()}
        config = _build(PopulationConfig, settings["population"])
        units = _build(Units, {**settings["units"], "centre": tuple(settings["units"]["centre"])})
        networks = FieldNetworks(settings["dimension"], config, settings["floor"])
        _load_weights(networks, path / "population.safetensors")
        calibration = Calibration(
            **{name: arrays[name] for name in _ARRAYS},
            forecast_pairs=settings["forecast_pairs"],
            coverage=settings["coverage"],
        )
        model = PRISM(
            NeuralPopulation(networks, units, config),
            _load_encoder(path, settings),
            arrays["template"],
            arrays.get("cells"),
            calibration,
            settings["name"],
            settings["time_unit"],
            settings["length_unit"],
            _read_provenance(path / "provenance.json"),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ModelError(
            f"{path / MARK} does not fit the model's files: {error}.",
            "Train the model again with `prism fit`, or restore the folder from a backup.",
        ) from error
    _check_arrays(model, path)
    return model


def _check_arrays(model: PRISM, path: Path) -> None:
    points, n = model.template.shape
    expected = {
        "population": (len(LEVELS), points, n),
        "forecast": (len(LEVELS), points, n),
        "distances": (len(model.calibration.scores), points),
    }
    for name, shape in expected.items():
        found = getattr(model.calibration, name).shape
        if found != shape or n != model.population.networks.n:
            raise ModelError(
                f"{path / 'arrays.safetensors'}: {name} must have shape {shape}. Got {found}.",
                "Train the model again with `prism fit`, or restore the folder from a backup.",
            )


def _load_encoder(path: Path, settings: dict[str, Any]) -> InverseEncoder:
    config = _build(EncoderConfig, settings["encoder"])
    raw = settings["encoder_scales"]
    scales = _build(
        EncoderScales,
        {**raw, "p_centre": tuple(raw["p_centre"]), "d_centre": tuple(raw["d_centre"])},
    )
    n = settings["dimension"]
    network = Siren(2 * n, 1, config.width, config.hidden, config.omega, omega_time=None)
    _load_weights(network, path / "encoder.safetensors")
    return InverseEncoder(network, scales, config)


def _build(kind: type, values: dict[str, Any]) -> Any:
    known = {f.name for f in fields(kind)}
    unknown = sorted(set(values) - known)
    if unknown:
        raise ModelError(
            f"{MARK} has settings this version does not know: {', '.join(unknown)}.",
            "Use the version of prism that wrote the model (see provenance.json).",
        )
    return kind(**values)


def _read_settings(path: Path) -> dict[str, Any]:
    if not path.is_dir():
        raise ModelError(
            f"model folder {path} does not exist.", "Give the folder that `prism fit --out` wrote."
        )
    file = path / MARK
    try:
        settings = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ModelError(
            f"{path} is not a model folder: it holds no {MARK}.",
            "Give the folder that `prism fit --out` wrote.",
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise ModelError(
            f"{file} cannot be read: {error}.", "Restore it from a backup, or train again."
        ) from error
    if settings.get("format") != FORMAT:
        raise ModelError(
            f"{file} has format {settings.get('format')!r}; this version reads {FORMAT}.",
            "Use the version of prism that wrote the model, or train again.",
        )
    return settings


def _read_tensors(file: Path) -> dict[str, torch.Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(file)
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelError(
            f"{file} cannot be read: {error}.",
            "The file is missing or damaged: restore it from a backup, or train again.",
        ) from error


def _load_weights(network: torch.nn.Module, file: Path) -> None:
    weights = _read_tensors(file)
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        raise ModelError(
            f"{file} does not fit {MARK}: {str(error).splitlines()[-1].strip()}",
            "The folder mixes files of different models: restore it, or train again.",
        ) from error
    if not all(bool(torch.isfinite(w).all()) for w in weights.values()):
        raise ModelError(f"{file} holds weights that are not finite.", "Train the model again.")


def _read_provenance(file: Path) -> dict[str, Any]:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(
            f"{file} cannot be read: {error}.", "Restore it from a backup, or train again."
        ) from error


def model_card(model: PRISM) -> str:
    """Say in a page what the model is, where it holds and how well it was calibrated."""
    first, last = model.ages
    unit, length = model.time_unit, model.length_unit
    facts = model.provenance
    covered = "\n".join(
        f"| {100 * float(k):g}% | {100 * v:.1f}% |" for k, v in model.calibration.coverage.items()
    )
    return f"""# Model card: {model.name}

Research software; not a medical device.

- Holds for ages {first:g} to {last:g} {unit} and for this anatomy only; outside, answers are
  extrapolated and flagged.
- {len(model.template)} template points, {model.dimension}D, lengths in {length or "own units"}.
- Learned from {facts.get("subjects")} subjects, {facts.get("shapes")} shapes;
  {facts.get("held_out_subjects")} of the subjects were held out for early stop and calibration.
- Noise floor {model.population.floor:.4g} {length}: no point is claimed to be better known than
  this. It inflates sigma_tau by sqrt(1 + floor^2 / (sigma_tau^2 |mu_t|^2)) at worst.
- The mean is a conditional median (L1 loss).
- Seed {facts.get("seed")}, preset {facts.get("preset")}, prism {facts.get("prism")},
  data {facts.get("data")}.

## Coverage of displacement intervals on held-out subjects

| nominal | found |
|---|---|
{covered}

Forecast intervals come from {model.calibration.forecast_pairs} pairs of visits.
"""
