"""The model folder: TOML for what a person reads, safetensors for numbers, no code anywhere."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from prism.baselines import AgeRidge
from prism.baselines.subspace import Subspace
from prism.calibration import LEVELS
from prism.cohort.regions import as_regions
from prism.covariation import Covariation, Factors, Persistence, Texture
from prism.errors import CohortError, ModelError
from prism.intrinsic import EncoderConfig, InverseEncoder
from prism.intrinsic.encoder import EncoderScales
from prism.model.age_rule import AgeRule
from prism.model.calibrated import Calibration
from prism.model.card import model_card
from prism.model.clock import CLOCK_AGES, CLOCK_SIZE
from prism.model.normals import SCORES, Extent, Norms
from prism.nets import Siren
from prism.population import NeuralPopulation, PopulationConfig, Units
from prism.population.field import FieldEnsemble, FieldNetworks
from prism.runs import fresh_folder

if TYPE_CHECKING:
    from prism.model.core import PRISM

FORMAT = 13
MARK = "model.toml"
_ARRAYS = (
    "population", "forecast", "forecast_paper", "scores", "scores_growth", "scores_low_rank",
    "scores_mahalanobis", "scores_paper", "points", "judge", "panel",
    "clock", "clock_visits", "clock_pairs",
)  # fmt: skip
_NUMBERS = (
    "forecast_pairs", "pointwise", "modes", "spread_scale",
    "coverage", "coverage_time", "coverage_forecast",
)  # fmt: skip


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
        "members": len(model.population.members),
        "units": asdict(model.population.units),
        "population": {k: v for k, v in asdict(model.population.config).items() if v is not None},
        "encoder": asdict(model.encoder.config),
        "encoder_scales": asdict(model.encoder.scales),
        "calibration": {name: getattr(model.calibration, name) for name in _NUMBERS},
        "texture": asdict(model.calibration.texture),
        "age": _age_numbers(model.calibration.age),
        "covariation": _how_numbers(model.covariation),
        "judges": [_how_numbers(how) for how in model.calibration.judges],
        "regions": {name: points.tolist() for name, points in model.regions.items()},
    }


def _arrays(model: PRISM) -> dict[str, torch.Tensor]:
    arrays: dict[str, np.ndarray] = {"template": model.template}
    arrays |= {name: getattr(model.calibration, name) for name in _ARRAYS}
    arrays |= _norms_arrays(model.calibration.norms) | _extent_arrays(model.calibration.extent)
    arrays |= _how_arrays(model.covariation, "") | _age_arrays(model.calibration.age)
    for k, how in enumerate(model.calibration.judges):
        arrays |= _how_arrays(how, f"judge{k}_")
    if model.cells is not None:
        arrays["cells"] = model.cells
    return {name: torch.from_numpy(np.array(value, order="C")) for name, value in arrays.items()}


def _how_numbers(how: Covariation) -> dict[str, float]:
    return {
        "noise": how.factors.q,
        "noise_share": how.noise_share,
        "tolerance": how.tolerance,
        "wider": how.wider,
    }


def _norms_arrays(norms: Sequence[Norms]) -> dict[str, np.ndarray]:
    return {
        f"norms_{f.name}": np.stack([getattr(each, f.name) for each in norms])
        for f in fields(Norms)
    }


def _extent_arrays(extent: Extent) -> dict[str, np.ndarray]:
    return {f"extent_{name}": part for name, part in vars(extent).items()}


def _how_arrays(how: Covariation, prefix: str) -> dict[str, np.ndarray]:
    arrays = {
        "modes": how.factors.W,
        "remainder": how.factors.D,
        "lasting_share": how.persistence.share,
        "lasting_span": how.persistence.span,
        "tempo": how.tempo,
    }
    return {prefix + name: value for name, value in arrays.items()}


def _age_numbers(age: AgeRule) -> dict[str, float]:
    return {
        "modes": age.modes,
        "clock_scale": age.clock_scale,
        "ridge_error": age.ridge_error,
        "scale": age.scale,
        "rest": age.ridge.subspace.rest,
        "intercept": age.ridge.intercept,
        "strength": age.ridge.strength,
    }


def _age_arrays(age: AgeRule) -> dict[str, np.ndarray]:
    space = age.ridge.subspace
    return {
        "ridge_mean": space.mean,
        "ridge_axes": space.axes,
        "ridge_variances": space.variances,
        "ridge_weights": age.ridge.weights,
    }


def load_model(path: Path) -> PRISM:
    """Read the folder, refusing anything that does not hold together."""
    from prism.model.core import PRISM

    settings = _read_settings(path)
    try:
        arrays = {k: v.numpy() for k, v in _read_tensors(path / "arrays.safetensors").items()}
        config = _build(PopulationConfig, settings["population"])
        units = _build(Units, {**settings["units"], "centre": tuple(settings["units"]["centre"])})
        networks = _networks(settings, config)
        _load_weights(networks, path / "population.safetensors")
        calibration = Calibration(
            **{name: arrays[name] for name in _ARRAYS},
            norms=tuple(
                Norms(*each)
                for each in zip(*(arrays[f"norms_{f.name}"] for f in fields(Norms)), strict=True)
            ),
            extent=Extent(*(arrays[f"extent_{f.name}"] for f in fields(Extent))),
            **{name: settings["calibration"][name] for name in _NUMBERS},
            texture=_build(Texture, settings["texture"]),
            age=_age_rule(arrays, settings["age"]),
            judges=tuple(
                _covariation(arrays, numbers, f"judge{k}_")
                for k, numbers in enumerate(settings["judges"])
            ),
        )
        model = PRISM(
            NeuralPopulation(networks, units, config),
            _load_encoder(path, settings),
            arrays["template"],
            arrays.get("cells"),
            _covariation(arrays, settings["covariation"], ""),
            calibration,
            settings["name"],
            settings["time_unit"],
            settings["length_unit"],
            _read_provenance(path / "provenance.json"),
            regions=_regions(settings, len(arrays["template"]), path),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ModelError(
            f"{path / MARK} does not fit the model's files: {error}.",
            "Train the model again with `prism fit`, or restore the folder from a backup.",
        ) from error
    _check_arrays(model, path)
    return model


def _networks(settings: dict[str, Any], config: PopulationConfig) -> FieldNetworks | FieldEnsemble:
    """Networks of the right size, untrained: one, or several to average."""
    size = settings["dimension"], config, settings["floor"]
    if settings["members"] == 1:
        return FieldNetworks(*size)
    return FieldEnsemble([FieldNetworks(*size) for _ in range(settings["members"])])


def _covariation(
    arrays: dict[str, np.ndarray], numbers: dict[str, float], prefix: str
) -> Covariation:
    """Modes, remainder, noise and what lasts of them."""
    return Covariation(
        Factors(arrays[prefix + "modes"], arrays[prefix + "remainder"], numbers["noise"]),
        Persistence(arrays[prefix + "lasting_share"], arrays[prefix + "lasting_span"]),
        numbers["noise_share"],
        numbers["tolerance"],
        arrays[prefix + "tempo"],
        numbers["wider"],
    )


def _age_rule(arrays: dict[str, np.ndarray], numbers: dict[str, float]) -> AgeRule:
    """How calendar age is told."""
    mean, axes, variances = (arrays[f"ridge_{name}"] for name in ("mean", "axes", "variances"))
    ridge = AgeRidge(
        Subspace(mean, axes, variances, numbers["rest"]),
        arrays["ridge_weights"],
        numbers["intercept"],
        numbers["strength"],
    )
    own = ("modes", "clock_scale", "ridge_error", "scale")
    return AgeRule(ridge, **{name: numbers[name] for name in own})


def _regions(settings: dict[str, Any], count: int, path: Path) -> dict[str, np.ndarray]:
    """Named regions of the template; models written before there were any have none."""
    try:
        return as_regions(settings.get("regions", {}), count)
    except CohortError as error:
        raise ModelError(f"{path / MARK}: {error.what}", error.remedy) from error


def _check_arrays(model: PRISM, path: Path) -> None:
    points, n = model.template.shape
    known, judges = model.calibration, len(model.calibration.judges)
    levels, held = (len(LEVELS), points, n), len(known.scores)
    axes = len(known.age.ridge.weights)
    patches = known.norms[0].patch_mean.shape[-1]
    expected: dict[str, tuple[int, ...]] = {
        "population": levels,
        "forecast": levels,
        "forecast_paper": levels,
        "scores_growth": (held,),
        "scores_low_rank": (held,),
        "scores_mahalanobis": (held,),
        "scores_paper": (held,),
        "points": (judges, known.points.shape[-1]),
        "judge": (held,),
        "panel": (judges,),
        "clock": (CLOCK_SIZE, CLOCK_SIZE),
        "clock_visits": (CLOCK_AGES,),
        "clock_pairs": (CLOCK_AGES, CLOCK_AGES),
    }
    found = {name: getattr(known, name).shape for name in expected}
    expected |= {
        "norms_ages": (judges, CLOCK_AGES),
        "norms_mean": (judges, 3, CLOCK_AGES),
        "norms_sd": (judges, 3, CLOCK_AGES),
        "norms_patch_mean": (judges, 3, patches),
        "norms_patch_sd": (judges, 3, patches),
        "norms_score_mean": (judges, len(SCORES), CLOCK_AGES),
        "norms_score_sd": (judges, len(SCORES), CLOCK_AGES),
        "extent_mean": (len(SCORES) + 1, 3),
        "extent_log_sd": (len(SCORES) + 1, 3),
        "extent_span": (2,),
        "ridge_mean": (points * n,),
        "ridge_axes": (points * n, axes),
        "ridge_variances": (axes,),
    }
    others = _norms_arrays(known.norms) | _extent_arrays(known.extent) | _age_arrays(known.age)
    for k, how in enumerate((model.covariation, *known.judges)):
        prefix, rank = f"judge{k - 1}_" if k else "", how.factors.rank
        own = {"modes": (rank, points, n), "remainder": (points, n), "tempo": (rank,)}
        own |= {"lasting_share": (rank + 2,), "lasting_span": (rank + 2,)}
        expected |= {prefix + name: shape for name, shape in own.items()}
        others |= _how_arrays(how, prefix)
    found |= {name: value.shape for name, value in others.items()}
    for name, shape in expected.items():
        if found[name] != shape or n != model.population.networks.n:
            raise ModelError(
                f"{path / 'arrays.safetensors'}: {name} must have shape {shape}. "
                f"Got {found[name]}.",
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
