"""A tiny Llama, and a stub that lists what it is asked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from graphcontext.generate import causal_model
from graphcontext.generate.chat import ChatRequest, ChatResponse
from graphcontext.store import CallLog, Store, Workspace
from tests.tiny_models import save_tiny_llama


@pytest.fixture(scope="session")
def tiny_llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_llama(tmp_path_factory.mktemp("tiny") / "llama")


@pytest.fixture
def make_tiny_llama(tmp_path: Path) -> Callable[..., Path]:
    return lambda **options: save_tiny_llama(tmp_path / "llama", **options)


@pytest.fixture(autouse=True)
def _free_models() -> Any:
    yield
    causal_model.free()


class StubLLM:
    """Answers every request with ``reply(request)``; ``asked`` lists what reached it."""

    def __init__(self, reply: Callable[[ChatRequest], ChatResponse], batch_size: int = 1, workers: int = 1):
        self.reply, self.batch_size, self.workers = reply, batch_size, workers
        self.workspace: Workspace | None = None
        self.model, self.temperature = "stub", 0.0
        self.asked: list[str] = []
        self.batches: list[list[str]] = []
        self._lock = threading.Lock()

    def bind(self, workspace: Workspace) -> None:
        self.workspace = workspace

    def settings(self) -> dict[str, Any]:
        return {"model": self.model, "temperature": self.temperature}

    def draws_random(self) -> bool:
        return self.temperature > 0

    def length(self, request: ChatRequest) -> int:
        return sum(len(m["content"]) for m in request.messages)

    def complete(
        self, requests: Sequence[ChatRequest], seeds: Sequence[int], max_new_tokens: int
    ) -> list[ChatResponse]:
        with self._lock:
            self.batches.append([r.item for r in requests])
        responses = []
        for request in requests:
            with self._lock:
                self.asked.append(request.item)
            responses.append(self.reply(request))
        return responses

    def chat(self, requests, role, max_new_tokens, check=None):
        from graphcontext.generate.chat import answer

        return answer(self, requests, role, max_new_tokens, check)


@pytest.fixture
def stub() -> type[StubLLM]:
    return StubLLM


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(Store(tmp_path / "store"), CallLog(tmp_path / "calls.jsonl"))
