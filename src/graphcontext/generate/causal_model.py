"""A loaded causal language model: tokenizer, placement, quantisation, adapter, batched decoding."""

from __future__ import annotations

import gc
import importlib.util
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graphcontext import models
from graphcontext.errors import InputError
from graphcontext.generate.adapters import load_tuned, template_digest
from graphcontext.generate.chat import Message
from graphcontext.whole import load_config, load_tokenizer

log = logging.getLogger(__name__)

QUANTIZATIONS = ("none", "4bit", "8bit")
_LOADED: dict[tuple[Any, ...], CausalModel] = {}


def load(
    model: str, revision: str | None, adapter: str | None, dtype: str, quantization: str, device: str
) -> CausalModel:
    """Return the model of this name, revision and adapter; a process loads it once until :func:`free`."""
    name = (model, revision, adapter, dtype, quantization, device)
    if name not in _LOADED:
        folder = models.resolve(model, revision)
        _LOADED[name] = CausalModel(folder, adapter, dtype, quantization, device, (model, revision))
    return _LOADED[name]


def free() -> None:
    """Forget every loaded model and give its memory back."""
    release(_LOADED)


def release(loaded: dict[tuple[Any, ...], Any]) -> None:
    """Empty a table of loaded models and give their memory back."""
    had_weights = any(model.weights is not None for model in loaded.values())
    loaded.clear()
    if had_weights:
        import torch

        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


class CausalModel:
    """Tokenizer at once, weights at the first generation. Arguments as in ``HuggingFaceLLM``.

    ``name`` is the model's name and revision, by which an adapter knows its base; null for a folder.
    """

    def __init__(
        self,
        folder: Path,
        adapter: str | None,
        dtype: str,
        quantization: str,
        device: str,
        name: tuple[str, str | None] | None = None,
    ) -> None:
        self.folder, self.adapter, self.name = folder, adapter, name or (str(folder), None)
        self.dtype, self.quantization, self.device = dtype, quantization, device
        self.weights: Any = None
        self.tokenizer = load_tokenizer(folder, padding_side="left")
        if self.tokenizer.pad_token_id is None:
            self.tokenizer.pad_token = self.tokenizer.eos_token
        self.window: int | None = getattr(load_config(folder), "max_position_embeddings", None)
        bos = self.tokenizer.bos_token_id
        self.adds_bos = bos is not None and self.tokenizer("")["input_ids"][:1] == [bos]
        self.encode([{"role": "user", "content": "?"}], True)  # T23: two BOS are refused before any work

    def encode(self, messages: Sequence[Message], system_role: bool) -> list[int]:
        """Return the token ids of a chat up to where the answer begins, with one BOS where the model has one.

        Where the last message is the assistant's, it opens the answer: its text stands at the end.

        Raises:
            InputError: the chat template begins with two BOS, or cannot be filled in.
        """
        text = self._text(messages, system_role)
        ids = self._ids(text)
        if self.tokenizer.bos_token_id is not None and ids[:2] == [self.tokenizer.bos_token_id] * 2:
            raise InputError(f"the chat template of {self.folder} begins with two BOS; one is needed")
        return ids

    def encode_answered(
        self, messages: Sequence[Message], answer: str, system_role: bool
    ) -> tuple[list[int], list[int]]:
        """Return the token ids of a chat up to where the answer begins, as :meth:`encode`, and those of the answer.

        The answer is tokenised as it follows the prompt, with one blank between the two where there is none.
        """
        prompt, text = self.encode(messages, system_role), self._text(messages, system_role)
        glue = "" if text[-1:].isspace() or not text else " "
        whole = self._ids(text + glue + answer)
        if whole[: len(prompt)] == prompt:
            return prompt, whole[len(prompt) :]
        return prompt, list(self.tokenizer(answer, add_special_tokens=False)["input_ids"])  # a token spans both

    def _ids(self, text: str) -> list[int]:
        ids = list(self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])
        bos = self.tokenizer.bos_token_id
        return [bos, *ids] if self.adds_bos and ids[:1] != [bos] else ids

    def _text(self, messages: Sequence[Message], system_role: bool) -> str:
        """Return a chat as text up to where the answer begins."""
        from jinja2 import TemplateError

        opened = ""
        if messages[-1]["role"] == "assistant":
            *messages, last = messages
            opened = last["content"]
        if not system_role:
            messages = without_system(messages)
        if self.tokenizer.chat_template:
            try:
                text = self.tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=True)
            except (TemplateError, ValueError, TypeError) as error:
                reason = (str(error).splitlines() or [type(error).__name__])[0]
                raise InputError(f"model folder {self.folder}: its chat template fails: {reason}") from error
        else:
            return "\n\n".join([*(m["content"] for m in messages), opened or "Answer:"])
        return text + opened

    def load_weights(self) -> None:
        """Load the weights and the adapter unless they are there.

        Raises:
            InputError: a missing extra, weights that are damaged, missing or of another kind of model, an adapter
                that does not fit.
        """
        if self.weights is not None:
            return
        import torch

        on_gpu = self.device != "cpu" and torch.cuda.is_available()
        if self.device.startswith("cuda") and not on_gpu:
            raise InputError(f"llm.device={self.device}, but torch sees no GPU here; allowed: auto, cpu")
        dtype = resolve_dtype(self.dtype, on_gpu)
        arguments: dict[str, Any] = {"dtype": dtype, "device_map": device_map(self.device, on_gpu)}
        if self.quantization != "none":
            arguments["quantization_config"] = quantization_config(self.quantization, dtype)
        base = models.identity(*self.name) if self.adapter else {}
        tuning = (self.adapter, base, template_digest(self.tokenizer))
        self.weights = load_tuned("AutoModelForCausalLM", self.folder, *tuning, **arguments).eval()

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        max_new_tokens: int,
        temperature: float,
        top_p: float,
        seeds: Sequence[int],
        repetition_penalty: float = 1.0,
    ) -> list[tuple[list[int], str]]:
        """Return the generated ids of each prompt and ``stop`` or ``length``; the final EOS is left out."""
        import torch
        from transformers import LogitsProcessorList, RepetitionPenaltyLogitsProcessor

        if not prompts:
            return []
        longest = max(len(p) for p in prompts)
        pad = self.tokenizer.pad_token_id
        ids = torch.tensor([[pad] * (longest - len(p)) + list(p) for p in prompts])  # (n, longest)
        mask = torch.tensor([[0] * (longest - len(p)) + [1] * len(p) for p in prompts])
        device = self.weights.get_input_embeddings().weight.device
        stops = self._stops()
        arguments: dict[str, Any] = {"eos_token_id": stops} if stops else {}
        processors = LogitsProcessorList()
        if repetition_penalty != 1:  # of the answer alone: what the prompt says may be said again
            processors.append(RepetitionPenaltyLogitsProcessor(repetition_penalty, prompt_ignore_length=longest))
        if temperature > 0:
            processors.append(GumbelNoise(temperature, top_p, seeds))
        with torch.inference_mode():
            out = self.weights.generate(
                input_ids=ids.to(device),
                attention_mask=mask.to(device),
                max_new_tokens=max_new_tokens,
                do_sample=False,
                temperature=None,
                top_p=None,
                top_k=None,
                repetition_penalty=1.0,
                logits_processor=processors,
                pad_token_id=pad,
                **arguments,
            )
        return [cut_at_stop(row, stops) for row in out[:, longest:].tolist()]

    def _stops(self) -> list[int]:
        configured = self.weights.generation_config.eos_token_id
        listed = configured if isinstance(configured, list) else [configured]
        return sorted({s for s in [*listed, self.tokenizer.eos_token_id] if s is not None})


class GumbelNoise:
    """Turns argmax into sampling: argmax(log p + Gumbel noise) draws from p; one random stream per row.

    So a row's draws do not depend on which rows share its batch.
    """

    def __init__(self, temperature: float, top_p: float, seeds: Sequence[int]) -> None:
        import torch

        self.temperature, self.top_p = temperature, top_p
        self.streams = [torch.Generator().manual_seed(seed) for seed in seeds]

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        import torch

        logits = scores.float() / self.temperature  # (n, vocabulary)
        if self.top_p < 1:
            ordered, order = logits.sort(descending=True, stable=True)
            probabilities = ordered.softmax(-1)
            outside = probabilities.cumsum(-1) - probabilities >= self.top_p  # the most likely token stays
            logits = logits.masked_fill(outside.scatter(-1, order, outside), float("-inf"))
        uniform = torch.stack([torch.rand(logits.shape[-1], generator=s) for s in self.streams])
        noise = -torch.log(-torch.log(uniform.clamp(1e-20, 1 - 1e-7)))
        return logits + noise.to(logits.device)


def without_system(messages: Sequence[Message]) -> list[Message]:
    """Return the messages with the system text put before the first user message."""
    system = [m["content"] for m in messages if m["role"] == "system"]
    others = [dict(m) for m in messages if m["role"] != "system"]
    if system and others:
        others[0]["content"] = "\n\n".join([*system, others[0]["content"]])
    return others


def cut_at_stop(row: Sequence[int], stops: Sequence[int]) -> tuple[list[int], str]:
    """Return the ids before the first stop token with ``stop``, or all of them with ``length``."""
    for i, token in enumerate(row):
        if token in stops:
            return list(row[:i]), "stop"
    return list(row), "length"


def resolve_dtype(dtype: str, on_gpu: bool) -> Any:
    """Return the torch dtype; ``auto`` is bfloat16 on a GPU and float32 on a CPU, where bfloat16 is slow."""
    import torch

    if dtype == "auto":
        dtype = "bfloat16" if on_gpu else "float32"
        log.info("llm.dtype=auto: %s on this %s", dtype, "GPU" if on_gpu else "CPU")
    return getattr(torch, dtype)


def device_map(device: str, on_gpu: bool) -> Any:
    """Return where accelerate puts the layers: one device, this rank's GPU, or ``auto`` over all GPUs.

    Raises:
        InputError: the process group has another size than ``WORLD_SIZE``, or the rank has no number.
    """
    import torch

    from graphcontext.train.world import number

    world = number("WORLD_SIZE") or 1
    if world > 1:
        distributed = torch.distributed
        if distributed.is_available() and distributed.is_initialized():
            found = distributed.get_world_size()
            if found != world:
                raise InputError(f"the process group has {found} processes, WORLD_SIZE says {world}")
        rank = os.environ.get("LOCAL_RANK")
        if rank is None or not rank.isdigit():
            raise InputError(f"WORLD_SIZE={world}, but LOCAL_RANK={rank}; start it with torchrun or srun")
        return {"": int(rank)} if on_gpu else {"": "cpu"}
    if not on_gpu:
        return {"": "cpu"}
    return "auto" if device == "auto" else {"": device}


def quantization_config(quantization: str, dtype: Any) -> Any:
    """Return the bitsandbytes config.

    Raises:
        InputError: bitsandbytes is not installed.
    """
    if importlib.util.find_spec("bitsandbytes") is None:
        mend = "pip install 'graphcontext[quantization]', or llm.quantization=none"
        raise InputError(f"llm.quantization={quantization} needs the package bitsandbytes: {mend}")
    from transformers import BitsAndBytesConfig

    if quantization == "8bit":
        return BitsAndBytesConfig(load_in_8bit=True)
    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=dtype,
    )
