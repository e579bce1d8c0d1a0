from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from prism.errors import FitError
from prism.training import Loop, LoopConfig, Runtime, Update, choose_device, train

CPU = Runtime(device="cpu")


class Line:
    """Fit y = 2 x by a small network; the held-out score may be dictated."""

    def __init__(self, scores: dict[int, float] | None = None, spoil: float = 0.0) -> None:
        torch.manual_seed(0)
        self.network = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
        self.branches = [list(self.network[0].parameters()), list(self.network[2].parameters())]
        self.scores, self.spoil, self.kept = scores, spoil, {}

    def batch(self, step: int) -> tuple[Tensor, ...]:
        x = torch.rand(32, 1, generator=torch.Generator().manual_seed(step))
        return x, 2 * x

    def loss(self, step: int, *batch: Tensor) -> Tensor:
        x, y = batch
        return (self.network(x) - y).square().mean() + self.spoil

    def stage(self, step: int) -> int:
        return 0

    def validate(self, step: int) -> float | None:
        self.kept[step] = [w.detach().clone() for w in self.network.parameters()]
        return None if self.scores is None else self.scores.get(step)


def stop_at(step: int) -> Any:
    def progress(update: Update) -> None:
        if update.step == step:
            raise InterruptedError

    return progress


def weights(task: Line) -> list[Tensor]:
    return [w.detach().clone() for w in task.network.parameters()]


def same(a: list[Tensor], b: list[Tensor]) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


def test_one_cycle_rises_to_the_peak_and_falls_to_zero() -> None:
    loop = Loop(Line(), LoopConfig(steps=100, learning_rate=0.5), "line", CPU)
    rates = [loop.rate(step) for step in range(101)]
    assert rates[0] == pytest.approx(0.02)
    assert max(rates) == rates[10] == pytest.approx(0.5)
    assert rates[:11] == sorted(rates[:11])
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert rates[100] == pytest.approx(0.0, abs=1e-12)


def test_training_learns_and_reports() -> None:
    heard: list[Update] = []
    task = Line()
    log = train(task, LoopConfig(200, 0.05), "line", Runtime(device="cpu", progress=heard.append))
    assert heard[-1].loss < 0.01 < 0.1 < heard[0].loss
    assert [u.step for u in heard] == list(range(10, 201, 10))
    assert heard[-1].seconds_left == 0
    assert log.steps == 200


def test_early_stop_restores_the_best_weights() -> None:
    task = Line(scores={10: 3.0, 20: 1.0, 30: 2.0, 40: 1.5, 50: 1.2})
    log = train(task, LoopConfig(200, 0.05, patience=3), "line", CPU)
    assert (log.best_step, log.steps) == (20, 50)
    assert log.held_out == [(10, 3.0), (20, 1.0), (30, 2.0), (40, 1.5), (50, 1.2)]
    assert same(weights(task), task.kept[20])
    assert not same(weights(task), task.kept[50])


def test_without_a_judge_the_last_weights_stay() -> None:
    task = Line()
    train(task, LoopConfig(40, 0.05), "line", CPU)
    assert same(weights(task), task.kept[40])


@pytest.mark.parametrize("task", [Line(spoil=float("nan")), Line(scores={10: float("nan")})])
def test_divergence_is_said_not_hidden(task: Line) -> None:
    with pytest.raises(FitError, match=r"diverged at step 10: the .* is nan"):
        train(task, LoopConfig(200, 0.05), "line", CPU)


def test_branches_are_clipped_apart() -> None:
    task = Line()
    loop = Loop(task, LoopConfig(10, 0.05, clip=1e-3), "line", CPU)
    loop.descend()
    norms = [torch.stack([w.grad.norm() for w in branch]).norm() for branch in task.branches]
    assert [float(norm) for norm in norms] == pytest.approx([1e-3, 1e-3], rel=1e-2)


@pytest.mark.parametrize("scores", [None, {step: abs(step - 60.0) for step in range(101)}])
@pytest.mark.parametrize("stop", [5, 65, 100])
def test_a_resumed_run_ends_with_the_same_bits(
    tmp_path: Path, scores: dict[int, float] | None, stop: int
) -> None:
    config = LoopConfig(100, 0.05)
    whole = Line(scores)
    log = train(whole, config, "line", CPU, "key")
    stopping = Runtime("cpu", folder=tmp_path, progress=stop_at(stop))
    with pytest.raises(InterruptedError):
        train(Line(scores), config, "line", stopping, "key")
    resumed = Line(scores)
    again = train(resumed, config, "line", Runtime("cpu", folder=tmp_path, resume=True), "key")
    assert same(weights(resumed), weights(whole))
    assert (again.held_out, again.best_step, again.steps) == (
        log.held_out,
        log.best_step,
        log.steps,
    )


def test_an_interrupt_amid_an_update_spoils_no_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, whole = LoopConfig(40, 0.05), Line()
    train(whole, config, "line", CPU)
    step, calls = torch.optim.Adam.step, []

    def interrupted(self: torch.optim.Adam, *args: Any) -> None:
        step(self, *args)
        calls.append(1)
        if len(calls) == 25:
            raise KeyboardInterrupt

    monkeypatch.setattr(torch.optim.Adam, "step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train(Line(), config, "line", Runtime("cpu", folder=tmp_path))
    monkeypatch.undo()
    resumed = Line()
    train(resumed, config, "line", Runtime("cpu", folder=tmp_path, resume=True))
    assert same(weights(resumed), weights(whole))


def test_a_foreign_or_damaged_checkpoint_is_refused(tmp_path: Path) -> None:
    config = LoopConfig(20, 0.05)
    train(Line(), config, "line", Runtime("cpu", folder=tmp_path), "mine")
    with pytest.raises(FitError, match="belongs to another"):
        train(Line(), config, "line", Runtime("cpu", folder=tmp_path, resume=True), "yours")
    (tmp_path / "line.ckpt").write_bytes(b"not a checkpoint")
    with pytest.raises(FitError, match="cannot be read"):
        train(Line(), config, "line", Runtime("cpu", folder=tmp_path, resume=True), "mine")


def test_without_resume_an_old_checkpoint_is_not_read(tmp_path: Path) -> None:
    config, first, second = LoopConfig(20, 0.05), Line(), Line()
    train(first, config, "line", Runtime("cpu", folder=tmp_path), "mine")
    train(second, config, "line", Runtime("cpu", folder=tmp_path), "yours")
    assert same(weights(first), weights(second))
    assert [path.name for path in tmp_path.iterdir()] == ["line.ckpt"]


def test_unknown_devices_are_refused() -> None:
    with pytest.raises(FitError, match="auto, cpu or cuda"):
        choose_device("tpu")
    if not torch.cuda.is_available():
        with pytest.raises(FitError, match="no GPU"):
            choose_device("cuda")
