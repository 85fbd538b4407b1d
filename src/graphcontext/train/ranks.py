"""What the first of several ranks tells the others before they train: whether to, and that it has made room."""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from datetime import timedelta
from types import TracebackType
from typing import Any, Self

from graphcontext.errors import GraphContextError, RunError
from graphcontext.train.stop import StopSignal
from graphcontext.train.strategy import Calm, environment, parted
from graphcontext.train.world import process

DONE, TRAIN, BEGUN = "done", "train", "begun"  # words of the first rank; its last one may be an exit code
EVERY = 0.1  # seconds between two looks
LATE = 30 * 60.0  # seconds after which a rank that has not read its pairs will not come
LINGER = timedelta(minutes=2)  # that the first rank stays for the others to hear its last word
MEETINGS = itertools.count()  # of this process: what was said at an earlier one does not count


class Ranks:
    """The ranks that torchrun or Slurm started, from where they meet until all of them train.

    Only the first looks whether the training is done and makes room for it: each for itself might find another
    answer, and wait for ever for those who went. They meet at the table of keys at ``MASTER_ADDR:MASTER_PORT`` at
    which their process group is formed later. Where there is one rank, or Lightning starts the others from what the
    first has begun, nothing is to be told.
    """

    def __init__(self) -> None:
        self.process = process()
        self.table: Any = None
        self.words = 0  # told or heard
        self.has_begun = False

    def __enter__(self) -> Self:
        """Meet.

        Raises:
            RunError: the port is taken, or not all of them come.
        """
        if self.process.launcher:
            from torch import distributed

            with Calm():
                here = environment()
                os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = here.main_address, str(here.main_port)
            try:
                table, *_ = next(distributed.rendezvous("env://", self.process.rank, self.process.world or 1))
            except distributed.DistError as error:
                raise parted(error) from error
            self.table = distributed.PrefixStore(f"graphcontext/{next(MEETINGS)}", table)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self.table is not None and not self.has_begun:
            with contextlib.suppress(RuntimeError):  # nobody is there any more
                if not self.is_first:
                    self.table.set(f"left/{self.process.rank}", "")
                else:  # the table ends with it
                    if error is not None:
                        self.tell(str(exit_code(error)))
                    self.table.wait([f"left/{other}" for other in self._others()], LINGER)
        self.table = None

    @property
    def are_several(self) -> bool:
        """Whether a launcher started several."""
        return self.table is not None

    @property
    def is_first(self) -> bool:
        """Whether this one decides."""
        return self.process.rank == 0

    def tell(self, word: str) -> None:
        """Tell the others, as the first rank."""
        if self.table is not None:
            self.table.set(f"word/{self.words}", word)
            self.words += 1

    def hear(self) -> str:
        """Wait for what the first rank tells next, and return it: it may make pairs for hours.

        Raises:
            SystemExit: it has ended with this exit code, and said why.
            RunError: it was killed.
        """
        if self.table is None:
            return TRAIN
        from torch import distributed

        key = f"word/{self.words}"
        try:
            while not self.table.check([key]):
                time.sleep(EVERY)
            word = self.table.get(key).decode()
        except distributed.DistError as error:
            raise RunError("the first process of this training ended; what it said shows why") from error
        self.words += 1
        if word.isdigit():
            raise SystemExit(int(word))
        return word

    def begin(self) -> None:
        """Train from here on: the first rank has made room, and none of them has ended meanwhile.

        Raises:
            SystemExit: the first one has ended, and said why.
            RunError: another one has.
        """
        if self.table is not None and self.is_first:
            until = time.monotonic() + LATE
            for other in self._others():
                self._await(other, until)
            self.tell(BEGUN)
        elif self.table is not None:
            self.table.set(f"ready/{self.process.rank}", "")
            self.hear()
        self.has_begun = True

    def _await(self, other: int, until: float) -> None:
        """Wait for another rank to have read its pairs."""
        while not self.table.check([f"ready/{other}"]):
            if self.table.check([f"left/{other}"]):
                raise RunError(f"rank {other} of this training ended; what it said shows why")
            if time.monotonic() > until:
                late = f"{LATE / 60:.0f} minutes after the first"
                raise RunError(f"rank {other} of this training has not read its pairs {late}; is it alive?")
            time.sleep(EVERY)

    def _others(self) -> range:
        return range(1, self.process.world or 1)


def exit_code(error: BaseException) -> int:
    """Return the exit code of a process that an error ends."""
    if isinstance(error, GraphContextError):
        return error.exit_code
    if isinstance(error, StopSignal):
        return 128 + error.number
    return 130 if isinstance(error, KeyboardInterrupt) else 1
