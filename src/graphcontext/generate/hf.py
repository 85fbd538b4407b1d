"""Chat with a causal language model on this machine, through transformers."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from graphcontext import gguf_files, models
from graphcontext.data.tokenizer import ModelTokenizer
from graphcontext.errors import InputError, RunError, did_you_mean
from graphcontext.generate.causal_model import QUANTIZATIONS, CausalModel, load
from graphcontext.generate.chat import ChatRequest, ChatResponse, Check, answer, check_decoding, too_long
from graphcontext.generate.served import ServedModel
from graphcontext.generate.server import SERVERS

STARTED_WITH = ("serve", "model", "revision", "adapter", "quantization", "context_window", "device")
DTYPES = ("auto", "float32", "bfloat16", "float16")


class HuggingFaceLLM:
    """A causal language model with a chat template, batched, left-padded and greedy by default.

    Greedy decoding takes argmax p(w | prompt). With a temperature T > 0 it draws w from the nucleus of
    softmax(logits / T) that holds ``top_p`` of the mass, each request from a random stream of its own.

    Args:
        model: embedded name (``smollm2``), local folder, or hub name.
        revision: hub commit; null for embedded models and folders.
        adapter: folder of a LoRA adapter (PEFT) or of a tuned model, a training (``llm.adapter=EXPERIMENT``), or null
            for the base model.
        dtype: ``auto`` is bfloat16 on a GPU and float32 on a CPU, ``float32``, ``bfloat16`` or ``float16``.
        quantization: ``none``, ``4bit`` (NF4, double quantisation) or ``8bit``, by bitsandbytes.
        temperature: 0 is greedy.
        top_p: in (0, 1]; read only where the temperature is above 0.
        repetition_penalty: ≥ 1; the logit of a token that the answer holds already is divided by it (multiplied
            where negative). 1 is off; the prompt's tokens do not count.
        context_window: prompt and answer together, in tokens; null means what the model says.
        system_role: whether the chat template has a system role; if not, the system text opens the first
            user message. Without any template the messages are joined by blank lines and end in "Answer:".
        parameters: number of weights, for planning (execution).
        plan: further planning figures: layers, kv_heads, head_dim, speeds (execution).
        batch_size: requests per forward pass (execution). A batch is padded to its longest prompt, which can
            change a logit in its last bits and so, rarely, a greedy answer.
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:N`` (execution). ``auto`` spreads over the GPUs what one
            cannot hold; in a process group each rank loads on its own GPU.
        serve: null loads the model into this process; ``llama_cpp`` or ``vllm`` starts that server for the run, for
            all roles with equal settings. llama.cpp reads a GGUF file (``dtype`` is the file's then) and computes one
            request at a time; vLLM computes ``batch_size`` at once. Their repetition penalty counts prompt tokens too.

    Raises:
        InputError: a value that is not allowed; at the first call also a model without weights here, a
            missing extra, or an adapter that does not fit.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset({"parameters", "plan", "batch_size", "device"})
    neutral: ClassVar[dict[str, Any]] = {"serve": None}
    trainable: ClassVar[bool] = True

    def __init__(
        self,
        model: str,
        revision: str | None = None,
        adapter: Any = None,
        dtype: str = "auto",
        quantization: str = "none",
        temperature: float = 0.0,
        top_p: float = 1.0,
        repetition_penalty: float = 1.0,
        context_window: int | None = None,
        system_role: bool = True,
        parameters: int | None = None,
        plan: dict[str, Any] | None = None,
        batch_size: int = 8,
        device: str = "auto",
        serve: str | None = None,
    ) -> None:
        if dtype not in DTYPES:
            raise InputError(f"llm.dtype={dtype}{did_you_mean(dtype, DTYPES)}")
        if quantization not in QUANTIZATIONS:
            raise InputError(f"llm.quantization={quantization}{did_you_mean(quantization, QUANTIZATIONS)}")
        check_decoding(temperature, top_p)
        if repetition_penalty < 1:
            raise InputError(f"llm.repetition_penalty={repetition_penalty}; allowed: 1 and more")
        if batch_size < 1:
            raise InputError(f"llm.batch_size={batch_size}; allowed: 1 and more")
        if device not in ("auto", "cpu", "cuda") and not device.startswith("cuda:"):
            raise InputError(f"llm.device={device}; allowed: auto, cpu, cuda, cuda:N")
        if serve is not None and serve not in SERVERS:
            raise InputError(f"llm.serve={serve}{did_you_mean(serve, SERVERS)}, or null: no server")
        if adapter is not None and not isinstance(adapter, str) and not hasattr(type(adapter), "folder"):
            raise InputError(f"llm.adapter={adapter!r}; allowed: a folder, a training experiment, or null")
        self.model, self.revision, self.trained = model, revision, adapter or None
        self.dtype, self.quantization, self.device = dtype, quantization, device
        self.temperature, self.top_p, self.repetition_penalty = temperature, top_p, repetition_penalty
        self.context_window, self.system_role = context_window, system_role
        self.parameters, self.plan, self.serve = parameters, plan or {}, serve
        self.batch_size, self.workers = (batch_size, 1) if serve is None else (1, batch_size if serve == "vllm" else 1)
        if serve is not None:
            SERVERS[serve].check(vars(self) | {"adapter": getattr(adapter, "experiment", adapter)})
        self.workspace: Any = None

    def bind(self, workspace: Any) -> None:
        """Use the run's call log and seeds."""
        self.workspace = workspace

    @classmethod
    def identity(cls, config: dict[str, Any]) -> dict[str, Any]:
        """Return the hash of the weights, and of the adapter's files."""
        served = SERVERS.get(config.get("serve") or "")
        named = models.identity(config["model"], config.get("revision")) if served is None else served.identity(config)
        facts: dict[str, Any] = dict(named)
        if config.get("dtype", "auto") == "auto":  # what it is on this machine: results differ, so keys do
            on_gpu = config.get("device", "auto") != "cpu" and models.has_gpu()
            facts["dtype"] = "bfloat16" if on_gpu else "float32"
        if isinstance(config.get("adapter"), str):  # a training has a key of its own
            facts["adapter"] = models.adapter_identity(config["adapter"])
        return facts

    @classmethod
    def draws(cls, config: dict[str, Any]) -> bool:
        """Return whether decoding draws random numbers."""
        return config.get("temperature", 0.0) > 0

    @property
    def repeatable(self) -> bool:
        """Whether the same request always gets the same answer: vLLM computes together what comes together."""
        return self.temperature == 0 and self.serve != "vllm"

    def draws_random(self) -> bool:
        return self.temperature > 0

    @property
    def adapter(self) -> str | None:
        """The folder of the adapter, None for the base model."""
        return self.trained if isinstance(self.trained, str | None) else str(self.trained.folder)

    def settings(self) -> dict[str, Any]:
        """Return what decides an answer besides the messages."""
        named = {"model": self.model, "revision": self.revision, "adapter": self.adapter, "serve": self.serve}
        decoding: dict[str, Any] = {"repetition_penalty": self.repetition_penalty}
        if self.serve is not None:
            decoding["serve"] = self.serve
        if self.draws_random():
            decoding |= {"temperature": self.temperature, "top_p": self.top_p}
        shape = {"dtype": self.dtype, "quantization": self.quantization, "system_role": self.system_role}
        return {
            "backend": ["HuggingFaceLLM", self.version],
            "context_window": self.context_window,
            **self.identity(named),
            **shape,
            **decoding,
        }

    def chat(
        self, requests: Sequence[ChatRequest], role: str, max_new_tokens: int, check: Check | None = None
    ) -> list[ChatResponse]:
        """Answer each request, by index (:func:`graphcontext.generate.chat.answer`)."""
        return answer(self, requests, role, max_new_tokens, check)

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens of ``text``, special ones left out."""
        if self._is_bare:
            return ModelTokenizer(self.model).count(text)
        return len(self._loaded(weights=False).tokenizer(text, add_special_tokens=False)["input_ids"])

    def length(self, request: ChatRequest) -> int:
        """Return the number of prompt tokens; with a server, of characters: it is not started for that."""
        if self.serve is not None:
            return sum(len(message["content"]) for message in request.messages)
        return len(self._prompt(request))

    def start(self) -> None:
        """Start the server, where there is to be one."""
        if self.serve is not None:
            self._served.start()

    def complete(
        self, requests: Sequence[ChatRequest], seeds: Sequence[int], max_new_tokens: int
    ) -> list[ChatResponse]:
        """Answer one batch. A prompt longer than the window fails alone.

        Raises:
            RunError: the batch does not fit into memory, or the server ended.
        """
        if self.serve is not None:
            return [self._ask(request, seed, max_new_tokens) for request, seed in zip(requests, seeds, strict=True)]
        loaded = self._loaded()
        window = self.context_window or loaded.window
        prompts = [self._prompt(request) for request in requests]
        fits = [i for i, ids in enumerate(prompts) if window is None or len(ids) + max_new_tokens <= window]
        start = time.perf_counter()
        try:
            generated = loaded.generate(
                [prompts[i] for i in fits],
                max_new_tokens,
                self.temperature,
                self.top_p,
                [seeds[i] for i in fits],
                self.repetition_penalty,
            )
        except RuntimeError as error:
            if "out of memory" not in str(error) and "can't allocate memory" not in str(error):
                raise
            longest = max(len(prompts[i]) for i in fits)
            size = f"{len(fits)} prompts of up to {longest} tokens"
            raise RunError(f"{self.model}: out of memory for {size}; lower llm.batch_size") from error
        share = (time.perf_counter() - start) / max(1, len(fits))
        answers = dict(zip(fits, generated, strict=True))

        responses = []
        for i, request in enumerate(requests):
            n = len(prompts[i])
            if i not in answers:
                responses.append(too_long(request.item, n, max_new_tokens, window))
                continue
            ids, finish = answers[i]
            text = loaded.tokenizer.decode(ids, skip_special_tokens=True).strip()
            responses.append(ChatResponse(request.item, text, finish, n, len(ids), share))
        return responses

    def _ask(self, request: ChatRequest, seed: int, max_new_tokens: int) -> ChatResponse:
        """Answer one request by the server, which is started where it does not run."""
        decoding = self._served.module.decoding(self.temperature, self.top_p, self.repetition_penalty, max_new_tokens)
        if self.draws_random():
            decoding["seed"] = seed % 2**31
        return self._served.complete(request, max_new_tokens, decoding)

    @functools.cached_property
    def _served(self) -> ServedModel:
        node = {name: getattr(self, name) for name in STARTED_WITH}
        node["dtype"] = self.identity(vars(self)).get("dtype", self.dtype)
        return ServedModel(node, self.system_role, None if self._is_bare else self._prompt)

    @functools.cached_property
    def _is_bare(self) -> bool:
        """Whether the model is a GGUF file alone, without a folder that has its tokenizer."""
        return gguf_files.is_gguf(Path(os.path.expanduser(self.model)))

    def _prompt(self, request: ChatRequest) -> list[int]:
        return self._loaded(weights=False).encode(request.messages, self.system_role)

    def _loaded(self, weights: bool = True) -> CausalModel:
        if self._is_bare:
            raise InputError(f"llm.model={self.model} is a GGUF file; llm.serve=llama_cpp reads it")
        loaded = load(self.model, self.revision, self.adapter, self.dtype, self.quantization, self.device)
        if weights:
            loaded.load_weights()
        return loaded
