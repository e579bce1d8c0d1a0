"""The one training loop: seed, device, precision, progress, checkpoint, resume, early stop.

A task draws its batch from the step number alone, so a resumed run sees the batches it would have
seen and ends with the same bits as a run that was never stopped.
"""

from __future__ import annotations

import copy
import gc
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from prism.errors import FitError


@dataclass(frozen=True)
class LoopConfig:
    """How long and how fast to train.

    Of two states whose held-out scores differ by less than `tolerance` the later one is kept: its
    learning rate has come down further, and the difference is chance.
    """

    steps: int
    learning_rate: float
    clip: float = 1.0
    checks: int = 20
    patience: int = 8
    tolerance: float = 0.01
    rise: float = 0.1


class Task(Protocol):
    """What the loop trains.

    Each of the `branches` is clipped on its own, or the larger gradient would starve the smaller.
    """

    @property
    def network(self) -> nn.Module:
        """The networks to train."""
        ...

    @property
    def branches(self) -> Sequence[Sequence[nn.Parameter]]:
        """Groups of parameters with isolated losses."""
        ...

    def batch(self, step: int) -> tuple[Tensor, ...]:
        """Draw the batch of this step; the same step gives the same batch."""
        ...

    def loss(self, step: int, *batch: Tensor) -> Tensor:
        """Return the loss to descend; within a stage the step's number must not matter."""
        ...

    def stage(self, step: int) -> int:
        """Number of the curriculum's stage at this step."""
        ...

    def validate(self, step: int) -> float | None:
        """Held-out score, low is good; None while there is nothing to compare."""
        ...


@dataclass(frozen=True)
class Update:
    """One message from the loop to whoever shows progress."""

    phase: str
    step: int
    steps: int
    loss: float
    held_out: float | None
    seconds_left: float


class Progress(Protocol):
    """Receives updates; the command line draws a bar, a library call may log them."""

    def __call__(self, update: Update) -> None:
        """Take note of an update."""
        ...


def silent(update: Update) -> None:
    """Show nothing."""


@dataclass(frozen=True)
class Runtime:
    """Where and how to run: shared by every phase of a fit."""

    device: str = "auto"
    precision: str = "32-true"
    folder: Path | None = None
    resume: bool = False
    progress: Progress = silent


@dataclass
class TrainingLog:
    """What happened: held-out score by step, the best step, seconds spent."""

    held_out: list[tuple[int, float]] = field(default_factory=list)
    best_step: int = 0
    steps: int = 0
    seconds: float = 0.0


def choose_device(device: str) -> torch.device:
    """Resolve "auto" to the GPU when there is one."""
    if device not in ("auto", "cpu", "cuda"):
        raise FitError(f"device must be auto, cpu or cuda. Got {device!r}.", "Choose one of them.")
    if device == "cuda" and not torch.cuda.is_available():
        raise FitError(
            "device cuda was asked for, but torch sees no GPU.",
            "Use --device auto, or see `prism doctor`.",
        )
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(device)


class Loop:
    """State of a run between two steps; what a checkpoint holds."""

    def __init__(self, task: Task, config: LoopConfig, phase: str, runtime: Runtime) -> None:
        from lightning_fabric import Fabric

        self.task, self.config, self.phase, self.runtime = task, config, phase, runtime
        device = choose_device(runtime.device)
        self.fabric = Fabric(accelerator=device.type, devices=1, precision=runtime.precision)  # type: ignore[arg-type]
        self.fabric.launch()
        groups = [{"params": list(branch)} for branch in task.branches]
        on_gpu = device.type == "cuda"
        rate = torch.tensor(config.learning_rate, device=device) if on_gpu else config.learning_rate
        self.optimiser = torch.optim.Adam(groups, lr=rate, foreach=True, capturable=on_gpu)
        self.recorder = _Recorder(self) if on_gpu else None
        self.step = 0
        self.best, self.best_state = math.inf, copy.deepcopy(task.network.state_dict())
        self.checks_since_best = 0
        self.log = TrainingLog()

    def rate(self, step: int) -> float:
        """One-cycle learning rate: a cosine up over the first `rise`, a cosine down to zero."""
        rise = max(1.0, self.config.rise * self.config.steps)
        if step < rise:
            return self.config.learning_rate * (0.04 + 0.96 * _half_cosine(step / rise))
        rest = (step - rise) / max(1.0, self.config.steps - rise)
        return self.config.learning_rate * (1 - _half_cosine(rest))

    def descend(self) -> Tensor:
        """Take one step; return the loss."""
        self._set_rate(self.rate(self.step))
        batch = self.task.batch(self.step)
        loss = self.recorder(batch) if self.recorder else self.update(batch)
        self.step += 1
        return loss

    def update(self, batch: tuple[Tensor, ...]) -> Tensor:
        """Descend the loss of this batch."""
        with self.fabric.autocast():
            loss = self.task.loss(self.step, *batch)
        self.optimiser.zero_grad(set_to_none=True)
        self.fabric.backward(loss)
        for branch in self.task.branches:
            nn.utils.clip_grad_norm_(branch, self.config.clip, foreach=True)
        self.optimiser.step()
        return loss.detach()

    def _set_rate(self, rate: float) -> None:
        for group in self.optimiser.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate

    def check(self, loss: float) -> None:
        """Compare with the best held-out score so far."""
        self._require_finite("loss", loss)
        score = self.task.validate(self.step)
        if score is None:
            return
        self._require_finite("held-out score", score)
        self.log.held_out.append((self.step, score))
        self.checks_since_best = 0 if score < self.best else self.checks_since_best + 1
        self.best = min(score, self.best)
        if score < self.best + self.config.tolerance:
            self.best_state = copy.deepcopy(self.task.network.state_dict())
            self.log.best_step = self.step

    def _require_finite(self, name: str, value: float) -> None:
        if not math.isfinite(value):
            raise FitError(
                f"training of the {self.phase} diverged at step {self.step}: "
                f"the {name} is {value}.",
                "Lower the learning rate or the frequencies, or check the cohort: prism check.",
            )

    @property
    def done(self) -> bool:
        """True when all steps are taken or the held-out score has stopped falling."""
        return self.step >= self.config.steps or self.checks_since_best >= self.config.patience

    def state(self) -> dict[str, Any]:
        """Everything a resumed run needs, in types that load without running code."""
        return {
            "network": self.task.network.state_dict(),
            "best_state": self.best_state,
            "optimiser": self.optimiser.state_dict(),
            "step": self.step,
            "best": self.best,
            "checks_since_best": self.checks_since_best,
            "held_out": self.log.held_out,
            "best_step": self.log.best_step,
            "seconds": self.log.seconds,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint."""
        self.task.network.load_state_dict(state["network"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.best_state = state["best_state"]
        self.step, self.best = state["step"], state["best"]
        self.checks_since_best = state["checks_since_best"]
        self.log = TrainingLog(
            [(int(s), float(v)) for s, v in state["held_out"]],
            state["best_step"],
            state["step"],
            state["seconds"],
        )


class _Recorder:
    """Records a step as a CUDA graph and replays it, so that launching kernels costs nothing.

    The first steps of a stage run as they are, to let libraries set themselves up; the next one is
    recorded with its inputs in fixed places, and from then on only the inputs change.
    """

    WARM_STEPS = 4

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.stage, self.seen = -1, 0
        self.graph: torch.cuda.CUDAGraph | None = None
        self.inputs: tuple[Tensor, ...] = ()
        self.loss = torch.empty(0)

    def __call__(self, batch: tuple[Tensor, ...]) -> Tensor:
        stage = self.loop.task.stage(self.loop.step)
        if stage != self.stage:
            self.stage, self.seen, self.graph = stage, 0, None
        self.seen += 1
        if self.seen <= self.WARM_STEPS:
            return self._on_side_stream(batch)
        if self.graph is None:
            self._record(batch)
        for place, value in zip(self.inputs, batch, strict=True):
            place.copy_(value)
        self.graph.replay()  # type: ignore[union-attr]
        return self.loss

    def _on_side_stream(self, batch: tuple[Tensor, ...]) -> Tensor:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            loss = self.loop.update(batch)
        torch.cuda.current_stream().wait_stream(side)
        return loss

    def _record(self, batch: tuple[Tensor, ...]) -> None:
        self.inputs = tuple(value.clone() for value in batch)
        self.loop.optimiser.zero_grad(set_to_none=True)
        gc.collect()  # a graph of an earlier run that is freed while this one is recorded breaks it
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.loss = self.loop.update(self.inputs)


def _half_cosine(x: float) -> float:
    """Rise from 0 to 1 along half a cosine."""
    return 0.5 - 0.5 * math.cos(math.pi * min(max(x, 0.0), 1.0))


def train(
    task: Task, config: LoopConfig, phase: str, runtime: Runtime, fingerprint: str = ""
) -> TrainingLog:
    """Train until done and leave the best weights in `task.network` (the last, if none was judged).

    A run that is stopped, at whatever moment, resumes from its last check: only there is the state
    known to be whole.

    Args:
        task: What to train; its tensors must already be on the runtime's device.
        config: Steps and rates.
        phase: Name shown in progress and used for the checkpoint file.
        runtime: Device, precision, checkpoint folder, progress.
        fingerprint: Identifies data, config and seed; a checkpoint of another run is refused.
    """
    loop = Loop(task, config, phase, runtime)
    checkpoint = None if runtime.folder is None else runtime.folder / f"{phase}.ckpt"
    if runtime.resume and checkpoint is not None and checkpoint.exists():
        loop.restore(_read_checkpoint(checkpoint, fingerprint, loop.fabric.device))
    started, first = time.monotonic() - loop.log.seconds, loop.step
    resumed_at = time.monotonic()
    every = max(1, config.steps // config.checks)
    while not loop.done:
        loss = loop.descend()
        if loop.step % every and loop.step < config.steps:
            continue
        loop.check(float(loss))
        loop.log.seconds = time.monotonic() - started
        _save_checkpoint(checkpoint, loop.state(), fingerprint)
        pace = (time.monotonic() - resumed_at) / (loop.step - first)
        held_out = loop.log.held_out[-1][1] if loop.log.held_out else None
        left = pace * (config.steps - loop.step)
        runtime.progress(Update(phase, loop.step, config.steps, float(loss), held_out, left))
    if loop.log.held_out:
        task.network.load_state_dict(loop.best_state)
    loop.log.steps = loop.step
    return loop.log


def _save_checkpoint(path: Path | None, state: dict[str, Any], fingerprint: str) -> None:
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".draft")
    torch.save({"fingerprint": fingerprint, **state}, draft)
    draft.replace(path)


def _read_checkpoint(path: Path, fingerprint: str, device: torch.device) -> dict[str, Any]:
    try:
        state = torch.load(path, map_location=device, weights_only=True)
    except (OSError, RuntimeError, EOFError, ValueError, KeyError, UnpicklingError) as error:
        raise FitError(
            f"checkpoint {path.name} cannot be read: {error}",
            "Start again without --resume.",
        ) from error
    if state.get("fingerprint") != fingerprint:
        raise FitError(
            f"checkpoint {path.name} belongs to another cohort, configuration or seed.",
            "Resume with the same cohort, options and seed, or start again without --resume.",
        )
    return state
