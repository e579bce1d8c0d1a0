"""Registration: a template learned from shapes, with maps between it and every shape."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from prism.cohort import Correspondence, SDFSamples, Visits
from prism.errors import FitError
from prism.registration.align import (
    check_alignment,
    common_cloud,
    oriented,
    rigidly_onto,
    similarly_onto,
)
from prism.registration.bank import Bank, check_samples
from prism.registration.config import RegistrationConfig, preset
from prism.registration.maps import Maps
from prism.registration.networks import CentredCodes, Networks
from prism.registration.onto import find_codes
from prism.registration.similarity import Similarity, by_moments
from prism.registration.task import RegistrationTask
from prism.registration.template import Template, extract
from prism.runs import fingerprint, provenance
from prism.training import LoopConfig, Runtime, TrainingLog, choose_device, train
from prism.typing import Cells, Points, Shapes

log = logging.getLogger(__name__)
SUPPORT_SHAPES, SUPPORT_POINTS = 32, 2000


@dataclass(frozen=True)
class Registration:
    """A finished registration: networks, the maps of the shapes it was learned from, a template.

    Attributes:
        maps: Maps of the training shapes; the networks are among them.
        config: Hyper-parameters.
        align: "none", "rigid" or "similarity": what is taken off the shapes it returns.
        frame: Where the template lies in the user's coordinates (one similarity).
        support: (Q, n) template points of the training surfaces, in common coordinates.
        length_unit: Unit of the shapes.
        provenance: What made it.
        history: The course of training; empty after loading.
        stored: The template as stored in a file; None where it is still to be read off.
    """

    maps: Maps
    config: RegistrationConfig
    align: str
    frame: Similarity
    support: Points
    length_unit: str = ""
    provenance: dict[str, Any] = field(default_factory=dict)
    history: TrainingLog = field(default_factory=TrainingLog)
    stored: Template | None = None

    @classmethod
    def fit(
        cls,
        samples: Sequence[SDFSamples],
        config: RegistrationConfig | None = None,
        *,
        seed: int = 0,
        align: str = "none",
        runtime: Runtime | None = None,
    ) -> Registration:
        """Learn a template and the maps of these shapes.

        Args:
            samples: One a shape, see `prism.preprocess.sample_cohort`.
            config: Hyper-parameters. Default: preset `default` of the shapes' dimension.
            seed: Same seed, same registration, to the bit.
            align: Whether shapes come in any pose: "none" takes orientation as it is given,
                "rigid" finds it and takes the pose off, "similarity" takes off the size as well.
            runtime: Device, checkpoints, progress.

        Raises:
            CohortError: The shapes cannot be registered together.
            FitError: Fewer than two shapes, or training failed.
        """
        check_samples(samples)
        _check_enough(samples)
        check_alignment(align)
        runtime = runtime or Runtime()
        config = config or preset("default", samples[0].dimension)
        steps = config.steps_for(len(samples))
        config = replace(config, steps=steps)
        similarity = _common_pose(samples, align)
        facts = {"seed": seed, "align": align, "config": asdict(config)}
        data = data_of(samples)
        task = _task(samples, similarity, config, seed, choose_device(runtime.device))
        loop = LoopConfig(steps, config.learning_rate, clip=config.clip)
        history = train(task, loop, "registration", runtime, fingerprint(data, facts))
        task.network.cpu()
        with torch.no_grad():
            z_fwd, z_bwd = task.codes(torch.arange(len(samples)))
        maps = Maps(task.networks, z_fwd, z_bwd, similarity)
        return cls(
            maps,
            config,
            align,
            similarity.mean,
            _support(samples, maps),
            samples[0].length_unit,
            provenance(**facts, torch=torch.__version__, data=data, shapes=len(samples)),
            history,
        )

    @property
    def networks(self) -> Networks:
        """Template and maps, as networks."""
        return self.maps.networks

    @property
    def dimension(self) -> int:
        """Space dimension n."""
        return self.networks.n

    @cached_property
    def mesh(self) -> Template:
        """The template's points and cells in common coordinates; read off when first asked for."""
        return self.stored or extract(self.networks, self.support, self.config.vertices)

    @property
    def template(self) -> Points:
        """(M, n) the template's points in the user's coordinates, at the average size."""
        return self.frame.from_common(self.mesh.points[None])[0]

    @property
    def cells(self) -> Cells:
        """(K, n) segments or triangles over the template's points."""
        return self.mesh.cells

    def onto(
        self, samples: Sequence[SDFSamples], *, seed: int = 0, runtime: Runtime | None = None
    ) -> Maps:
        """Find the maps of new shapes; networks and template stay as they are.

        Raises:
            CohortError: The shapes do not fit the registration.
        """
        check_samples(samples)
        self._check_fits(samples)
        runtime = runtime or Runtime()
        similarity = by_moments(samples)
        if self.align != "none":
            similarity = oriented(samples, similarity, self.support)
        key = fingerprint(data_of(samples), self.provenance.get("data"), seed)
        return find_codes(self.maps, samples, similarity, self.config, seed, runtime, key)

    def _check_fits(self, samples: Sequence[SDFSamples]) -> None:
        found = (samples[0].dimension, samples[0].length_unit)
        if found != (self.dimension, self.length_unit):
            raise FitError(
                f"the registration is of {self.dimension}D shapes in {self.length_unit!r}, "
                f"the shapes are {found[0]}D in {found[1]!r}.",
                "Register shapes of the same kind and unit, or learn a registration of their own.",
            )

    def carry(self, maps: Maps) -> Shapes:
        """(N, M, n) the template's points on each shape, in the user's coordinates, aligned."""
        return self.aligned(maps.from_template(self.mesh.points))

    def aligned(self, points: Shapes) -> Shapes:
        """Take off shapes what `align` says."""
        if self.align == "rigid":
            return rigidly_onto(self.template, points)
        return similarly_onto(self.template, points) if self.align == "similarity" else points

    def correspondence(
        self, maps: Maps, visits: Visits, time_unit: str = "", name: str = "cohort"
    ) -> Correspondence:
        """The shapes of some maps, in correspondence."""
        return Correspondence(
            self.carry(maps), visits, self.template, self.cells, time_unit, self.length_unit, name
        )

    def save(self, path: str | Path) -> None:
        """Write a folder of TOML and safetensors: loading it runs no code."""
        from prism.registration.files import save_registration

        save_registration(self, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> Registration:
        """Read a folder that `save` wrote."""
        from prism.registration.files import load_registration

        return load_registration(Path(path))


def data_of(samples: Sequence[SDFSamples]) -> str:
    """Sixteen hex digits of the shapes."""
    return fingerprint(*(fingerprint(s.surface, s.distance) for s in samples))


def _check_enough(samples: Sequence[SDFSamples]) -> None:
    if len(samples) < 2:
        raise FitError(
            "one shape alone cannot be registered.", "Give at least two, or use --onto a model."
        )


def _common_pose(samples: Sequence[SDFSamples], align: str) -> Similarity:
    """Centres and sizes and, when poses are free, the orientation of the shape of middle size."""
    similarity = by_moments(samples)
    if align == "none":
        return similarity
    middle = int(np.argsort(similarity.size)[len(samples) // 2])
    reference = common_cloud(samples[middle], similarity[middle : middle + 1])
    return oriented(samples, similarity, reference)


def _task(
    samples: Sequence[SDFSamples],
    similarity: Similarity,
    config: RegistrationConfig,
    seed: int,
    device: torch.device,
) -> RegistrationTask:
    bank = Bank.of(samples, similarity, device)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        networks = Networks(bank.n, config).to(device)
        codes = CentredCodes(len(bank), config.code, config.code_gain).to(device)
    parts = [networks.template, networks.forward_map, networks.backward_map, codes]
    return RegistrationTask(networks, codes, bank, config, seed, parts)


def _support(samples: Sequence[SDFSamples], maps: Maps) -> Points:
    """(Q, n) where some of the training surfaces lie on the template."""
    rows = np.unique(np.linspace(0, len(samples) - 1, SUPPORT_SHAPES).round().astype(int))
    count = min(SUPPORT_POINTS, *(len(samples[row].surface) for row in rows))
    surfaces = np.stack([samples[row].surface[:count] for row in rows])
    found = maps[rows].to_template(surfaces).reshape(-1, surfaces.shape[-1])
    return found[:: max(1, len(found) // 20_000)]
