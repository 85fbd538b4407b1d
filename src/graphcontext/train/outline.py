"""What the numbers of a training depend on, without any of its weights or data: for ``plan``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphcontext.train.batches import Deal
from graphcontext.train.gpus import free_gpu_gib, free_memory_gib, gpu
from graphcontext.train.memory import Place, memory
from graphcontext.train.shape import Adapter, Shape, shape_of

ASSUMED_GPU = "A100-80GB"


@dataclass(frozen=True)
class Counts:
    """Training examples; lengths in tokens, of an encoder–decoder those of source and target.

    Args:
        pairs, held_out: how many.
        prompt, answer: mean lengths.
        longest: of an example, what a batch is padded to.
        learnt: of the longest answer.
        known: "" where they were counted, else what they stand on.
    """

    pairs: int
    held_out: int
    prompt: float
    answer: float
    longest: int
    learnt: int
    known: str = ""


@dataclass(frozen=True)
class Plan:
    """What the numbers of a training depend on."""

    node: Mapping[str, Any]
    shape: Shape
    adapter: Adapter
    trainer: Mapping[str, Any]
    counts: Counts
    gpu: str | None  # named one

    @property
    def on_gpu(self) -> bool:
        return self.gpu is not None or self.trainer["accelerator"] == "gpu"

    @property
    def micro(self) -> int:
        """Examples of a forward pass."""
        trainer = self.trainer
        deal = Deal(trainer["devices"] * trainer["nodes"], trainer["micro_batch_size"])
        return deal.within(min(trainer["batch_size"], max(self.counts.pairs, 1))).micro

    def place(self) -> Place:
        """Return device, precision and processes."""
        trainer, low = self.trainer, False
        if self.on_gpu:
            here = free_gpu_gib() if self.gpu is None else None
            low = here[2] if here else gpu(self.gpu or ASSUMED_GPU).bfloat16 is not None
        low = (low and trainer["precision"] != "float32") or trainer["precision"] == "bfloat16"
        ranks = trainer["devices"] * trainer["nodes"]
        sharing = 1 if self.on_gpu else trainer["devices"]
        small = low and self.node.get("dtype", "auto") != "float32"
        return Place("gpu" if self.on_gpu else "cpu", low, small, ranks, sharing, trainer["strategy"])

    def parts(self) -> dict[str, float]:
        """Return part → GiB of one process."""
        counts, trainer = self.counts, {**self.trainer, "micro_batch_size": self.micro}
        return memory(self.shape, self.adapter, trainer, counts.longest, self.place(), counts.learnt)

    def needed(self) -> float:
        """Return GiB on one device."""
        return sum(self.parts().values()) * self.place().per_machine

    def free(self) -> tuple[str, float | None]:
        """Return the device's name and GiB free on it, None where that is not known."""
        if self.gpu is not None:
            return self.gpu, gpu(self.gpu).memory
        if not self.on_gpu:
            return "cpu", free_memory_gib()
        here = free_gpu_gib()
        return (here[0], here[1]) if here else (ASSUMED_GPU, gpu(ASSUMED_GPU).memory)


def plan_of(config: Mapping[str, Any], counts: Counts) -> Plan:
    """Return what a training's numbers depend on.

    Args:
        config: resolved, composed with ``primary="train"``.
        counts: of its examples.

    Raises:
        InputError: a value that is not allowed, a model without figures, an unknown GPU or target.
    """
    from graphcontext.train.key import base
    from graphcontext.train.together import build

    build(dict(config))
    node, trainer = base(dict(config)), config["trainer"]
    return Plan(node, shape_of(node), Adapter.of(config["adapter"]), trainer, counts, trainer.get("gpu"))
