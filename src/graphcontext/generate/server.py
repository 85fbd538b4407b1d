"""A server of a language model for the length of a run: started at the first call, shared by all roles, then stopped.

It listens on loopback at a free port, with a key that nobody else knows. Its guard
(:mod:`graphcontext.generate.guard`) ends it when this process ends, even by kill -9.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from graphcontext.errors import InputError, RunError
from graphcontext.files import digest
from graphcontext.generate import llama_cpp_server, vllm_server
from graphcontext.generate.completions import CompletionClient, Endpoint
from graphcontext.generate.rate_limit import RateLimit

SERVERS: dict[str, ModuleType] = {"llama_cpp": llama_cpp_server, "vllm": vllm_server}
TIMEOUT = 1800.0  # seconds without a byte: a long answer on a slow machine says nothing until it is done
ENDS = 2.0  # seconds in which a server that let go of its port ends
RETRIES = 2
CONNECTIONS = 256  # at most; who asks decides how many requests there are at once
PORTS = 3  # tries: another process may take the port between our look and the server's
_TAKEN = ("address already in use", "couldn't bind", "could not bind", "failed to bind")
_RUNNING: dict[str, Server] = {}
_LOCK = threading.RLock()


def running(node: dict[str, Any]) -> Server:
    """Return the server of these settings; a process starts it once until :func:`stop_all`, even if it fails.

    Args:
        node: ``serve``, ``model``, ``revision``, ``adapter``, ``dtype``, ``quantization``, ``context_window``,
            ``device``.

    Raises:
        InputError: the package, command or weights are missing.
        RunError: it ended, or is not up in time; with the last lines of its log.
    """
    name = digest(node)
    with _LOCK:
        if name not in _RUNNING:
            _start(name, node)
        _RUNNING[name].examine()
        return _RUNNING[name]


def stop_all() -> None:
    """Stop every server that this process started."""
    with _LOCK:
        while _RUNNING:
            _RUNNING.popitem()[1].stop()


def versions() -> dict[str, str | None]:
    """Return kind → version of each server that runs."""
    with _LOCK:
        return {server.kind: server.module.version() for server in _RUNNING.values()}


def _start(name: str, node: dict[str, Any]) -> None:
    from graphcontext.train.world import number

    lacking = SERVERS[node["serve"]].lacks(node)
    if lacking is not None:
        raise InputError(f"{lacking[0]}: {lacking[1]}")
    if (number("WORLD_SIZE") or 1) > 1:
        raise InputError(f"llm.serve={node['serve']} in a group of processes: start one, the server uses all GPUs")
    atexit.unregister(stop_all)
    atexit.register(stop_all)
    print(f"starting {node['serve']} for {node['model']}", file=sys.stderr)
    for attempt in range(PORTS):
        server = _RUNNING[name] = Server(node)
        try:
            return server.wait()
        except RunError:
            if attempt == PORTS - 1 or not any(words in server.tail().lower() for words in _TAKEN):
                raise


class Server:
    """One running server.

    Args:
        node: see :func:`running`.
    """

    def __init__(self, node: dict[str, Any]):
        self.kind: str = node["serve"]
        self.module = SERVERS[self.kind]
        self.name, self.key = f"graphcontext-{secrets.token_hex(4)}", secrets.token_hex(16)
        self.answers_as = f"{self.name}-adapter" if node["adapter"] else self.name
        port = _free_port()
        self.failure: str | None = None
        self.root = f"http://127.0.0.1:{port}"
        self.window: int | None = node["context_window"]
        endpoint = Endpoint(f"{self.root}/v1", self.name, lambda: self.key, None, RETRIES, TIMEOUT, CONNECTIONS)
        self.completions = CompletionClient(endpoint, RateLimit(), self.broken)
        command, more = self.module.command(node, port, self.name)
        handle, path = tempfile.mkstemp(prefix=f"graphcontext-{self.kind}-", suffix=".log")
        self.log = Path(path)
        with os.fdopen(handle, "wb") as sink:
            self.process = subprocess.Popen(
                [sys.executable, "-P", str(Path(__file__).with_name("guard.py")), path, *command],
                stdin=subprocess.PIPE,
                stdout=sink,
                stderr=subprocess.STDOUT,
                env={**os.environ, **more, self.module.KEY: self.key},
                start_new_session=True,  # Ctrl-C reaches this process alone, which then stops the server
            )

    def wait(self) -> None:
        """Wait until it answers as the server that was started, and take its window where none was given.

        Raises:
            RunError: it ended, or is not up in time.
        """
        deadline = time.monotonic() + self.module.LIMIT
        while not self._is_up():
            self.examine()
            if time.monotonic() > deadline:
                self._fail(f"is not up after {self.module.LIMIT:.0f} s")
            time.sleep(0.1)

    def _is_up(self) -> bool:
        import httpx

        with contextlib.suppress(httpx.HTTPError, ValueError, KeyError, TypeError, AttributeError):
            with self.http() as client:
                if client.get("/health").status_code != 200:
                    return False
                listed = client.get("/v1/models").json()["data"]
            mine = next((m for m in listed if m.get("id") == self.name), None)
            if mine is not None:
                meta = mine.get("meta") or {}
                self.window = self.window or mine.get("max_model_len") or meta.get("n_ctx")
                return True
        return False

    def http(self) -> Any:
        """Return a client for requests besides completions."""
        import httpx

        headers = {"Authorization": f"Bearer {self.key}"}
        return httpx.Client(base_url=self.root, headers=headers, timeout=10.0, trust_env=False)

    def broken(self) -> None:
        """Examine it after a connection broke: a process that dies closes its port a moment before it has ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(ENDS)
        self.examine()

    def examine(self) -> None:
        """Raise a RunError with the last lines of the log where the server has ended."""
        code = self.process.poll()
        if self.failure is not None or code is not None:
            self._fail(f"ended with code {code}")

    def _fail(self, what: str) -> None:
        if self.failure is None:
            self._end()
            said = self.tail() or "nothing"
            self.failure = f"llm.serve={self.kind}: the server {what}; it said: {said} (all of it: {self.log})"
        raise RunError(self.failure)

    def tail(self, n: int = 3) -> str:
        """Return the last lines of the log in one."""
        try:
            lines = self.log.read_text(errors="replace").replace(self.key, "***").splitlines()
        except FileNotFoundError:
            return ""
        return " | ".join([line.strip() for line in lines if line.strip()][-n:])[-600:]

    def stop(self) -> None:
        """End it and forget its log, but for one that failed."""
        self._end()
        if self.failure is None:
            self.log.unlink(missing_ok=True)

    def _end(self) -> None:
        self.process.terminate()  # the guard, which ends the server
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdin.close()  # type: ignore[union-attr]


def _free_port() -> int:
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def missing(nodes: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield (what is missing, the mend) of each server that config nodes name, without repeats."""
    kinds = {str(node["serve"]): node for node in nodes if node.get("serve") in SERVERS}
    for kind, node in kinds.items():
        lacking = SERVERS[kind].lacks(node)
        if lacking is not None:
            yield lacking
