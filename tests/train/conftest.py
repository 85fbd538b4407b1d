"""A tiny data set and models for a whole session, and commands that start at once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.train import tiny

pytest.importorskip("pytorch_lightning")
pytest.importorskip("peft")


Blow = tuple[int, int, str]  # signal, optimiser step, where in it


class Command:
    """A command that runs as a fork of the warm process."""

    def __init__(self, warm: Warm, pid: int, log: Path) -> None:
        self.warm, self.pid, self.log = warm, pid, log
        self.code: int | None = None

    def poll(self) -> int | None:
        if self.code is None:
            self.code = self.warm.ask({"poll": self.pid})
        return self.code

    def send(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def wait(self, seconds: float = 300) -> int:
        """Return the exit code; a command that hangs is killed."""
        limit = time.monotonic() + seconds
        while (code := self.poll()) is None:
            if time.monotonic() > limit:
                os.killpg(self.pid, signal.SIGKILL)
                raise AssertionError(f"it hangs: {self.err}")
            time.sleep(0.01)
        return code

    @property
    def out(self) -> str:
        return self.log.with_suffix(".out").read_text()

    @property
    def err(self) -> str:
        return self.log.with_suffix(".err").read_text()


class Warm:
    """The warm process (:mod:`tests.train.warm`)."""

    def __init__(self, logs: Path) -> None:
        self.logs, self.n = logs, 0
        path = os.pathsep.join([str(tiny.SRC), str(tiny.SRC.parent)])
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "tests.train.warm"],
            env={**os.environ, "PYTHONPATH": path, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.is_ready = False

    def ask(self, question: dict[str, object]) -> int | None:
        if not self.is_ready:
            assert self.process.stdout.readline() == '"ready"\n'
            self.is_ready = True
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def start(self, folder: Path, *argv: str, blow: Blow | None = None, **environment: str) -> Command:
        """Start ``graphcontext`` in ``folder``; for ``blow`` see :mod:`tests.train.warm`."""
        folder.mkdir(parents=True, exist_ok=True)
        self.n += 1
        log = self.logs / f"{self.n:03d}"
        asked = {"argv": list(argv), "cwd": str(folder), "env": environment, "log": str(log), "blow": blow}
        return Command(self, self.ask(asked), log)

    def ranks(self, folder: Path, *argv: str, world: int = 2, blows: Sequence[Blow | None] = ()) -> list[Command]:
        """Start ``graphcontext`` as ``torchrun`` does, a process for each rank."""
        shared = {"WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
        shared |= {"TORCHELASTIC_RUN_ID": "none", "GROUP_RANK": "0", "LOCAL_WORLD_SIZE": str(world)}
        own = [{"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(world)]
        blows = [*blows, *[None] * (world - len(blows))]
        return [self.start(folder, *argv, blow=blow, **shared, **one) for one, blow in zip(own, blows)]

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


def free_port() -> int:
    import socket

    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.fixture(scope="session")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warm]:
    started = Warm(tmp_path_factory.mktemp("logs"))
    yield started
    started.close()


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save_data(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="session")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save_llama(tmp_path_factory.mktemp("models") / "llama")


@pytest.fixture
def words(data: Path, llama: Path):
    """Return the words of the tiny training and further ones."""
    return lambda *more: tiny.words(data, llama, *more)


def trained(warm: Warm, folder: Path, words: Sequence[str]) -> Path:
    """Train in one process; returns the folder of the result."""
    command = warm.start(folder, "train", "--quiet", *words)
    assert command.wait() == 0, command.err
    return tiny.folder_of(folder)
