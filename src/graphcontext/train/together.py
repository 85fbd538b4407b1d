"""What of a training only fits together in some ways; looked at before anything is loaded, and by ``validate``."""

from __future__ import annotations

from typing import Any

from graphcontext.errors import InputError
from graphcontext.train.key import base
from graphcontext.train.settings import TrainerSettings


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
    quantization = base(config).get("quantization", "none")
    if adapter.kind != "qlora" and quantization != "none":
        mend = "adapter=qlora for a 4-bit base, or llm.quantization=none"
        raise InputError(f"adapter={adapter.kind} with llm.quantization={quantization}: {mend}")
