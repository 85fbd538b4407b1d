"""What a training shows: one bar, a CSV, a picture of the losses, and wandb where it is wanted."""

from __future__ import annotations

import contextlib
import csv
import importlib.util
import io
import math
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from graphcontext.errors import InputError, RunError
from graphcontext.files import write_atomic

COLUMNS = ("step", "epoch", "loss", "held_out_loss", "learning_rate", "gradient_norm", "target_tokens", "seconds")

MORE = ("held_out_mrr",)  # columns of some kinds of training


def write_csv(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write one line per optimiser step: losses in nats a target token (of an encoder: an example), the rate, the norm
    before clipping.
    """
    stream = io.StringIO()
    columns = [*COLUMNS, *(name for name in MORE if any(name in row for row in rows))]
    writer = csv.DictWriter(stream, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _short(row.get(name)) for name in columns} for row in rows)
    write_atomic(path, stream.getvalue())


def _short(value: Any) -> Any:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else value


def plot(
    path: Path, rows: Sequence[dict[str, Any]], title: str, best_step: int | None = None, unit: str = "a token"
) -> None:
    """Draw the losses over the steps: of each global batch, their running mean, and held out.

    Args:
        path: a PNG.
        rows: as of :func:`write_csv`; the one of step 0 has the held-out loss of the base model alone.
        title: above it.
        best_step: the step whose weights were kept.
        unit: what a loss is of.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    trained = [(r["step"], r["loss"]) for r in rows if r.get("loss") is not None]
    held = [(r["step"], r["held_out_loss"]) for r in rows if r.get("held_out_loss") is not None]
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    if trained:
        steps, losses = zip(*trained)
        axes.plot(steps, losses, color="#9ecae1", linewidth=1, label="global batch")
        smooth = running_mean(losses, max(5, len(losses) // 20))
        axes.plot(steps, smooth, color="#08519c", linewidth=1.5, label="running mean")
    if held:
        axes.plot(*zip(*held), color="#d94801", marker="o", markersize=4, linewidth=1.5, label="held out")
    if best_step is not None and held:
        axes.axvline(best_step, color="#d94801", linewidth=0.8, linestyle=":", label=f"kept: step {best_step}")
    axes.set_xlabel("optimiser step")
    axes.set_ylabel(f"loss (nats {unit})")
    axes.set_title(title, fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    if trained or held:
        axes.legend(frameon=False, fontsize=8)
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=150, metadata={"Software": None})
    write_atomic(path, stream.getvalue())


def running_mean(values: Sequence[float], width: int) -> list[float]:
    """Return the mean of each value and up to ``width`` − 1 before it.

    >>> running_mean([1.0, 3.0, 5.0], 2)
    [1.0, 2.0, 4.0]
    """
    return [sum(values[max(0, i + 1 - width) : i + 1]) / min(i + 1, width) for i in range(len(values))]


class Bar:
    """One progress bar: tokens a second, loss, time left; a line a minute where nobody looks.

    Args:
        total: optimiser steps.
        done: of them before this process began.
        quiet: nothing is shown.
    """

    EVERY = 60.0  # seconds between two lines in a log

    def __init__(self, total: int, done: int, quiet: bool) -> None:
        from tqdm import tqdm

        self.total, self.first, self.tokens = total, done, 0
        self.is_log = not quiet and not sys.stderr.isatty()
        self.begun = self.told = self.drawn = time.monotonic()
        self.said = ""
        shown = quiet or self.is_log
        self.bar = tqdm(total=total, initial=done, desc="train", unit="step", disable=shown, file=sys.stderr)

    def start(self) -> None:
        """Count time from here on: the steps begin."""
        self.begun = time.monotonic()
        if not self.bar.disable:
            self.bar.unpause()

    def count(self, passes: int, of: int) -> None:
        """Show how many forward passes of an optimiser step are done, where it has several; now and then."""
        if of > 1 and time.monotonic() - self.drawn > 1:
            self.drawn = time.monotonic()
            self.bar.set_postfix_str(", ".join([f"pass {passes} of {of}", *([self.said] if self.said else [])]))

    def advance(self, step: int, tokens: int, loss: float, held_out: float | None) -> None:
        """Show that optimiser step ``step`` is done, and its loss."""
        self.tokens += tokens
        now = time.monotonic()
        speed = self.tokens / max(1e-9, now - self.begun)
        said = f"{speed:,.0f} tokens/s, loss {loss:.3f}" + ("" if held_out is None else f", held out {held_out:.3f}")
        self.said = said
        self.bar.set_postfix_str(said, refresh=False)
        self.bar.update(1)
        if self.is_log and (now - self.told >= self.EVERY or step == self.total):
            self.told = now
            left = (now - self.begun) / max(1, step - self.first) * (self.total - step)
            print(f"train: step {step} of {self.total}, {said}, {left / 60:.0f} min left", file=sys.stderr, flush=True)

    def validate(self, step: int, done: int, of: int) -> None:
        """Show how far the validation after optimiser step ``step`` is, 0: that of the base model."""
        said = f"held-out loss {f'after step {step}' if step else 'of the base'}: {done} of {of}"
        self.bar.set_postfix_str(said)
        if self.is_log and time.monotonic() - self.told >= self.EVERY:
            self.told = time.monotonic()
            print(said, file=sys.stderr, flush=True)

    def validated(self) -> None:
        """Take that back: the next step is under way."""
        self.bar.set_postfix_str(self.said)

    def close(self) -> None:
        self.bar.close()


def check_wandb(mode: str) -> None:
    """Check that a curve can go where it is wanted, without asking the network.

    Raises:
        InputError: ``online``, and the package or the key is not here.
    """
    if mode != "online":
        return
    if importlib.util.find_spec("wandb") is None:
        raise InputError("trainer.wandb=online needs the package wandb: pip install 'graphcontext[wandb]'")
    import wandb
    from wandb.errors import Error

    try:
        if wandb.login(prompt=False, verify=False):
            return
    except Error as error:
        raise InputError(f"trainer.wandb=online: {str(error).rstrip('.')}; or trainer.wandb=offline") from error
    raise InputError("trainer.wandb=online: no API key here; wandb login, or WANDB_API_KEY, or trainer.wandb=offline")


class Wandb:
    """The curve on Weights & Biases: ``offline`` writes files for ``wandb sync``; a resume continues the curve.

    Args:
        mode: ``offline``, ``online`` or ``disabled``.
        key: of the training: the id of the run.
        folder: where its files go.
        name: shown there.
        config: recipe, without secrets.
    """

    def __init__(self, mode: str, key: str, folder: Path, name: str, config: dict[str, Any]) -> None:
        self.run: Any = None
        check_wandb(mode)
        if mode == "disabled":
            return
        if importlib.util.find_spec("wandb") is None:
            print("wandb is not installed: losses go to metrics.csv alone", file=sys.stderr)
            return
        import wandb
        from wandb.errors import Error

        folder.mkdir(parents=True, exist_ok=True)
        settings = wandb.Settings(silent=True, console="off", disable_git=True, save_code=False, x_disable_stats=True)
        try:
            self.run = wandb.init(
                project="graphcontext",
                id=key[:32],
                name=name,
                dir=str(folder),
                mode=mode,
                resume="allow",
                config=config,
                settings=settings,
            )
        except Error as error:  # no network, a key that the server refuses
            raise RunError(f"trainer.wandb={mode}: {error}; another: offline, disabled") from error

    def log(self, row: dict[str, Any]) -> None:
        """Log one line of metrics.csv at its step."""
        found = {k: v for k, v in row.items() if v is not None and k != "step" and not math.isnan(float(v))}
        if self.run is not None:
            self._call(lambda: self.run.log(found, step=row["step"]))

    def close(self) -> None:
        if self.run is not None:
            self._call(self.run.finish)  # silent by its settings

    def _call(self, function: Callable[[], Any]) -> None:
        """Call wandb; where its process is gone, say so and go on: a job's SIGTERM reaches that process too."""
        gone: list[type[Exception]] = [OSError]
        with contextlib.suppress(ImportError):
            from wandb.sdk.mailbox import MailboxClosedError

            gone.append(MailboxClosedError)
        try:
            function()
        except tuple(gone) as error:
            why = str(error) or type(error).__name__
            print(f"wandb is gone ({why}): losses go to metrics.csv alone", file=sys.stderr)
            self.run = None
