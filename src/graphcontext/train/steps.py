"""What happens at the end of each optimiser step: losses, validation, checkpoints, the wish to stop."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.utilities.exceptions import SIGTERMException

from graphcontext.errors import InputError, RunError
from graphcontext.files import check_held, put_below, write_atomic
from graphcontext.train import checkpoint
from graphcontext.train.batches import Course
from graphcontext.train.checkpoint import Position
from graphcontext.train.report import Bar, Wandb, write_csv
from graphcontext.train.stop import BEFORE, SIGNALS, STEP, StopSignal, StopWish
from graphcontext.train.tuning import Tuning, summed
from graphcontext.train.world import check_group

LAST = "last.pt"
PROFILED = 2  # most forward passes under torch's profiler: of 30 layers each has 50,000 events to sum up


@dataclass
class Seats:
    """Where a training keeps its files: ``checkpoints`` and ``csv``."""

    folder: Path

    @property
    def last(self) -> Path:
        return self.folder / "checkpoints" / LAST

    def best(self, step: int) -> Path:
        """The weights of the validation after a step."""
        return self.folder / "checkpoints" / f"best-{step}.pt"

    @property
    def csv(self) -> Path:
        return self.folder / "metrics.csv"


class Steps(pl.Callback):
    """Follows the optimiser steps.

    Args:
        seats: where files go.
        position: where the training goes on from; kept up to date.
        held_out: returns the held-out batches of this rank, empty where there are none.
        bar: on rank 0.
        curve: on rank 0.
        profile: run some passes under torch's profiler.
    """

    def __init__(
        self,
        seats: Seats,
        position: Position,
        held_out: Callable[[], Collection[dict[str, Any]]],
        bar: Bar,
        curve: Wandb,
        profile: bool = False,
    ) -> None:
        self.seats, self.position, self.held_out, self.bar, self.curve = seats, position, held_out, bar, curve
        self.wish = StopWish()
        self.wish.then = STEP if position.rows else BEFORE
        self.stopped_by = 0
        self.profiler = torch.profiler.profile() if profile else None
        self.window = range(0)  # passes of this process that are profiled
        self.seen = 0  # passes that this process made

    def run(self, trainer: pl.Trainer, module: Tuning, data: Any) -> None:
        """Train; where Lightning itself met SIGTERM, between two of our hooks, it is a stop like any other.

        Raises:
            KeyboardInterrupt: by a second Ctrl-C, which Lightning would turn into exit code 1 without a word.
        """
        try:
            trainer.fit(module, datamodule=data)
        except SIGTERMException:
            self.stopped_by = int(signal.SIGTERM)
        except SystemExit as ended:
            if self.wish.interrupted:
                raise KeyboardInterrupt from ended
            raise

    # Lightning's hooks

    def setup(self, trainer: pl.Trainer, pl_module: Tuning, stage: str) -> None:
        """Check that the ranks are those that batches are dealt out for."""
        check_group(pl_module.settings)

    def on_train_start(self, trainer: pl.Trainer, module: Tuning) -> None:
        """Listen to signals, put a checkpoint back, and measure the base model before the first step."""
        self.wish.listen()
        agree(self.position.step, module.device)
        found = checkpoint.read(self.seats.last) if self.position.step else None
        if found is not None:
            checkpoint.restore(module.network, found[0], trainer.optimizers[0])
        self.saved = self.clock = time.monotonic()
        self.spent = self.position.rows[-1]["seconds"] if self.position.rows else 0.0
        if not self.position.rows:
            try:
                self.position.base = self._validate(module)
            except StopSignal as told:
                self.stopped_by, trainer.should_stop = told.number, True
                return
            check_base(self.position.base, module.global_rank)
            self.wish.then = STEP
            row = {"step": 0, "epoch": 0.0, "held_out_loss": self.position.base, **module.measured}
            row["seconds"] = self._seconds()
            self._record(trainer, row)
        self.bar.start()
        self.window = profiled(trainer.accumulate_grad_batches, module.course.total - self.position.step)

    def on_train_batch_start(self, *_: Any) -> None:
        """Begin the profile."""
        if self.profiler is not None and self.seen == self.window.start:
            self.profiler.start()

    def on_train_batch_end(self, trainer: pl.Trainer, module: Tuning, *_: Any) -> None:
        """Close an optimiser step when its last forward pass is done."""
        self.seen += 1
        if self.profiler is not None and self.seen == self.window.stop:
            self.profiler.stop()
        if module.passes < trainer.accumulate_grad_batches:
            self.bar.count(module.passes, trainer.accumulate_grad_batches)
            return
        if trainer.is_global_zero:  # it holds the lease; the others end with it
            check_held(self.seats.folder)
        saves = time.monotonic() - self.saved > 60 * module.settings.checkpoint_minutes
        told = [module.loss_sum.double(), float(saves and trainer.is_global_zero)]
        loss, saves = summed(torch.tensor(told, dtype=torch.float64, device=module.device)).tolist()
        loss /= module.tokens
        step = module.done + 1
        self._check(module, step, {"loss": loss, "norm of the gradient": module.norm})
        tokens, rate = module.tokens, module.settings.rate(module.done, module.course.total)
        module.done, module.passes, self.position.step = step, 0, step
        is_last = step == module.course.total
        row = {"step": step, "epoch": round(step / module.course.per_epoch, 4), "loss": loss, "learning_rate": rate}
        row |= {"gradient_norm": module.norm, "target_tokens": tokens}
        validated = is_last or is_validated(step, module.course, module.settings.validations)
        row["held_out_loss"] = self._validate(module) if validated else None
        row |= module.measured if validated else {}
        self.stopped_by = self._told(module)  # after a validation, which may take minutes
        self._check(module, step, {"held-out loss": row["held_out_loss"]})
        better = self._improve(trainer, module, row["held_out_loss"])
        row["seconds"] = self._seconds()
        self._record(trainer, row)
        self.bar.advance(step, module.n_read, loss, self.position.rows[-1]["held_out_loss"])
        patience = module.settings.patience
        enough = patience is not None and self.position.worse >= patience
        if is_last or better or enough or self.stopped_by or saves:
            self.save(trainer, module)
        if enough or self.stopped_by:
            trainer.should_stop = True

    def on_train_end(self, trainer: pl.Trainer, module: Tuning) -> None:
        """Write the profile."""
        if self.profiler is not None and self.seen > self.window.start:
            if self.seen < self.window.stop:  # it was told to stop
                self.profiler.stop()
            if trainer.is_global_zero:
                on_gpu = module.device.type == "cuda"
                shown = self.profiler.key_averages().table(sort_by=f"self_{'cuda' if on_gpu else 'cpu'}_time_total")
                write_atomic(self.seats.folder / "profile.txt", shown)
                with put_below(self.seats.folder) as made:
                    self.profiler.export_chrome_trace(str(made / "profile.json"))

    # Parts of a step

    def save(self, trainer: pl.Trainer, module: Tuning) -> None:
        """Write the checkpoint; all ranks must call it."""
        state = checkpoint.gather(module.network, trainer.optimizers[0], keep=trainer.is_global_zero)
        if trainer.is_global_zero:
            checkpoint.write(self.seats.last, state, self.position)
            for other in self.seats.last.parent.glob("best-*.pt"):  # no checkpoint names them any more
                if other != self.seats.best(self.position.best_step):
                    check_held(other)
                    other.unlink(missing_ok=True)
            write_csv(self.seats.csv, self.position.rows)
        self.saved = time.monotonic()

    def _validate(self, module: Tuning) -> float | None:
        """Return the held-out loss, None without held-out examples.

        Raises:
            StopSignal: a rank was told to stop before the first step; nothing is lost by it.
        """

        def look(done: int, of: int) -> None:
            self.bar.validate(self.position.step, done, of)
            heed()

        def heed() -> None:
            if not self.position.rows and (number := self._told(module)):
                raise StopSignal(number)

        loss, n = module.held_out_loss(self.held_out(), look)
        self.bar.validated()
        heed()
        return loss if n else None

    def _told(self, module: Tuning) -> int:
        """Return the signal that told a rank to stop, 0 where none did; all ranks must call it."""
        sent = torch.tensor([float(self.wish.signal == number) for number in SIGNALS], device=module.device)
        return next((int(number) for number, n in zip(SIGNALS, summed(sent).tolist()) if n), 0)

    def _improve(self, trainer: pl.Trainer, module: Tuning, loss: float | None) -> bool:
        """Keep the weights of the lowest held-out loss, beside the best so far until a checkpoint names them."""
        if loss is None:
            return False
        position = self.position
        if position.best is not None and not loss < position.best:
            position.worse += 1
            return False
        position.best, position.best_step, position.worse = loss, position.step, 0
        state = checkpoint.gather(module.network, keep=trainer.is_global_zero)
        if trainer.is_global_zero:
            checkpoint.write(self.seats.best(position.step), state, Position(step=position.step, best=loss))
        return True

    def _record(self, trainer: pl.Trainer, row: dict[str, Any]) -> None:
        self.position.rows.append(row)
        if trainer.is_global_zero:
            self.curve.log(row)

    def _seconds(self) -> float:
        return round(self.spent + time.monotonic() - self.clock, 3)

    def _check(self, module: Tuning, step: int, values: dict[str, float | None]) -> None:
        """Refuse a loss or gradient that is no number: the weights before it are in the last checkpoint.

        All ranks have the same values; the first one says it for all.

        Raises:
            InputError: naming the step.
        """
        for name, value in values.items():
            if value is None or math.isfinite(value):
                continue
            if module.global_rank > 0:
                raise SystemExit(0)
            rate = module.settings.rate(step - 1, module.course.total)
            mend = "lower trainer.learning_rate, or set trainer.clip, or trainer.precision=float32"
            raise InputError(f"the {name} is {value} at step {step} (learning rate {rate:.2g}); {mend}")


def check_base(loss: float | None, rank: int = 0) -> None:
    """Refuse a base model whose held-out loss is no number, before hours of steps; the first rank says it for all.

    Raises:
        InputError: it is none.
    """
    if loss is None or math.isfinite(loss):
        return
    if rank > 0:
        raise SystemExit(0)
    raise InputError(f"the held-out loss of the base model is {loss}: its weights are damaged, or its dtype too small")


def agree(step: int, device: Any) -> None:
    """Check that all ranks go on from the same step.

    Raises:
        RunError: they do not: another process trained the same meanwhile.
    """
    told = torch.tensor([1.0, step, step * step], dtype=torch.float64, device=device)
    ranks, total, squares = summed(told).tolist()
    if ranks * squares != total * total:
        raise RunError("the ranks read different checkpoints: another process trains the same; start it again")


def profiled(passes: int, steps: int) -> range:
    """Return the forward passes that are profiled: the last ones of a step, or some steps, after the first if any.

    >>> profiled(passes=16, steps=10), profiled(passes=1, steps=10), profiled(passes=2, steps=1)
    (range(30, 32), range(1, 3), range(0, 2))

    Args:
        passes: of an optimiser step.
        steps: that are left.
    """
    first = 1 if steps > 1 else 0  # the one in which memory is taken and kernels are chosen
    many = max(1, min(steps - first, PROFILED // passes))
    end = passes * (first + many)
    return range(end - min(PROFILED, passes * many), end)


def is_validated(step: int, course: Course, validations: float) -> bool:
    """Tell whether the held-out loss is measured after an optimiser step: evenly, the last one among them.

    Validation n stands after step ⌊n · (steps of an epoch) / ``validations``⌉; there are no more than one a step.
    """
    every = course.per_epoch / validations
    if every <= 1 or step == course.total:
        return True
    count = math.floor(course.total / every + 1e-9)
    near = math.floor(step / every)
    return any(step == round(every * n) for n in (near, near + 1) if 1 <= n <= count)


def final_state(seats: Seats, keep: str, position: Position) -> dict[str, dict[str, Any]]:
    """Return the weights that are kept: of the best validation, or the last.

    Raises:
        RunError: the checkpoint is gone.
    """
    check_held(seats.folder)  # else another's checkpoints may stand in the place of ours
    of_best = keep == "best" and position.best is not None
    path = seats.best(position.best_step) if of_best else seats.last
    found = checkpoint.read(path)
    if found is None:
        raise RunError(f"{path} is gone; remove {seats.folder} and train again")
    return found[0]
