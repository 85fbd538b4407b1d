"""Chat with a language model behind any OpenAI-compatible server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from graphcontext.data.tokenizer import WORDS, ModelTokenizer
from graphcontext.errors import InputError
from graphcontext.generate.chat import ChatRequest, ChatResponse, Check, answer, check_decoding
from graphcontext.generate.completions import CompletionClient, Endpoint, check_address, check_patience, read_key
from graphcontext.generate.rate_limit import shared_limit
from graphcontext.overrides import check_secrets

OPENAI = "https://api.openai.com/v1"


class OpenAILLM:
    """A model behind ``POST base_url/chat/completions``: OpenAI, llama.cpp, vLLM and others.

    The key is read from the environment when a request is sent, never stored, logged or put into an error; an
    answer that repeats it shows ``***``. Faults and waiting are :mod:`graphcontext.generate.completions`'. What was
    answered is in the call log before the next one is asked.

    What names the model in a result's key is ``model`` and ``base_url``: any other address, another port too, is taken
    for another model, since nothing but the user knows what a server at an address runs. ``served_as`` says what it
    runs, in a word of the user's own; it then stands in the key and the address does not.

    Args:
        model: as the server names it.
        base_url: up to and with ``/v1``, without user, query or fragment, which could hold a key.
        api_key_env: name of the environment variable with the key; null sends none. Neither is in a result's key.
        temperature: 0 is greedy, as far as the server keeps it.
        top_p: in (0, 1].
        parameters: number of weights where known, for planning (execution).
        plan: prices and speeds, for planning (execution).
        tokenizer: ``words``, or a folder or hub name: what ``tokenizer=llm`` and the rate limit count with (execution).
        requests_per_minute: at most, by all models of one server, key and limit together, 1 and more; null is no limit
            (execution).
        tokens_per_minute: prompt and answer, 1 and more; null is no limit (execution).
        max_retries: further tries after a fault that may pass, up to 1000 (execution).
        timeout: seconds without a byte, up to a day; five times that for a whole reply (execution).
        workers: requests at once (execution).
        served_as: what the server runs (weights, quantisation), such as ``smollm2-q4_1``: a new port or host finds
            the answers of the old one. Null: the address names it.

    Raises:
        InputError: a value that is not allowed; at the first call, a key that is not set or is none.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset(
        {"parameters", "plan", "tokenizer", "requests_per_minute", "tokens_per_minute"}
        | {"max_retries", "timeout", "workers"}
    )
    neutral: ClassVar[dict[str, Any]] = {"served_as": None}
    batch_size: ClassVar[int] = 1

    def __init__(
        self,
        model: str,
        base_url: str = OPENAI,
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
        served_as: str | None = None,
    ) -> None:
        check_secrets({"llm": {"base_url": base_url, "api_key_env": api_key_env}})  # both are written to files
        check_address("llm.base_url", base_url, "http(s)://HOST/v1")
        if not model.strip():
            raise InputError("llm.model is blank; allowed: a model's name, as the server calls it")
        check_decoding(temperature, top_p)
        rates = {"requests_per_minute": requests_per_minute, "tokens_per_minute": tokens_per_minute}
        check_patience("llm", max_retries, timeout, **rates)
        if workers < 1:
            raise InputError(f"llm.workers={workers}; allowed: 1 and more")
        if served_as is not None and not served_as.strip():
            raise InputError("llm.served_as is blank; allowed: a name of what the server runs, or null")
        self.model, self.base_url, self.api_key_env = model, base_url.rstrip("/"), api_key_env
        self.temperature, self.top_p = temperature, top_p
        self.parameters, self.plan = parameters, plan or {}
        self.workers, self.served_as = workers, served_as
        self.tokenizer = ModelTokenizer(tokenizer)
        self.limit = shared_limit(self.base_url, api_key_env, requests_per_minute, tokens_per_minute)
        endpoint = Endpoint(self.base_url, model, self._key, api_key_env, max_retries, timeout, workers)
        self._client = CompletionClient(endpoint, self.limit)
        self.workspace: Any = None

    def bind(self, workspace: Any) -> None:
        """Use the run's call log and seeds."""
        self.workspace = workspace

    @classmethod
    def identity(cls, config: dict[str, Any]) -> dict[str, Any]:
        """Return the address as it is asked, none where ``served_as`` names what is served, and no key's variable."""
        address = config.get("base_url", OPENAI).rstrip("/") if config.get("served_as") is None else None
        return {"base_url": address, "api_key_env": None}

    @classmethod
    def draws(cls, config: dict[str, Any]) -> bool:
        """Return whether decoding draws random numbers."""
        return config.get("temperature", 0.0) > 0

    def draws_random(self) -> bool:
        return self.temperature > 0

    def settings(self) -> dict[str, Any]:
        """Return what decides an answer besides the messages."""
        decoding = {"temperature": self.temperature, "top_p": self.top_p}
        served = {"url": self.base_url} if self.served_as is None else {"served_as": self.served_as}
        return {"backend": ["OpenAILLM", self.version], "model": self.model, **served, **decoding}

    def chat(
        self, requests: Sequence[ChatRequest], role: str, max_new_tokens: int, check: Check | None = None
    ) -> list[ChatResponse]:
        """Answer each request, by index (:func:`graphcontext.generate.chat.answer`).

        Raises:
            InputError: the key is not set, or is none.
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
        return [self._complete(request, seed, max_new_tokens) for request, seed in zip(requests, seeds, strict=True)]

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
        return self._client.ask(request.item, "chat/completions", body, expected)

    def _key(self) -> str | None:
        if self.api_key_env is None:
            return None
        key = read_key(self.api_key_env)
        if key is None:
            unset = f"llm {self.model}: environment variable {self.api_key_env} is not set"
            raise InputError(f"{unset}; export it, or llm.api_key_env=null for a server that needs none")
        return key
