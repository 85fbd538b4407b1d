"""What a training holds in memory, by part: of one process on a GPU or on the CPU.

Counted are the tensors that autograd keeps for the backward pass in transformers' modules, operation by operation
(``scripts/bench/training_memory.py`` measures how near that comes on a CPU).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphcontext.train.shape import (
    Adapter,
    Shape,
    block_weights,
    embedding_weights,
    linears,
    parameters,
    targeted,
    trainable,
)

GIB = 2**30
NF4 = 0.5 + 1 / 64 + 4 / (64 * 256)  # bytes a weight: 4 bits, a scale of 8 bits per 64, one of 32 bits per 256 of those
PROCESS = {"cpu": 0.55, "gpu": 0.6}  # GiB: Python with its libraries, measured; a CUDA context, assumed
SLACK = {"cpu": 1.65, "gpu": 1.1}  # what the allocator takes for what it is asked for: glibc's measured; CUDA's assumed


@dataclass(frozen=True)
class Place:
    """Where and in what precision a process trains.

    Args:
        device: ``cpu`` or ``gpu``.
        bfloat16: compute in bfloat16 instead of float32.
        low_weights: the frozen weights are in 16 bits; else in 32, of which bfloat16 keeps copies.
        ranks: processes in all.
        per_machine: processes that share one machine's memory.
        strategy: ``auto``, ``ddp`` or ``fsdp``.
    """

    device: str = "cpu"
    bfloat16: bool = False
    low_weights: bool = False
    ranks: int = 1
    per_machine: int = 1
    strategy: str = "auto"


def memory(
    shape: Shape,
    adapter: Adapter,
    trainer: Mapping[str, Any],
    tokens: int,
    place: Place | None = None,
    learnt: int | None = None,
) -> dict[str, float]:
    """Return part → GiB of one process while it trains on its longest batch.

    Args:
        shape: of the base model.
        adapter: what is trained.
        trainer: ``micro_batch_size`` and ``gradient_checkpointing`` are read.
        tokens: of the longest example; of a source and of a target each where there is an encoder.
        place: device, precision and processes; one process on the CPU in float32 if not given.
        learnt: tokens of an example that logits are computed for; all if not given.
    """
    place = place or Place()
    each = 2.0 if place.low_weights and adapter.kind != "full" else 4.0
    n = trainable(shape, adapter)
    sharded = place.ranks if place.strategy == "fsdp" else 1
    batch = trainer["micro_batch_size"] * tokens
    trains = adapter.kind != "none"
    weights = _base(shape, adapter, each, place)
    gathered = 0.0
    if sharded > 1:  # a block at a time, and what lies outside of all blocks
        gathered = each * (block_weights(shape) / _blocks(shape) + embedding_weights(shape))
    own = 4.0 * n if adapter.low_rank else 0.0
    gradients, optimiser = 4.0 * n, 8.0 * n
    kept = batch * activations(shape, adapter, place, tokens, trainer["gradient_checkpointing"])
    if place.bfloat16 and each == 4 and trains and adapter.kind != "qlora":
        kept += 2.0 * (block_weights(shape) + shape.vocabulary * shape.hidden)  # what autocast made of the weights
    predicted = trainer["micro_batch_size"] * (tokens if learnt is None else min(learnt, tokens))
    logits = predicted * shape.vocabulary * ((12.0 if trains else 8.0) + (2.0 if place.bfloat16 else 0.0))
    step = _step(shape, n, place) / sharded
    parts = {
        "weights": weights / sharded + gathered,
        "adapter": own / sharded,
        "gradients": gradients / sharded,
        "optimiser": optimiser / sharded + step,
        "activations": kept,
        "logits": logits,
    }
    # what the heap holds grows to its peak by fragments, into which gradients and the step's copies fit
    heap = kept + logits
    parts["allocator"] = max(SLACK[place.device] * heap - heap - (gradients / sharded + step), 0.0)
    found = {name: value / GIB for name, value in parts.items()}
    return found | {"process": PROCESS[place.device]}


def _base(shape: Shape, adapter: Adapter, each: float, place: Place) -> float:
    """Return the bytes of the base model's weights."""
    total = parameters(shape)
    if adapter.kind != "qlora":
        return each * total
    packed = block_weights(shape)
    # on a CPU a float32 embedding is read in place, which keeps the whole file mapped
    mapped = 4.0 * packed if place.device == "cpu" and shape.stored == "float32" else 0.0
    return NF4 * packed + 4.0 * (total - packed) + mapped


def _blocks(shape: Shape) -> int:
    return shape.encoder_layers + shape.layers


def _step(shape: Shape, n: int, place: Place) -> float:
    """Return the bytes of AdamW's copies in a step: two of the largest tensor on a CPU, of all at once on a GPU."""
    if place.device == "gpu":
        return 4.0 * n
    sizes = [fan_in * fan_out for _, fan_in, fan_out in linears(shape).values()]
    return 2 * 4.0 * min(n, max(*sizes, shape.vocabulary * shape.hidden))


def activations(shape: Shape, adapter: Adapter, place: Place, tokens: int, checkpointing: bool) -> float:
    """Return the bytes per token of a batch that are kept for the backward pass.

    With checkpointing the input of each block is kept, and of one block everything.
    """
    each = 2.0 if place.bfloat16 else 4.0
    decoder = block(shape, adapter, place, tokens, crossed=shape.encoder_layers > 0)
    encoder = block(shape, adapter, place, tokens) if shape.encoder_layers else 0.0
    around = 3 * each * shape.hidden
    if adapter.kind == "none":  # no backward pass: nothing is kept
        return around + max(decoder, encoder)
    if checkpointing:
        return around + each * shape.hidden * _blocks(shape) + max(decoder, encoder)
    return around + shape.layers * decoder + shape.encoder_layers * encoder


def block(shape: Shape, adapter: Adapter, place: Place, tokens: int, crossed: bool = False) -> float:
    """Return the bytes per token that one block keeps, its attention over ``tokens`` others.

    Args:
        shape, adapter, place: as of :func:`memory`.
        tokens: length of the sequence.
        crossed: a decoder's block, which attends to as many tokens of an encoder too.
    """
    each = 2.0 if place.bfloat16 else 4.0
    mask = 1.0 if place.device == "gpu" else each  # of dropout
    full, plain = adapter.kind == "full", adapter.low_rank and not adapter.dropout
    chosen, there = targeted(shape, adapter), linears(shape)
    h, i, q, kv = shape.hidden, shape.intermediate, shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim

    def read(*names: str) -> bool:
        """Tell whether the input of any of these layers is kept as it is."""
        return full or (plain and any(name in chosen for name in names))

    def low_rank(*names: str) -> float:
        """Return what the adapters on these layers keep: x after dropout and its mask, A x."""
        dropped = 0.0 if plain else each + mask
        return sum(there[n][1] * dropped + adapter.rank * each for n in names if n in chosen)

    query, key, value, out, *inner, last = there
    rms = shape.family not in ("bart", "bert")
    norm = h * (4.0 if rms else each) + 4.0 * (1 if rms else 2) + (h * each if full and rms else 0.0)
    kept = 0.0
    for cross in (False, True) if crossed else (False,):
        kept += norm + each * (q + 2 * kv)
        kept += each * h if read(*((query,) if cross else (query, key, value))) else 0.0
        if shape.family == "t5":  # attention weights: softmax, after dropout, and its mask
            kept += shape.heads * tokens * (2 * each + mask) + (each * q if read(out) else 0.0)
        else:
            kept += each * q + 4.0 * shape.heads
        kept += low_rank(query, key, value, out) + (0.0 if shape.family == "llama" else mask * h)
    kept += norm + (each * h if read(*inner) else 0.0) + (each * i if read(last) else 0.0) + low_rank(*inner, last)
    kept += 3 * each * i if shape.gated else each * i
    if shape.family != "llama":
        kept += mask * h + (mask * i if shape.family == "t5" else 0.0)
    return kept
