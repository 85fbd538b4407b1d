"""What the first of several ranks tells the others before they train: whether to, and that it has made room."""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
import time
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self

from graphcontext.errors import GraphContextError, InputError, RunError
from graphcontext.train.spawn import EVERY, Others
from graphcontext.train.stop import StopSignal
from graphcontext.train.strategy import Calm, environment, parted
from graphcontext.train.world import process

DONE, TRAIN, BEGUN = "done", "train", "begun"  # words of the first rank; its last one may be an exit code
LATE = 30 * 60.0  # seconds after which a rank that has not come so far will not come
LINGER = 120.0  # seconds that the first rank stays for the others to hear its last word
MEETINGS = itertools.count()  # of this process: what was said at an earlier one does not count


class Ranks:
    """The ranks of a training, from where they meet until all of them train.

    Only the first looks whether the training is done and makes room for it: each for itself might find another
    answer, and wait for ever for those who went. They meet at the table of keys at ``MASTER_ADDR:MASTER_PORT`` at
    which their process group is formed later. Those that no launcher started are started when there is something to
    train. Where there is one rank nothing is to be told.

    Args:
        own: ranks that this process is to start; None where there are none, or a launcher started them.
    """

    def __init__(self, own: Others | None = None) -> None:
        self.process = process()
        self.own = own
        self.table: Any = None
        self.words = 0  # told or heard
        self.has_begun = False

    def __enter__(self) -> Self:
        """Meet those that a launcher started.

        Raises:
            RunError: the port is taken, or not all of them come.
        """
        if self.process.launcher:
            self._meet()
        return self

    def _meet(self) -> None:
        """Wait for all ranks, heeding signals: torch itself waits for half an hour without looking at any."""
        from torch import distributed

        self.process = process()
        with Calm():
            here = environment()
            os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = here.main_address, str(here.main_port)
        found: Future[Any] = Future()

        def meet() -> None:
            try:
                table, *_ = next(distributed.rendezvous("env://", self.process.rank, self.process.world or 1))
                found.set_result(table)
            except (RuntimeError, OSError, ValueError) as error:
                found.set_exception(error)

        threading.Thread(target=meet, daemon=True).start()
        while not found.done():
            self._look()
            time.sleep(EVERY)
        try:
            meeting = 0 if self.own is not None else next(MEETINGS)  # own ranks have a port, and a process, for each
            self.table = distributed.PrefixStore(f"graphcontext/{meeting}", found.result())
        except distributed.DistError as error:
            raise parted(error) from error

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self.own is not None:
            self.own.leave()
        if self.table is not None and not self.has_begun:
            with contextlib.suppress(RuntimeError):  # nobody is there any more
                if not self.is_first:
                    self.table.set(f"left/{self.process.rank}", "")
                else:  # the table ends with it
                    if error is not None:
                        self.tell(str(exit_code(error)))
                    self._linger()
        if self.own is not None:
            self.own.end(at_once=self.table is None)
        self.table = None

    def _linger(self) -> None:
        """Stay until the others have heard the last word, or have ended."""
        until, waiting = time.monotonic() + LINGER, set(self._others())
        while waiting and time.monotonic() < until:
            time.sleep(EVERY)
            gone = set() if self.own is None else self.own.gone
            waiting = {other for other in waiting - gone if not self.table.check([f"left/{other}"])}

    @property
    def are_several(self) -> bool:
        """Whether others wait for what this one tells, or the other way round."""
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

    def gather(self, key: str, said: str = "") -> dict[int, str]:
        """Say something to the first rank, which returns what all the others say.

        Raises:
            RunError: another one has ended.
            InputError: one that this process has started has, by wrong input.
        """
        if self.table is None:
            return {}
        if not self.is_first:
            self.table.set(f"{key}/{self.process.rank}", said)
            return {}
        until = time.monotonic() + LATE
        return {other: self._await(key, other, until) for other in self._others()}

    def begin(self, made_from: str) -> None:
        """Train from here on: the first rank has made room, all have read the same, and none has ended meanwhile.

        Args:
            made_from: names what was read.

        Raises:
            SystemExit: the first one has ended, and said why.
            RunError: another one has, or has read something else.
            InputError: one that this process has started has, by wrong input.
        """
        if self.own is not None:
            self.own.start()
            self._meet()
            self.gather("up")
            self.tell(TRAIN)
        for other, read in self.gather("ready", made_from).items():
            if read != made_from:
                mend = "is the working folder the same for all of them?"
                raise RunError(f"rank {other} has read other examples than the first rank: {mend}")
        if self.is_first:
            self.tell(BEGUN)
        else:
            self.hear()
        self.has_begun = True

    def trained(self) -> None:
        """Go on without the others: what is left is the first rank's alone."""
        if self.own is not None:
            self.own.leave()

    def _await(self, key: str, other: int, until: float) -> str:
        """Return what another rank says, when it does."""
        while not self.table.check([f"{key}/{other}"]):
            self._look()
            if self.table.check([f"left/{other}"]):
                raise RunError(f"rank {other} of this training ended; what it said shows why")
            if self.own is None and time.monotonic() > until:  # of its own it sees that they are alive
                late = f"{LATE / 60:.0f} minutes after the first"
                raise RunError(f"rank {other} of this training has not come so far {late}; is it alive?")
            time.sleep(EVERY)
        return self.table.get(f"{key}/{other}").decode()

    def _look(self) -> None:
        """Look whether one that this process has started has ended."""
        if self.own is not None and (ended := self.own.ended()) is not None:
            rank, code = ended
            kind = InputError if code == InputError.exit_code else RunError
            raise kind(f"rank {rank} of this training ended; what it said shows why")

    def _others(self) -> range:
        return range(1, self.process.world or 1)


def exit_code(error: BaseException) -> int:
    """Return the exit code of a process that an error ends."""
    if isinstance(error, GraphContextError):
        return error.exit_code
    if isinstance(error, StopSignal):
        return 128 + error.number
    return 130 if isinstance(error, KeyboardInterrupt) else 1
