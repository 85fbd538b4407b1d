"""A training as a process of its own, for whoever needs its result: its memory is free when it is done."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from graphcontext.errors import InputError
from graphcontext.train.command import check_extra
from graphcontext.train.trained import TrainedAdapter

FORWARDED = (signal.SIGTERM, signal.SIGUSR1)


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
    words = [sys.executable, "-P", "-m", "graphcontext.cli", "train", *adapter.words, *(["--quiet"] if quiet else [])]
    print(f"training {adapter.experiment}: {adapter.command}", file=sys.stderr, flush=True)
    shown = sys.stderr.isatty()
    child = subprocess.Popen(
        words, cwd=root, stdout=subprocess.DEVNULL, stderr=None if shown else subprocess.PIPE, text=True
    )
    said: list[str] = []
    reader = None if shown else threading.Thread(target=_repeat, args=(child.stderr, said, quiet), daemon=True)
    if reader is not None:
        reader.start()
    with _forwarding(child):
        try:
            code = child.wait()
        except KeyboardInterrupt:  # the child got it too, and saves its checkpoint
            child.wait()
            raise
    if reader is not None:
        reader.join(10)
    if code >= 128:
        raise KeyboardInterrupt
    if code == 0:
        return None
    errors = [line.removeprefix("error: ") for line in said if line.startswith("error: ")]
    return errors[-1] if errors else f"the training ended with exit code {code}; {adapter.command} shows why"


def _repeat(stream: Any, said: list[str], quiet: bool) -> None:
    for line in stream:
        said.append(line.rstrip("\n"))
        if not quiet and not line.startswith("error: "):
            print(line, end="", file=sys.stderr, flush=True)


@contextlib.contextmanager
def _forwarding(child: subprocess.Popen[str]) -> Iterator[None]:
    """Pass signals that end this process on to the child, which stops at the end of a step."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, lambda n, _: child.send_signal(n)) for number in FORWARDED}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
