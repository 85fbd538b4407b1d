"""Signals as a wish to stop: noted when they come, followed at the end of an optimiser step, by all ranks together.

Where nothing is trained they end what is under way (:func:`at_once`).
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any, Self

from graphcontext.train.world import rank

SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)
BEFORE, STEP = "stops before the first step", "stops at the end of this step and saves"


class StopSignal(KeyboardInterrupt):
    """SIGTERM or SIGUSR1, where it ends what is under way as Ctrl-C does."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = int(number)


@contextlib.contextmanager
def at_once() -> Iterator[None]:
    """Let the first SIGTERM or SIGUSR1 raise a :class:`StopSignal`; more of them do not disturb what is put in order.

    Processes forked from this one end by them as if it were not there.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    owner, told = os.getpid(), []

    def end(number: int, _: FrameType | None) -> None:
        if os.getpid() != owner:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        elif not told:
            told.append(number)
            raise StopSignal(number)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGUSR1)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class StopWish:
    """Notes SIGTERM, SIGUSR1 and the first Ctrl-C while it is entered; a second Ctrl-C interrupts at once.

    Slurm sends SIGTERM at the end of a job's time or on preemption, SIGUSR1 where ``--signal=USR1@…`` asks for it.
    The first rank says at once what comes of the first signal, as ``then`` has it.
    """

    def __init__(self) -> None:
        self.signal: int = 0
        self.interrupted = False
        self.then = STEP
        self._speaker = 0  # the process that says it, and no worker forked from it
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        self._speaker = os.getpid() if rank() == 0 else 0
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.getsignal(number) for number in SIGNALS}
        self.listen()
        return self

    def listen(self) -> None:
        """Note signals again, where Lightning has put a handler of its own in between."""
        for number in self._before:
            signal.signal(number, self._note)

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()

    def _note(self, number: int, _: FrameType | None) -> None:
        if self.signal and number == signal.SIGINT:
            self.interrupted = True
            raise KeyboardInterrupt
        is_first, self.signal = not self.signal, number
        if is_first and os.getpid() == self._speaker:
            more = "; Ctrl-C again stops now" if number == signal.SIGINT else ""
            line = f"{signal.Signals(number).name}: {self.then}{more}\n"
            with contextlib.suppress(OSError):  # print might be in the midst of a line
                os.write(2, (("\n" if os.isatty(2) else "") + line).encode())  # not behind the bar
