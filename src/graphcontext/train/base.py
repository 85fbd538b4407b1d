"""The model that is trained: its tokenizer at once, its weights when the ranks are known."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graphcontext import models
from graphcontext.errors import InputError
from graphcontext.generate.adapters import template_digest
from graphcontext.generate.causal_model import CausalModel, quantization_config
from graphcontext.generate.seq2seq_model import Seq2SeqModel
from graphcontext.train import examples
from graphcontext.train.adapter import check_targets
from graphcontext.train.batches import Collate
from graphcontext.train.counts import counted
from graphcontext.train.outline import Counts
from graphcontext.train.settings import TrainerSettings
from graphcontext.train.strategy import device_of, precision_of
from graphcontext.whole import load_config, load_weights


class Base:
    """A causal or encoder–decoder model, read the way evaluation reads it.

    Args:
        node: config of the LLM.
        adapter: component that says what is trained.
        settings: of the training.

    Raises:
        InputError: no such GPU, a model that is not whole, or one that cannot be trained in this way. Of it only the
            tokenizer is loaded yet.
    """

    what, unit = "adapter", "a token"

    def __init__(self, node: dict[str, Any], adapter: Any, settings: TrainerSettings) -> None:
        self.node, self.adapter, self.settings = node, adapter, settings
        self.folder: Path = models.resolve(node["model"], node.get("revision"))
        self.is_seq2seq = bool(getattr(load_config(self.folder), "is_encoder_decoder", False))
        device, dtype = device_of(settings), self._dtype()
        if settings.data == "text" and self.is_seq2seq:
            raise InputError(f"trainer.data=text: {self.name} is an encoder–decoder; packed text needs a causal LM")
        if settings.strategy == "fsdp":
            device = "cpu"  # sharding moves it, block by block
        if self.is_seq2seq:
            if adapter.kind == "qlora":
                raise InputError(f"adapter=qlora: {node['model']} is an encoder–decoder; adapter=lora or full")
            self.model: Any = Seq2SeqModel(self.folder, dtype, device)
        else:
            self.model = CausalModel(self.folder, None, dtype, adapter.quantization, device)
        if adapter.quantization != "none":
            quantization_config(adapter.quantization, None)
        check_targets(adapter, self.folder, self.is_seq2seq)

    def _dtype(self) -> str:
        """Return the dtype of the frozen weights: the model's own on a GPU that computes in it, else float32."""
        if self.adapter.kind == "full" or precision_of(self.settings)[0] == "float32":
            return "float32"
        own = self.node.get("dtype", "auto")
        return "bfloat16" if own == "auto" else own

    @property
    def kind(self) -> str:
        return self.adapter.kind

    @property
    def name(self) -> str:
        return str(self.node["model"])

    @property
    def pad(self) -> int:
        return self.model.tokenizer.pad_token_id or 0

    @property
    def window(self) -> int | None:
        """Most tokens of an example that the model has positions for."""
        return self.model.window

    def encode(self, found: Sequence[Any], settings: TrainerSettings) -> examples.Examples:
        """Return the examples of pairs, or of texts."""
        most = min(settings.max_tokens, self.window or settings.max_tokens)
        if settings.data == "text":
            return examples.packed(found, self.model, most)
        if self.is_seq2seq:
            return examples.seq2seq(found, self.model, most)
        return examples.causal(found, self.model, self.node.get("system_role", True), most, settings.loss_on)

    def counts(self, sides: dict[str, examples.Examples]) -> Counts:
        """Return the counts of examples that are made, for the plan; there is one or more on the training side."""
        return counted(sides["train"], sides["validation"], self.is_seq2seq)

    def module(self, settings: TrainerSettings, course: Any, sides: dict[str, Any], seed: int, start: int) -> Any:
        """Return the Lightning module of this kind of model."""
        from graphcontext.train.tuning import CausalTuning, Seq2SeqTuning

        cls = Seq2SeqTuning if self.is_seq2seq else CausalTuning
        return cls(self.load, settings, course, sides["train"].examples, seed, start)

    @property
    def collate(self) -> Collate:
        """What pads examples to a batch."""
        return Collate(self.pad)

    def load(self) -> Any:
        """Load the weights and return the model with what is trained of it.

        Raises:
            InputError: the adapter does not fit it, or is none of PEFT.
        """
        self.model.load_weights()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # of transformers, to peft
            network = self.adapter.wrap(self.model.weights)
            if self.kind not in ("none", "full") and not hasattr(network, "peft_config"):
                name = type(self.adapter).__name__
                raise InputError(f"adapter: {name}.wrap gives no PEFT model, which kind={self.kind} stands for")
            if self.settings.gradient_checkpointing:
                network.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
                network.enable_input_require_grads()
        return network.train()

    def plain(self) -> Any:
        """Return the untrained model in float32."""
        import torch

        kind = "AutoModelForSeq2SeqLM" if self.is_seq2seq else "AutoModelForCausalLM"
        return load_weights(kind, self.folder, dtype=torch.float32)

    def write_beside(self, folder: Path) -> None:
        """Write what makes a folder with all weights a model: its tokenizer."""
        self.model.tokenizer.save_pretrained(str(folder))

    def facts(self) -> dict[str, Any]:
        """Return what names the base in the manifest of an adapter."""
        named = models.identity(self.node["model"], self.node.get("revision"))
        return {
            "base": {**named, "revision": self.node.get("revision")},
            "template": template_digest(self.model.tokenizer),
            "kind": self.kind,
            "quantization": self.adapter.quantization,
        }
