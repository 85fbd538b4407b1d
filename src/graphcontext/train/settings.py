"""The settings of a training: its recipe, which enters the key, and how it is computed, which does not."""

from __future__ import annotations

import math
from typing import ClassVar

from graphcontext.errors import InputError, did_you_mean

WORDS = {
    "data": ("pairs", "evidence", "text", "bi_encoder"),
    "loss_on": ("answer", "all"),
    "schedule": ("cosine", "linear", "constant"),
    "keep": ("best", "last"),
    "accelerator": ("cpu", "gpu"),
    "strategy": ("auto", "ddp", "fsdp"),
    "precision": ("auto", "float32", "bfloat16"),
    "wandb": ("offline", "online", "disabled"),
}

PROCESSES = 256  # most of a machine: of a training, and those of one rank that read its batches


class TrainerSettings:
    """Hyperparameters and hardware of a training.

    The learning rate rises linearly over the warm-up and then falls towards 0 after the last step: ``cosine`` as
    lr · (1 + cos πt) / 2, ``linear`` as lr · (1 − t), t the part of the steps after the warm-up that is done;
    ``constant`` stays.

    Args:
        data: ``pairs`` (question, context, answer), ``evidence`` (question, gold passages so far, the next one: for an
            agent of a traversal), ``text`` (passages, packed) or ``bi_encoder`` (question, gold passages, others: for
            an encoder, as :class:`graphcontext.train.bi_encoder.BiEncoder` says).
        loss_on: ``answer`` or ``all`` tokens; of ``text`` always all.
        epochs: passes over the training data, above 0, up to 1e9.
        max_steps: most optimiser steps, or null.
        learning_rate: peak of the schedule, above 0.
        schedule: ``cosine``, ``linear`` or ``constant``.
        warmup: part of all steps (below 1), or steps.
        weight_decay: of AdamW, 0 and more.
        clip: largest norm of the gradient, or null.
        batch_size: pairs (blocks of ``text``) of an optimiser step, over all ranks and micro-batches.
        max_tokens: of an example, prompt and answer together; of a source and of a target for seq2seq models; of a text
            for encoders.
        bucket: pairs of like length share a batch.
        pairs: most training pairs, or null.
        held_out: most held-out pairs, or null.
        validations: of the held-out loss per epoch; one more stands before the first step.
        patience: validations without improvement after which it stops, or null.
        keep: weights of the ``best`` validation, or the ``last``.
        accelerator: ``cpu`` or ``gpu`` (execution, as all below).
        devices: processes of a node, up to 256.
        nodes: of the cluster.
        strategy: ``auto`` (one process), ``ddp`` or ``fsdp``.
        precision: ``auto`` (bfloat16 where the GPU has it), ``float32`` or ``bfloat16``.
        micro_batch_size: pairs of a forward pass on one rank.
        gradient_checkpointing: compute activations again in the backward pass.
        workers: processes that read batches of a rank, up to 256.
        checkpoint_minutes: between two checkpoints.
        wandb: ``offline``, ``online`` or ``disabled``.
        gpu: name of a GPU, read by ``plan`` alone.
        profile: run some forward passes under torch's profiler.

    Raises:
        InputError: a value that is not allowed.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset(
        {
            *("accelerator", "devices", "nodes", "strategy", "precision", "micro_batch_size"),
            *("gradient_checkpointing", "workers", "checkpoint_minutes", "wandb", "gpu", "profile"),
        }
    )

    def __init__(
        self,
        data: str,
        loss_on: str,
        epochs: float,
        max_steps: int | None,
        learning_rate: float,
        schedule: str,
        warmup: float,
        weight_decay: float,
        clip: float | None,
        batch_size: int,
        max_tokens: int,
        bucket: bool,
        pairs: int | None,
        held_out: int | None,
        validations: float,
        patience: int | None,
        keep: str,
        accelerator: str,
        devices: int,
        nodes: int,
        strategy: str,
        precision: str,
        micro_batch_size: int,
        gradient_checkpointing: bool,
        workers: int,
        checkpoint_minutes: float,
        wandb: str,
        gpu: str | None,
        profile: bool,
    ) -> None:
        given = {k: v for k, v in locals().items() if k != "self"}
        for name, allowed in WORDS.items():
            if given[name] not in allowed:
                raise InputError(f"trainer.{name}={given[name]}{did_you_mean(str(given[name]), allowed)}")
        for name in ("epochs", "learning_rate", "clip", "validations", "checkpoint_minutes"):
            if given[name] is not None and not 0 < given[name] < math.inf:
                raise InputError(f"trainer.{name}={given[name]}; allowed: above 0{', or null' * (name == 'clip')}")
        if epochs > 1e9:
            raise InputError(f"trainer.epochs={epochs}; allowed: up to 1e9")
        if learning_rate > 1e30:  # AdamW's arithmetic is in float32
            raise InputError(f"trainer.learning_rate={learning_rate}; allowed: up to 1e30")
        for name in ("warmup", "weight_decay", "workers"):
            if not 0 <= given[name] < math.inf:
                raise InputError(f"trainer.{name}={given[name]}; allowed: 0 and more")
        if warmup > 1 and warmup != round(warmup):
            raise InputError(f"trainer.warmup={warmup}; allowed: 0 to 1, a part of all steps, or whole steps")
        counts = ("max_steps", "batch_size", "pairs", "held_out", "patience", "devices", "nodes", "micro_batch_size")
        for name in counts:
            if given[name] is not None and given[name] < 1:
                raise InputError(f"trainer.{name}={given[name]}; allowed: 1 and more")
        for name, most in {"devices": PROCESSES, "workers": PROCESSES, "nodes": 10_000}.items():
            if given[name] > most:
                raise InputError(f"trainer.{name}={given[name]}; allowed: up to {most}")
        if max_tokens < 8:
            raise InputError(f"trainer.max_tokens={max_tokens}; allowed: 8 and more")
        if strategy == "auto" and devices * nodes > 1:
            got = f"trainer.devices={devices}, trainer.nodes={nodes}"
            raise InputError(f"{got}: several processes need trainer=ddp or trainer=fsdp")
        vars(self).update(given)

    @property
    def world(self) -> int:
        """Processes in all."""
        return self.devices * self.nodes

    def warm_up(self, total: int) -> int:
        """Return the steps of the warm-up, of ``total``."""
        return math.ceil(self.warmup if self.warmup >= 1 else self.warmup * total)

    def rate(self, step: int, total: int) -> float:
        """Return the learning rate of optimiser step ``step`` (from 0) of ``total``."""
        warm = self.warm_up(total)
        if step < warm:
            return self.learning_rate * (step + 1) / warm
        done = (step - warm) / max(1.0, total - warm)
        shape = {"constant": 1.0, "linear": 1 - done, "cosine": (1 + math.cos(math.pi * done)) / 2}
        return self.learning_rate * shape[self.schedule]
