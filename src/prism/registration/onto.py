"""Codes of new shapes: the networks are held fast, all shapes of a group descend together."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from prism.cohort import SDFSamples
from prism.registration.bank import Bank
from prism.registration.config import RegistrationConfig
from prism.registration.maps import Maps
from prism.registration.networks import Codes, Networks
from prism.registration.similarity import Similarity
from prism.registration.task import RegistrationTask
from prism.training import LoopConfig, Runtime, choose_device, train

TRIED, TRIED_POINTS = 256, 200  # training shapes, and points, that a start is chosen by
GROUP = 64  # new shapes that are registered together


def find_codes(
    known: Maps,
    samples: Sequence[SDFSamples],
    similarity: Similarity,
    config: RegistrationConfig,
    seed: int,
    runtime: Runtime,
    fingerprint: str,
) -> Maps:
    """Optimise the codes of new shapes, each from those of the training shape it resembles most."""
    device = choose_device(runtime.device)
    networks = copy.deepcopy(known.networks).to(device).requires_grad_(False)
    groups = math.ceil(len(samples) / GROUP)
    found: list[tuple[Tensor, Tensor]] = []
    for group, rows in enumerate(np.array_split(np.arange(len(samples)), groups)):
        bank = Bank.of([samples[row] for row in rows], similarity[rows], device)
        codes = _start(known, networks, bank, config)
        together = replace(config, shapes=len(bank), warm_share=0.0)
        task = RegistrationTask(networks, codes, bank, together, seed, [codes])
        loop = LoopConfig(config.onto_steps, config.onto_rate, clip=math.inf, rise=0.05)
        train(task, loop, f"onto-{group + 1}-of-{groups}", runtime, fingerprint)
        with torch.no_grad():
            found.append(codes.cpu()(torch.arange(len(bank))))
    fwd, bwd = (torch.cat(part) for part in zip(*found, strict=True))
    return Maps(known.networks, fwd, bwd, similarity)


@torch.no_grad()
def _start(known: Maps, networks: Networks, bank: Bank, config: RegistrationConfig) -> Codes:
    """Codes of the training shapes under which the new ones fit best."""
    device = bank.surface.device
    step = max(1, len(known) // TRIED)
    z_fwd, z_bwd = (z[::step].to(device) for z in (known.z_fwd, known.z_bwd))
    maps = networks.forward_map(z_fwd)
    n, misfit = bank.n, []
    for shape in bank.near[:, :TRIED_POINTS]:
        y = shape[None, :, :n].expand(len(z_fwd), -1, -1)
        misfit.append((networks.distance(maps(y)) - shape[:, n]).abs().mean(-1))
    best = torch.stack(misfit).argmin(1)
    codes = Codes(len(bank), config.code, config.code_gain).to(device)
    codes.fwd.copy_(z_fwd[best] / config.code_gain)
    codes.bwd.copy_(z_bwd[best] / config.code_gain)
    return codes
