"""A training as a process of its own, for whoever needs its result: its memory is free when it is done."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from graphcontext.errors import InputError
from graphcontext.train.command import check_extra
from graphcontext.train.trained import TrainedAdapter

RANKS = (
    *("RANK", "WORLD_SIZE", "LOCAL_RANK", "NODE_RANK", "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT"),
    *("LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE", "SLURM_NTASKS", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID"),
)
FORWARDED = (signal.SIGTERM, signal.SIGUSR1)
GRACE = 3.0  # seconds that a training has to end by a Ctrl-C of its own


def launch(adapter: TrainedAdapter, root: Path, quiet: bool) -> str | None:
    """Train an adapter by the command that a user would type; returns why it failed, None where it is there.

    Args:
        adapter: what is to be trained.
        root: the working folder.
        quiet: no progress.

    Raises:
        KeyboardInterrupt: it was told to stop; it goes on from there when it is asked for again.
    """
    try:
        check_extra()
    except InputError as error:
        return str(error)
    given = [absolute(word) for word in adapter.words]
    words = [sys.executable, "-P", "-m", "graphcontext.cli", "train", *given, *(["--quiet"] if quiet else [])]
    print(f"training {adapter.experiment}: {adapter.command}", file=sys.stderr, flush=True)
    shown = sys.stderr.isatty()
    stderr = None if shown else subprocess.PIPE
    child = subprocess.Popen(words, cwd=root, env=environment(), stdout=subprocess.DEVNULL, stderr=stderr, text=True)
    said: list[str] = []
    reader = None if shown else threading.Thread(target=_repeat, args=(child.stderr, said, quiet), daemon=True)
    if reader is not None:
        reader.start()
    with _forwarding(child) as told:
        try:
            code = child.wait()
        except KeyboardInterrupt:  # by Ctrl-C the child got it too, and saves its checkpoint
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(GRACE)
            child.terminate()  # else by this; a second SIGINT would end it without a checkpoint
            child.wait()
            raise
    if reader is not None:
        reader.join(10)
    if code >= 128 or told:
        raise KeyboardInterrupt
    if code == 0 and adapter.is_trained:
        return None
    errors = [line.removeprefix("error: ") for line in said if line.startswith("error: ")]
    return errors[-1] if errors else f"the training ended with exit code {code}; {adapter.command} shows why"


def absolute(word: str) -> str:
    """Return an override, a relative path in it made absolute: the training runs in the working folder.

    >>> absolute("dataset=jsonl"), absolute("dataset.path=/data/mine")
    ('dataset=jsonl', 'dataset.path=/data/mine')
    """
    key, equals, value = word.partition("=")
    path = value.strip("'")
    if not key.endswith("path") or not os.path.exists(path):
        return word
    return f"{key}{equals}{os.path.abspath(path)}"


def environment() -> dict[str, str]:
    """Return the environment of a training: data and models where they are for this process, no rank of its own."""
    found = {k: v for k, v in os.environ.items() if k not in RANKS and not k.startswith("TORCHELASTIC_")}
    for key in ("GRAPHCONTEXT_DATA", "GRAPHCONTEXT_HOME"):
        if found.get(key):
            found[key] = os.path.abspath(os.path.expanduser(found[key]))
    return found


def _repeat(stream: Any, said: list[str], quiet: bool) -> None:
    for line in stream:
        said.append(line.rstrip("\n"))
        if not quiet and not line.startswith("error: "):
            print(line, end="", file=sys.stderr, flush=True)


@contextlib.contextmanager
def _forwarding(child: subprocess.Popen[str]) -> Iterator[list[int]]:
    """Pass signals that end this process on to the child, which stops at the end of a step; yields those that came."""
    told: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield told
        return

    def forward(number: int, _: FrameType | None) -> None:
        told.append(number)
        child.send_signal(number)

    before = {number: signal.signal(number, forward) for number in FORWARDED}
    try:
        yield told
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
