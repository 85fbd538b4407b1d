"""Answers by an encoder–decoder model on this machine (T5, BART), through transformers."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any, ClassVar

from graphcontext import models
from graphcontext.errors import InputError
from graphcontext.generate.chat import ChatRequest, ChatResponse, Check, Message, answer
from graphcontext.generate.seq2seq_model import Decoding, Output, Seq2SeqModel, check_placement, load

log = logging.getLogger(__name__)


class Seq2SeqLLM:
    """A fine-tuned encoder–decoder model: argmax p(answer | source) by beam search, batched.

    The source is the plain text of the messages: KGP's agent reads "question, newline, passage" (Wang et al. 2023,
    supplement). No chat template is put around it. Pretrained alone, T5 and BART answer nothing of use: name an
    adapter, or a tuned model.

    Args:
        model: local folder or hub name.
        revision: hub commit; null for folders.
        adapter: folder of a LoRA adapter (PEFT) or of a tuned model, a training (``llm.adapter=EXPERIMENT``), or null
            for the base model.
        dtype: ``float32``, ``bfloat16`` or ``float16`` (T5 was trained in bfloat16 and overflows in float16).
        beams: 1 is greedy.
        length_penalty: read only where there are several beams; above 0 favours long answers.
        repetition_penalty: ≥ 1; divides the logit of a token that the answer holds already. 1 is off.
        max_source_length: most tokens of a source, special ones included. What is beyond is cut, from the end; such an
            answer says so in its reason.
        parameters: number of weights, for planning (execution).
        plan: further planning figures: layers, sizes, speeds (execution).
        batch_size: sources per forward pass (execution). A batch is padded to its longest source, which can change a
            logit in its last bits and so, rarely, an answer.
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:N`` (execution).

    Raises:
        InputError: a value that is not allowed; at the first call also a model without weights here, one without
            encoder and decoder, or an adapter that does not fit.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset({"parameters", "plan", "batch_size", "device"})
    repeatable: ClassVar[bool] = True
    trainable: ClassVar[bool] = True
    workers: ClassVar[int] = 1

    def __init__(
        self,
        model: str,
        revision: str | None = None,
        adapter: Any = None,
        dtype: str = "float32",
        beams: int = 1,
        length_penalty: float = 1.0,
        repetition_penalty: float = 1.0,
        max_source_length: int = 512,
        parameters: int | None = None,
        plan: dict[str, Any] | None = None,
        batch_size: int = 8,
        device: str = "auto",
    ) -> None:
        check_placement("llm", dtype, device, batch_size)
        if adapter is not None and not isinstance(adapter, str) and not hasattr(type(adapter), "folder"):
            raise InputError(f"llm.adapter={adapter!r}; allowed: a folder, a training experiment, or null")
        self.search = (beams, length_penalty, repetition_penalty)
        Decoding(max_source_length, 1, *self.search)
        self.model, self.revision, self.trained = model, revision, adapter or None
        self.dtype, self.device, self.batch_size = dtype, device, batch_size
        self.max_source_length = max_source_length
        self.parameters, self.plan = parameters, plan or {}
        self.n_cut = 0
        self.workspace: Any = None

    def bind(self, workspace: Any) -> None:
        """Use the run's call log."""
        self.workspace = workspace

    @classmethod
    def identity(cls, config: dict[str, Any]) -> dict[str, Any]:
        """Return the hash of the weights, and of the adapter's files where a folder is named."""
        facts: dict[str, Any] = dict(models.identity(config["model"], config.get("revision")))
        if isinstance(config.get("adapter"), str):
            facts["adapter"] = models.adapter_identity(config["adapter"])
        return facts

    @classmethod
    def draws(cls, config: dict[str, Any]) -> bool:
        """Return that beam search draws no random numbers."""
        return False

    def draws_random(self) -> bool:
        return False

    @property
    def adapter(self) -> str | None:
        """The folder of the adapter or tuned model, None for the base model.

        Raises:
            MissingWeightsError: it is not trained yet.
        """
        return self.trained if self.trained is None or isinstance(self.trained, str) else str(self.trained.folder)

    def settings(self) -> dict[str, Any]:
        """Return what decides an answer besides the source."""
        beams, length_penalty, repetition_penalty = self.search
        decoding = {"beams": beams, "repetition_penalty": repetition_penalty}
        decoding |= {"length_penalty": length_penalty} if beams > 1 else {}
        return {
            "backend": [type(self).__name__, self.version],
            **self.identity({"model": self.model, "revision": self.revision, "adapter": self.adapter}),
            "dtype": self.dtype,
            "max_source_length": self.max_source_length,
            **decoding,
        }

    def chat(
        self, requests: Sequence[ChatRequest], role: str, max_new_tokens: int, check: Check | None = None
    ) -> list[ChatResponse]:
        """Answer each request, by index (:func:`graphcontext.generate.chat.answer`)."""
        return answer(self, requests, role, max_new_tokens, check)

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens of ``text``, special ones left out."""
        tokenizer = self._loaded().tokenizer
        return len(tokenizer(text, add_special_tokens=False, truncation=False, verbose=False)["input_ids"])

    def length(self, request: ChatRequest) -> int:
        """Return the number of tokens of a request's source, before it is cut."""
        return self._loaded().count(source_text(request.messages))

    def complete(
        self, requests: Sequence[ChatRequest], seeds: Sequence[int], max_new_tokens: int
    ) -> list[ChatResponse]:
        """Answer one batch. A source beyond ``max_source_length`` is cut, and its answer says so.

        Raises:
            InputError: more tokens are asked for than the model has positions.
            RunError: the batch does not fit into memory.
        """
        loaded = self._loaded()
        texts = [source_text(request.messages) for request in requests]
        decoding = Decoding(self.max_source_length, max_new_tokens, *self.search)
        start = time.perf_counter()
        outputs = loaded.write(texts, decoding, self.batch_size)
        share = (time.perf_counter() - start) / max(1, len(requests))
        self._count_cut(outputs)
        return [
            ChatResponse(
                request.item,
                output.text,
                output.finish,
                loaded.count(text) - output.n_cut,
                output.n_tokens,
                share,
                reason=f"input cut at {self.max_source_length} tokens" if output.n_cut else None,
            )
            for request, text, output in zip(requests, texts, outputs, strict=True)
        ]

    def _count_cut(self, outputs: Sequence[Output]) -> None:
        found = sum(output.n_cut > 0 for output in outputs)
        if found and not self.n_cut:
            longest = f"llm.max_source_length={self.max_source_length}"
            log.warning("%s: inputs are longer than %s tokens and are cut; the answers say which", self.model, longest)
        self.n_cut += found

    def _loaded(self) -> Seq2SeqModel:
        return load(self.model, self.revision, self.dtype, self.device, self.adapter)


def source_text(messages: Sequence[Message]) -> str:
    """Return the text that the encoder reads: the messages' texts joined by blank lines, the system's first.

    Training and evaluation read the same.

    >>> source_text(({"role": "user", "content": "Who?"}, {"role": "system", "content": "Be brief."}))
    'Be brief.\\n\\nWho?'
    """
    ordered = sorted(messages, key=lambda message: message["role"] != "system")
    return "\n\n".join(message["content"] for message in ordered if message["content"])
