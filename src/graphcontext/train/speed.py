"""Steps and hours of a training: its floating-point operations over a measured or assumed speed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from graphcontext.train.gpus import GPUS
from graphcontext.train.outline import ASSUMED_GPU, Plan
from graphcontext.train.shape import Adapter, Shape, block_weights, trainable

UTILISATION = {"none": 0.3, "lora": 0.3, "qlora": 0.2, "full": 0.35}  # of a GPU's data sheet: assumed
CPU_FLOPS = 1.0e11  # of two cores in float32, where nothing was measured: assumed
MEASURED_AT = 256  # tokens of an example with which an llm's ``train`` figure was measured, by LoRA


def steps(trainer: Mapping[str, Any], pairs: int) -> int:
    """Return the optimiser steps of a training: ⌈pairs / batch⌉ in an epoch."""
    per_epoch = math.ceil(pairs / min(trainer["batch_size"], max(pairs, 1)))
    total = max(1, round(trainer["epochs"] * per_epoch))
    return total if trainer["max_steps"] is None else min(total, trainer["max_steps"])


def flops(shape: Shape, adapter: Adapter, prompt: float, answer: float, checkpointing: bool) -> tuple[float, float]:
    """Return the floating-point operations of one example: to learn from it, and to compute its loss alone.

    A product with a matrix of P weights takes 2 P a token forward and 2 P for the gradient of its input; for that of
    its own weights 2 P more where they are trained. Checkpointing computes the blocks forward once more. Attention
    over n tokens adds 2 n · width a token and layer (half of the square: it looks back only).
    """
    encoder = block_weights(replace(shape, layers=0)) if shape.encoder_layers else 0
    decoder = block_weights(shape) - encoder
    width = 2 * shape.heads * shape.head_dim
    if encoder:  # the prompt goes through the encoder, the answer through the decoder
        blocks = 2 * (encoder * prompt + decoder * answer)
        blocks += width * (2 * shape.encoder_layers * prompt**2 + shape.layers * answer * (answer + 2 * prompt))
        part = answer + prompt
    else:
        part = prompt + answer
        blocks = 2 * decoder * part + width * shape.layers * part**2
    head = 2 * shape.vocabulary * shape.hidden * answer
    n = trainable(shape, adapter)
    forward = blocks + head + (2 * n * part if adapter.low_rank else 0)
    own = 2 * n * part if adapter.low_rank else blocks + head
    if adapter.kind == "none":
        return 0.0, forward
    return 2 * forward + own + (blocks if checkpointing else 0), forward


def hours(plan: Plan, n_steps: int) -> tuple[float, str]:
    """Return the hours of a training, and what its speed stands on."""
    trainer, counts = plan.trainer, plan.counts
    learn, look = flops(plan.shape, plan.adapter, counts.prompt, counts.answer, trainer["gradient_checkpointing"])
    per_epoch = max(1, math.ceil(counts.pairs / trainer["batch_size"]))
    looks = min(math.ceil(n_steps * trainer["validations"] / per_epoch), n_steps) + 1  # no more than one a step
    work = n_steps * min(trainer["batch_size"], max(counts.pairs, 1)) * learn + looks * counts.held_out * look
    ranks = trainer["devices"] * trainer["nodes"]
    if plan.on_gpu:
        name, _ = plan.free()
        part = UTILISATION[plan.adapter.kind]
        known = GPUS.get(name) or GPUS[ASSUMED_GPU]
        low = plan.place().bfloat16 and known.bfloat16 is not None
        speed = (known.bfloat16 if low and known.bfloat16 else known.float32) * 1e12 * part * ranks
        what = f"{known.bfloat16 if low else known.float32:g} TFLOPS by its data sheet, {part:.0%} of it"
        as_if = "" if name in GPUS else f", as if it were a {ASSUMED_GPU}"
        return work / speed / 3600, f"speed on {name}: assumed ({what}{as_if})"
    figures = ((plan.node.get("plan") or {}).get("tokens_per_second") or {}).get("cpu") or {}
    if "train" not in figures:
        return work / CPU_FLOPS / 3600, f"speed on this CPU: assumed ({CPU_FLOPS / 1e9:g} GFLOPS)"
    each, _ = flops(plan.shape, Adapter("lora", 16), MEASURED_AT / 2, MEASURED_AT / 2, False)
    return work / (figures["train"] * each / MEASURED_AT) / 3600, ""
