"""The other processes of a training on this machine, started by the first one where no launcher has."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Self

EVERY = 0.1  # seconds between two looks
GRACE = 60.0  # seconds that a process has to end after another one has, or is told to


class Others:
    """Processes of ranks 1 and more, each of which trains what the first does.

    They find each other by torchrun's variables, which this process has from the start on too.

    Args:
        config: resolved, composed with ``primary="train"``.
        root: the working folder.
        name: of the experiment.
        world: processes, this one among them.
    """

    def __init__(self, config: dict[str, Any], root: Path | str, name: str, world: int) -> None:
        self.given = {"config": config, "root": str(Path(root).resolve()), "name": name}
        self.world = world
        self.processes: list[subprocess.Popen[str]] = []
        self.are_left = threading.Event()
        self.n_threads = 0  # of torch, before the cores were shared

    def start(self) -> Self:
        """Start them."""
        import torch

        shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(self.world)}
        os.environ.update({**shared, "RANK": "0", "LOCAL_RANK": "0"})
        kept = {k: v for k, v in os.environ.items() if not k.startswith("TORCHELASTIC_")}
        if "OMP_NUM_THREADS" not in kept:  # the cores are shared
            share = max(1, len(os.sched_getaffinity(0)) // self.world)
            self.n_threads = torch.get_num_threads()
            torch.set_num_threads(share)
            kept["OMP_NUM_THREADS"] = str(share)
        kept["PYTHONPATH"] = os.pathsep.join(os.path.abspath(path) for path in sys.path)  # of classes of the user's own
        command = [sys.executable, "-P", "-m", "graphcontext.train.spawn"]
        for rank in map(str, range(1, self.world)):
            seat = {**kept, "RANK": rank, "LOCAL_RANK": rank}
            process = subprocess.Popen(command, env=seat, stdin=subprocess.PIPE, text=True)
            self.processes.append(process)
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError):  # it has ended, as is seen where it is waited for
                process.stdin.write(json.dumps(self.given))
                process.stdin.close()
        threading.Thread(target=self._watch, daemon=True).start()
        return self

    @property
    def gone(self) -> set[int]:
        """The ranks that have ended."""
        return {rank for rank, process in enumerate(self.processes, 1) if process.poll() is not None}

    def ended(self) -> tuple[int, int] | None:
        """Return rank and exit code of the first one that has ended by itself, None while all of them run."""
        codes = [(rank, process.poll()) for rank, process in enumerate(self.processes, 1)]
        return next(((rank, code) for rank, code in codes if code is not None), None)

    def leave(self) -> None:
        """Wait for them no more: their end is no fault."""
        self.are_left.set()

    def end(self, at_once: bool = False) -> None:
        """Wait for them to end, and end those that do not; ``at_once`` all of them, which nothing else can tell."""
        self.leave()
        until = time.monotonic() + (0 if at_once else GRACE)
        try:
            while len(self.gone) < len(self.processes) and time.monotonic() < until:
                time.sleep(EVERY)
        finally:  # by a signal, too
            self._kill()
            if self.n_threads:
                import torch

                torch.set_num_threads(self.n_threads)

    def _kill(self) -> None:
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()

    def _watch(self) -> None:
        """End this process where another has ended by a fault, and this one waits for it without end, as NCCL does."""
        while not self.are_left.wait(EVERY):
            failed = [(rank, p.returncode) for rank, p in enumerate(self.processes, 1) if p.poll()]
            if failed and not self.are_left.wait(GRACE):
                rank, code = failed[0]
                os.write(2, f"error: rank {rank} of this training ended with exit code {code}\n".encode())
                self._kill()
                os._exit(1)


def free_port() -> int:
    """Return a port of this machine that nobody listens at."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def end_with(parent: int) -> None:
    """End this process when the one that started it has ended: it may wait where nothing tells it so."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def main() -> int:
    """Train as one of them, by what the first one writes to stdin; only faults are said."""
    from graphcontext.errors import RunError

    threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()

    def act() -> int:
        try:
            from graphcontext.train.fit import train

            text = sys.stdin.read()
            if not text:
                raise RunError("this process is one of a training whose first process ended")
            given = json.loads(text)
            train(given["config"], given["root"], True, given["name"])
        except KeyboardInterrupt:  # the first one says so
            return 128 + signal.SIGINT
        return 0

    from graphcontext import cli

    return cli.guarded(act)


if __name__ == "__main__":
    sys.exit(main())
