"""Chat with a language model behind any OpenAI-compatible server."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from typing import Any, ClassVar

from graphcontext.data.tokenizer import WORDS, ModelTokenizer
from graphcontext.errors import InputError, RunError
from graphcontext.generate.chat import ChatRequest, ChatResponse, Check, answer
from graphcontext.generate.hf import check_decoding
from graphcontext.generate.rate_limit import retry_after, shared_limit

CONNECT = 4.0  # seconds to connect in, at most
LONGEST_WAIT = 600.0  # seconds; a server that asks for more gets no further try for this item
REFUSED = {401: "refuses the key", 403: "forbids the request", 404: "does not know the address or model"}
RETRIED = frozenset({408, 409, 429, 500, 502, 503, 504, 529})


class OpenAILLM:
    """A model behind ``POST base_url/chat/completions``: OpenAI, llama.cpp, vLLM and others.

    The key is read from the environment when a request is sent, never stored, logged or put into an error.
    429 waits as long as Retry-After says, all workers with it; 5xx, cut JSON and silence are tried again;
    a refused key, or a server that was never there, ends the run at once. What was answered is in the call log
    before the next one is asked.

    Args:
        model: as the server names it.
        base_url: up to and with ``/v1``, without user, query or fragment, which could hold a key.
        api_key_env: name of the environment variable with the key; null sends none.
        temperature: 0 is greedy, as far as the server keeps it.
        top_p: in (0, 1].
        parameters: number of weights where known, for planning (execution).
        plan: prices and speeds, for planning (execution).
        tokenizer: ``words``, or a folder or hub name: what ``tokenizer=llm`` and the rate limit count with (execution).
        requests_per_minute: at most, by all models of one server, key and limit together; null is no limit (execution).
        tokens_per_minute: prompt and answer; null is no limit (execution).
        max_retries: further tries after a fault that may pass (execution).
        timeout: seconds without a byte (execution).
        workers: requests at once (execution).

    Raises:
        InputError: a value that is not allowed; at the first call, a key that is not set.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset(
        {"parameters", "plan", "tokenizer", "requests_per_minute", "tokens_per_minute"}
        | {"max_retries", "timeout", "workers"}
    )
    batch_size: ClassVar[int] = 1

    def __init__(
        self,
        model: str,
        base_url: str = "https://api.openai.com/v1",
        api_key_env: str | None = "OPENAI_API_KEY",
        temperature: float = 0.0,
        top_p: float = 1.0,
        parameters: int | None = None,
        plan: dict[str, Any] | None = None,
        tokenizer: str = WORDS,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        max_retries: int = 5,
        timeout: float = 120.0,
        workers: int = 8,
    ) -> None:
        if any(mark in base_url for mark in "@?#"):  # settings() names the address: no key may be in it
            kept = "a user, query or fragment, which may be a key and is not shown here"
            raise InputError(f"llm.base_url has {kept}; allowed: http(s)://HOST/v1")
        if not base_url.startswith(("http://", "https://")):
            raise InputError(f"llm.base_url={base_url}; allowed: http(s)://HOST/v1")
        check_decoding(temperature, top_p)
        if max_retries < 0 or workers < 1 or timeout <= 0:
            got = f"max_retries={max_retries}, workers={workers}, timeout={timeout}"
            raise InputError(f"llm: {got}; allowed: max_retries ≥ 0, workers ≥ 1, timeout > 0")
        self.model, self.base_url, self.api_key_env = model, base_url.rstrip("/"), api_key_env
        self.temperature, self.top_p = temperature, top_p
        self.parameters, self.plan = parameters, plan or {}
        self.max_retries, self.timeout, self.workers = max_retries, timeout, workers
        self.tokenizer = ModelTokenizer(tokenizer)
        self.limit = shared_limit(self.base_url, api_key_env, requests_per_minute, tokens_per_minute)
        self.workspace: Any = None
        self._client: Any = None
        self._starting = threading.Lock()
        self._reached = False

    def bind(self, workspace: Any) -> None:
        """Use the run's call log and seeds."""
        self.workspace = workspace

    @classmethod
    def draws(cls, config: dict[str, Any]) -> bool:
        """Return whether decoding draws random numbers."""
        return config.get("temperature", 0.0) > 0

    def draws_random(self) -> bool:
        return self.temperature > 0

    def settings(self) -> dict[str, Any]:
        """Return what decides an answer besides the messages."""
        decoding = {"temperature": self.temperature, "top_p": self.top_p}
        return {"backend": ["OpenAILLM", self.version], "model": self.model, "url": self.base_url, **decoding}

    def chat(
        self, requests: Sequence[ChatRequest], role: str, max_new_tokens: int, check: Check | None = None
    ) -> list[ChatResponse]:
        """Answer each request, by index (:func:`graphcontext.generate.chat.answer`).

        Raises:
            InputError: the key is not set.
            RunError: the server refuses the key or the model, cannot be reached, or the quota is used up.
        """
        return answer(self, requests, role, max_new_tokens, check)

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens by ``tokenizer``: an estimate where that is ``words``."""
        return self.tokenizer.count(text)

    def length(self, request: ChatRequest) -> int:
        """Return the number of characters."""
        return sum(len(m["content"]) for m in request.messages)

    def complete(
        self, requests: Sequence[ChatRequest], seeds: Sequence[int], max_new_tokens: int
    ) -> list[ChatResponse]:
        """Answer requests one after the other; a fault that stays is that item's failure."""
        return [
            self._complete(request, seed, max_new_tokens)
            for request, seed in zip(requests, seeds, strict=True)
        ]

    def _complete(self, request: ChatRequest, seed: int, max_new_tokens: int) -> ChatResponse:
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [dict(m) for m in request.messages],
            "temperature": self.temperature,
            "top_p": self.top_p,
            "max_tokens": max_new_tokens,
        }
        if self.draws_random():
            body["seed"] = seed % 2**31
        expected = sum(self.count_tokens(m["content"]) for m in request.messages) + max_new_tokens
        start = time.perf_counter()
        reason = ""
        for attempt in range(self.max_retries + 1):
            self.limit.wait(expected)
            response, reason, pause = self._post(request.item, body)
            if response is not None:
                return response
            if pause is None:
                break
            if attempt < self.max_retries:
                self.limit.pause(pause if pause > 0 else min(30.0, 0.5 * 2**attempt))
        seconds = time.perf_counter() - start
        return ChatResponse(request.item, "", seconds=seconds, status="failed", reason=reason)

    def _post(self, item: str, body: dict[str, Any]) -> tuple[ChatResponse | None, str, float | None]:
        """Send one request → answer, or a reason and seconds to wait (0: our choice, None: no more tries)."""
        import httpx

        start = time.perf_counter()
        try:
            reply = self._http().post(f"{self.base_url}/chat/completions", json=body, headers=self._headers())
        except httpx.HTTPError as error:
            reason = self._clean(f"{type(error).__name__}: {error}")
            self._reached |= not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
            if not self._reached:  # nobody was ever there: a further try would only hide it
                raise RunError(f"no answer from {self.base_url}: {reason}; is the server up?") from error
            return None, reason, 0.0
        self._reached = True
        status, named = reply.status_code, f"HTTP {reply.status_code}"
        if status in REFUSED:
            key = f" (key from {self.api_key_env})" if self.api_key_env else ""
            raise RunError(f"{self.base_url} {REFUSED[status]}: {named}, model {self.model}{key}")
        if status == 429 and "insufficient_quota" in reply.text:
            raise RunError(f"{self.base_url}: the quota of the key in {self.api_key_env} is used up")
        if status in RETRIED:
            pause = retry_after(reply.headers.get("retry-after"))
            if pause > LONGEST_WAIT:
                return None, f"{named}, the server asks to wait {pause:.0f} s", None
            return None, named, pause
        if status != 200:
            return None, self._clean(f"{named}: {reply.text}"), None
        try:
            answered = _read(item, reply.json(), time.perf_counter() - start)
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            return None, f"no chat completion in the reply ({type(error).__name__})", 0.0
        return answered, "", None

    def _http(self) -> Any:
        with self._starting:
            if self._client is None:
                import httpx

                limits = httpx.Limits(max_connections=self.workers)
                timeout = httpx.Timeout(self.timeout, connect=min(self.timeout, CONNECT))
                self._client = httpx.Client(timeout=timeout, limits=limits)
            return self._client

    def _key(self) -> str | None:
        if self.api_key_env is None:
            return None
        key = os.environ.get(self.api_key_env, "").strip()
        if not key:
            unset = f"llm {self.model}: environment variable {self.api_key_env} is not set"
            raise InputError(f"{unset}; export it, or llm.api_key_env=null for a server that needs none")
        return key

    def _headers(self) -> dict[str, str]:
        key = self._key()
        return {} if key is None else {"Authorization": f"Bearer {key}"}

    def _clean(self, text: str) -> str:
        """Return one short line without the key."""
        key = self._key()
        line = " ".join(text.split())
        return (line.replace(key, "***") if key else line)[:300]


def _read(item: str, reply: dict[str, Any], seconds: float) -> ChatResponse:
    choice = reply["choices"][0]
    text = choice["message"]["content"] or ""
    finish = choice.get("finish_reason")
    usage = reply.get("usage") or {}
    return ChatResponse(
        item=item,
        text=text.strip(),
        finish=finish if finish in ("stop", "length") else None,
        n_prompt_tokens=int(usage.get("prompt_tokens", 0)),
        n_tokens=int(usage.get("completion_tokens", 0)),
        seconds=seconds,
    )
