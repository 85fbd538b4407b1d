"""Requests of a model to the server that this process started for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from graphcontext.errors import RunError
from graphcontext.generate import server
from graphcontext.generate.causal_model import without_system
from graphcontext.generate.chat import ChatRequest, ChatResponse, too_long


class ServedModel:
    """A model behind a server of ours.

    Prompts go as token ids, rendered by the model's own chat template as they are without a server. Those of a GGUF
    file alone, without a model folder, are rendered by the server.

    Args:
        node: the settings that the server is started with (:func:`graphcontext.generate.server.running`).
        system_role: whether the chat template has a system role.
        encode: renders a prompt as token ids; None lets the server do it.
    """

    def __init__(
        self, node: dict[str, Any], system_role: bool, encode: Callable[[ChatRequest], list[int]] | None
    ) -> None:
        self.node, self.system_role, self.encode = node, system_role, encode
        self._rendering = threading.Lock()
        self.module = server.SERVERS[node["serve"]]

    def start(self) -> None:
        """Start the server unless it runs.

        Raises:
            InputError: the package, command or weights are missing.
            RunError: it ended, or is not up in time.
        """
        server.running(self.node)

    def complete(self, request: ChatRequest, max_new_tokens: int, decoding: dict[str, Any]) -> ChatResponse:
        """Answer one request; a prompt longer than the window fails alone.

        Raises:
            RunError: the server ended.
        """
        serving = server.running(self.node)
        with self._rendering:  # a tokenizer serves one thread at a time
            ids = self._encoded(serving, request) if self.encode is None else self.encode(request)
        if serving.window is not None and len(ids) + max_new_tokens > serving.window:
            return too_long(request.item, len(ids), max_new_tokens, serving.window)
        body = {"model": serving.answers_as, "prompt": ids, "max_tokens": max_new_tokens, **decoding}
        return serving.completions.ask(request.item, "completions", body, 0)

    def _encoded(self, serving: server.Server, request: ChatRequest) -> list[int]:
        import httpx

        messages = list(request.messages) if self.system_role else without_system(request.messages)
        try:
            with serving.http() as client:
                prompt = client.post("/apply-template", json={"messages": messages}).json()["prompt"]
                told = {"content": prompt, "add_special": True, "parse_special": True}
                return client.post("/tokenize", json=told).json()["tokens"]
        except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
            serving.examine()
            reason = f"{type(error).__name__}: {error}"
            raise RunError(f"llm.serve={self.node['serve']}: the prompt cannot be rendered ({reason})") from error
