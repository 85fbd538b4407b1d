"""A language model of the tests: slow where told, counting its calls, killing its process where told."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from graphcontext.generate.chat import ChatRequest, ChatResponse, Check, answer


class EchoLLM:
    """Answers with the last twelve words that it is asked.

    ``ECHO_LOG`` names a file that gets a line per request that was computed; with ``ECHO_KILL=N`` the process
    kills itself (SIGKILL) before request N + 1, with ``ECHO_CUT`` in the midst of writing a line.

    Args:
        model: none.
        batch_size: requests at once.
        seconds: each batch takes.
        shout: answer in upper case.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset({"batch_size", "seconds"})
    workers: ClassVar[int] = 1

    def __init__(self, model: str | None, batch_size: int, seconds: float, shout: bool) -> None:
        self.model, self.batch_size, self.seconds, self.shout = model, batch_size, seconds, shout
        self.workspace: Any = None

    def bind(self, workspace: Any) -> None:
        self.workspace = workspace

    def settings(self) -> dict[str, Any]:
        return {"backend": ["EchoLLM", self.version], "shout": self.shout}

    def draws_random(self) -> bool:
        return False

    def length(self, request: ChatRequest) -> int:
        return sum(len(m["content"]) for m in request.messages)

    def chat(
        self, requests: Sequence[ChatRequest], role: str, max_new_tokens: int, check: Check | None = None
    ) -> list[ChatResponse]:
        return answer(self, requests, role, max_new_tokens, check)

    def complete(
        self, requests: Sequence[ChatRequest], seeds: Sequence[int], max_new_tokens: int
    ) -> list[ChatResponse]:
        time.sleep(self.seconds)
        log = Path(os.environ["ECHO_LOG"]) if "ECHO_LOG" in os.environ else None
        for request in requests:
            if log is None:
                continue
            done = log.read_text().count("\n") if log.exists() else 0
            if str(done) == os.environ.get("ECHO_KILL"):
                self._die()
            with log.open("a") as stream:
                stream.write(f"{request.item}\n")
        return [self._echo(request) for request in requests]

    def _echo(self, request: ChatRequest) -> ChatResponse:
        words = request.messages[-1]["content"].split()[-12:]
        text = " ".join(words)
        return ChatResponse(request.item, text.upper() if self.shout else text, "stop", n_tokens=len(words))

    def _die(self) -> None:
        if "ECHO_CUT" in os.environ:
            with self.workspace.calls.path.open("ab") as stream:
                stream.write(b'{"role": "answer", "item": "12", "fingerprint": "abc", "mess')
        os.kill(os.getpid(), signal.SIGKILL)
