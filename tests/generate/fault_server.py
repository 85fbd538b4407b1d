"""An OpenAI-compatible server on a real loopback socket that answers, and fails, as each item's script says."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Asked:
    """One request: the item is the last word of what was asked."""

    item: str
    headers: dict[str, str]
    body: dict[str, Any]


Reply = Callable[[socket.socket, Asked], None]


class FaultServer:
    """Answers each item with the next of its ``scripts``, where there is one left, else with ``usual``."""

    def __init__(self, usual: Reply | None = None) -> None:
        self.usual = usual or answer()
        self.scripts: dict[str, list[Reply]] = defaultdict(list)
        self.asked: list[Asked] = []
        self.released = threading.Event()  # ends hangs and drips
        self._lock = threading.Lock()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}/v1"
        threading.Thread(target=self._listen, daemon=True).start()

    @property
    def counts(self) -> Counter[str]:
        """Item → how often it was asked."""
        return Counter(a.item for a in self.asked)

    def close(self) -> None:
        self.released.set()
        self._listening.close()

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream:  # both closed: only then the socket is
            while (asked := _read(stream)) is not None:
                with self._lock:
                    self.asked.append(asked)
                    script = self.scripts[asked.item]
                    reply = script.pop(0) if script else self.usual
                try:
                    reply(connection, asked)
                except OSError:
                    return


def _read(stream: Any) -> Asked | None:
    try:
        start = stream.readline()
        headers = {}
        while line := stream.readline().strip():
            name, _, value = line.decode().partition(":")
            headers[name.lower()] = value.strip()
        body = json.loads(stream.read(int(headers.get("content-length", 0))) or b"{}")
    except (OSError, ValueError):
        return None
    if not start:
        return None
    asked = body["messages"][-1]["content"] if "messages" in body else str(body.get("prompt", ""))
    return Asked((asked.split() or [""])[-1], headers, body)


def completion(text: str | None, finish: str | None = "stop") -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}
    return {"object": "chat.completion", "choices": [choice], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}


def head(status: int, headers: dict[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} because", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode()


def say(status: int = 200, content: bytes | dict[str, Any] | list[Any] | str = b"", **headers: str) -> Reply:
    """Reply with a status and a body; headers are written with ``_`` for ``-``."""
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    more = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda connection, _: connection.sendall(head(status, {"Content-Length": str(len(body)), **more}) + body)


def answer(text: str | None = "{item}", finish: str | None = "stop") -> Reply:
    """Reply with a completion whose text names the item."""

    def reply(connection: socket.socket, asked: Asked) -> None:
        said = None if text is None else text.replace("{item}", asked.item)
        say(200, completion(said, finish))(connection, asked)

    return reply


def cut(n: int = 19) -> Reply:
    """Send a whole reply of 200 whose JSON is cut."""
    return say(200, json.dumps(completion("never whole")).encode()[:n])


def broken_off(connection: socket.socket, asked: Asked) -> None:
    """Promise more bytes than are sent, and close."""
    connection.sendall(head(200, {"Content-Length": "999"}) + b'{"choices": [{"mess')
    connection.shutdown(socket.SHUT_RDWR)


def reset(connection: socket.socket, asked: Asked) -> None:
    """Reset the connection (RST) instead of a reply."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    raise ConnectionResetError


def hang(server: FaultServer) -> Reply:
    """Say nothing until the test is over."""

    def reply(connection: socket.socket, asked: Asked) -> None:
        server.released.wait(30)
        raise OSError("hung")

    return reply


def drip(server: FaultServer, seconds: float = 0.02) -> Reply:
    """Send a blank every few milliseconds, for ever."""

    def reply(connection: socket.socket, asked: Asked) -> None:
        connection.sendall(head(200, {"Content-Length": "1000000"}))
        while not server.released.wait(seconds):
            connection.sendall(b" ")

    return reply


def huge(mib: int) -> Reply:
    """Send an answer of so many MiB."""

    def reply(connection: socket.socket, asked: Asked) -> None:
        block = b"x" * 2**20
        connection.sendall(head(200, {"Content-Length": str(mib * 2**20)}))
        for _ in range(mib):
            connection.sendall(block)

    return reply


def chunked(connection: socket.socket, asked: Asked) -> None:
    """Send a completion in chunks of seven bytes."""
    body = json.dumps(completion(asked.item)).encode()
    connection.sendall(head(200, {"Transfer-Encoding": "chunked"}))
    for start in range(0, len(body), 7):
        part = body[start : start + 7]
        connection.sendall(f"{len(part):x}\r\n".encode() + part + b"\r\n")
        time.sleep(0.001)
    connection.sendall(b"0\r\n\r\n")
