"""Signals as a wish to stop: noted when they come, followed at the end of an optimiser step, by all ranks together."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any, Self

SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)


class StopWish:
    """Notes SIGTERM, SIGUSR1 and the first Ctrl-C while it is entered; a second Ctrl-C interrupts at once.

    Slurm sends SIGTERM at the end of a job's time or on preemption, SIGUSR1 where ``--signal=USR1@…`` asks for it.
    """

    def __init__(self) -> None:
        self.signal: int = 0
        self.interrupted = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
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
        self.signal = number
