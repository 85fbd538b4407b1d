"""What of a training only fits together in some ways; looked at before anything is loaded, and by ``validate``."""

from __future__ import annotations

from typing import Any

from graphcontext.component import instantiate, locate
from graphcontext.errors import InputError
from graphcontext.train.adapter import check_class
from graphcontext.train.gpus import gpu
from graphcontext.train.key import base
from graphcontext.train.settings import TrainerSettings


def build(config: dict[str, Any]) -> tuple[TrainerSettings, Any]:
    """Construct trainer and adapter of a training, and check what has to fit together; nothing is loaded.

    Args:
        config: resolved, composed with ``primary="train"``.

    Raises:
        InputError: a value that is not allowed, or that does not fit another.
    """
    if config["trainer"].get("gpu") is not None:
        gpu(config["trainer"]["gpu"])
    check_class(locate(config["adapter"]["_target_"], "adapter"))
    settings, adapter = (instantiate(config[name], name) for name in ("trainer", "adapter"))
    if "bi_encoder" in config:  # wrong values are wrong where nothing reads them too
        instantiate(config["bi_encoder"], "bi_encoder")
    check_together(config, settings, adapter)
    return settings, adapter


def check_together(config: dict[str, Any], settings: TrainerSettings, adapter: Any) -> None:
    """Check what only fits together in some ways.

    Args:
        config: resolved, composed with ``primary="train"``.
        settings: its trainer.
        adapter: its adapter.

    Raises:
        InputError: saying why, and what would do.
    """
    if adapter.kind == "none" and settings.world > 1:
        raise InputError(f"adapter=none with {settings.world} processes: it trains nothing; trainer=cpu or trainer=gpu")
    if adapter.kind == "qlora" and settings.strategy == "fsdp":
        why = "4-bit weights are packed with their scales, so a shard of them cannot be computed with"
        raise InputError(f"adapter=qlora with trainer=fsdp: {why}; adapter=lora trainer=fsdp, or trainer=ddp")
    if settings.data == "bi_encoder":
        loss = instantiate(config["bi_encoder"], "bi_encoder")
        if loss.negatives == 0 and settings.batch_size == 1:
            why = "a question's passage is then its only candidate, and nothing is learnt"
            raise InputError(f"bi_encoder.negatives=0 with trainer.batch_size=1: {why}; raise one of them")
        if adapter.kind not in ("none", "full"):
            mend = "adapter=full, or none to measure it"
            raise InputError(f"adapter={adapter.kind}: an encoder is trained whole; {mend}")
        if settings.world > 1 or settings.strategy == "fsdp":
            why = "every passage of a step is a candidate for all of its questions"
            raise InputError(f"trainer.data=bi_encoder trains in one process ({why}); trainer=cpu or trainer=gpu")
    quantization = base(config).get("quantization", "none")
    if adapter.kind != "qlora" and quantization != "none":
        mend = "adapter=qlora for a 4-bit base, or llm.quantization=none"
        raise InputError(f"adapter={adapter.kind} with llm.quantization={quantization}: {mend}")
