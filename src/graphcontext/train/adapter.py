"""What of a model is trained: low-rank adapters, adapters on a 4-bit base, all weights, or none."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from graphcontext.errors import InputError, did_you_mean
from graphcontext.generate.adapters import import_peft
from graphcontext.whole import load_config

KINDS = {"none": "trains nothing", "full": "all weights", "lora": "a PEFT model's", "qlora": "the same, on 4 bits"}


class NoAdapter:
    """Trains nothing: the held-out loss of the base model."""

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()
    kind: ClassVar[str] = "none"
    quantization: ClassVar[str] = "none"

    def wrap(self, network: Any) -> Any:
        """Return the model with all weights frozen."""
        return network.requires_grad_(False)


class FullTuning:
    """Trains all weights, in float32."""

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()
    kind: ClassVar[str] = "full"
    quantization: ClassVar[str] = "none"

    def wrap(self, network: Any) -> Any:
        """Return the model with all weights trainable, in float32."""
        return network.float().requires_grad_(True)


class LoRA:
    """Low-rank adaptation (Hu et al. 2021): h = W x + (α / r) · B A x, A ∈ R^{r×in}, B ∈ R^{out×r}, W frozen.

    A is drawn from U(−1/√in, 1/√in) (Kaiming), B is 0, so that training starts from the base model.

    Args:
        rank: r, 1 and more.
        alpha: α, above 0.
        dropout: on x, in [0, 1).
        targets: names of modules that get an adapter (``q_proj``); null: all linear layers of the blocks, whatever
            the architecture calls them, without the output layer.

    Raises:
        InputError: a value that is not allowed; at :meth:`wrap` a target that the model does not have.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()
    kind: ClassVar[str] = "lora"
    quantization: ClassVar[str] = "none"

    def __init__(self, rank: int, alpha: float, dropout: float, targets: Sequence[str] | None = None) -> None:
        if rank < 1:
            raise InputError(f"adapter.rank={rank}; allowed: 1 and more")
        if not 0 < alpha < math.inf:
            raise InputError(f"adapter.alpha={alpha}; allowed: above 0, and finite")
        if not 0 <= dropout < 1:
            raise InputError(f"adapter.dropout={dropout}; allowed: 0 to below 1")
        if targets is not None and not (_are_names(targets) and targets):
            raise InputError(f"adapter.targets={targets!r}; allowed: a list of names of modules, or null")
        self.rank, self.alpha, self.dropout = rank, alpha, dropout
        self.targets = None if targets is None else tuple(targets)

    def wrap(self, network: Any) -> Any:
        """Return the model with adapters, the only weights that are trained; they are in float32.

        Raises:
            InputError: peft is not installed, or a target is not there.
        """
        peft = import_peft(f"adapter={self.kind}")
        targets = sorted(self.modules(network))
        kind = "SEQ_2_SEQ_LM" if network.config.is_encoder_decoder else "CAUSAL_LM"
        config = peft.LoraConfig(
            r=self.rank, lora_alpha=self.alpha, lora_dropout=self.dropout, target_modules=targets, task_type=kind
        )
        if self.quantization != "none":
            keep_unpacked(network)
            network = peft.prepare_model_for_kbit_training(network, use_gradient_checkpointing=False)
        return peft.get_peft_model(network, config)

    def modules(self, network: Any) -> set[str]:
        """Return the names of modules that get an adapter.

        Raises:
            InputError: the model has no such module.
        """
        there = linear_layers(network)
        if self.targets is None:
            return there
        for name in self.targets:
            if name not in there:
                where = f"{type(network).__name__} has no linear layer of that name"
                raise InputError(f"adapter.targets: {name}: {where}{did_you_mean(name, there)}")
        return set(self.targets)


def _are_names(targets: Any) -> bool:
    return isinstance(targets, Sequence) and not isinstance(targets, str) and all(isinstance(t, str) for t in targets)


class QLoRA(LoRA):
    """LoRA on a base in 4-bit NormalFloat with double quantisation (Dettmers et al. 2023).

    Computes in bfloat16 on a GPU that has it, else in float32. Arguments as of :class:`LoRA`.
    """

    kind: ClassVar[str] = "qlora"
    quantization: ClassVar[str] = "4bit"


def check_class(cls: type) -> None:
    """Check that a class says of itself what is trained: ``kind``, ``quantization`` and ``wrap``.

    Raises:
        InputError: naming what it lacks.
    """
    lacks = [name for name in ("kind", "quantization") if not isinstance(getattr(cls, name, None), str)]
    lacks += [] if callable(getattr(cls, "wrap", None)) else ["wrap(network)"]
    if lacks:
        has = f"a class attribute kind ({', '.join(KINDS)}), another, quantization (none, 4bit), and wrap(network)"
        raise InputError(f"adapter: {cls.__name__} lacks {', '.join(lacks)}; an adapter has {has}")
    if cls.kind not in KINDS:  # type: ignore[attr-defined]
        raise InputError(f"adapter: {cls.__name__}.kind={cls.kind}{did_you_mean(cls.kind, KINDS)}")  # type: ignore[attr-defined]


def check_targets(adapter: Any, folder: Path, is_seq2seq: bool) -> None:
    """Check by a model's config that it has the modules that an adapter names, before anything of it is loaded.

    Raises:
        InputError: it has not.
    """
    if not getattr(adapter, "targets", None):
        return
    import torch
    import transformers

    kind = transformers.AutoModelForSeq2SeqLM if is_seq2seq else transformers.AutoModelForCausalLM
    with torch.device("meta"):
        network = kind.from_config(load_config(folder))
    adapter.modules(network)


def keep_unpacked(network: Any) -> None:
    """Keep bitsandbytes from packing 4-bit weights for its CPU kernels, which a validation would start.

    It packs where a layer is in evaluation mode on a CPU with AVX-512 bf16, and never unpacks: from then on the layer
    computes by a kernel without a gradient, so that what is trained below it would get none.
    """
    for module in network.modules():
        if type(module).__name__ == "Linear4bit":
            module.support_avx512bf16_for_cpu = False


def linear_layers(network: Any) -> set[str]:
    """Return the last parts of the names of all linear layers of a model, without the one that gives the logits."""
    import torch

    head = network.get_output_embeddings()
    return {
        name.rpartition(".")[2]
        for name, module in network.named_modules()
        if module is not head and (isinstance(module, torch.nn.Linear) or type(module).__name__ == "Conv1D")
    }
