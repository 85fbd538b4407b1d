"""What transformers that read sentences in batches share: their arguments, and what names their weights."""

from __future__ import annotations

from typing import Any, ClassVar

from graphcontext import models
from graphcontext.errors import InputError


class BatchedModel:
    """A model of the hub or of a folder; which sentences share a forward pass, and where it runs, change no result.

    Args:
        model: hub name or local folder.
        revision: commit of a hub model; null: what is in the cache, named by its commit in the key.
        batch_size: inputs per forward pass (execution).
        device: ``auto``, ``cpu`` or ``cuda`` (execution).

    Raises:
        InputError: ``batch_size`` below 1.
    """

    execution: ClassVar[frozenset[str]] = frozenset({"batch_size", "device"})

    def __init__(self, model: str, revision: str | None = None, batch_size: int = 16, device: str = "auto") -> None:
        if batch_size < 1:
            raise InputError(f"batch_size={batch_size}; allowed: 1 and more")
        self.model, self.revision, self.batch_size, self.device = model, revision, batch_size, device

    @classmethod
    def identity(cls, config: dict[str, Any]) -> dict[str, Any]:
        """Return the facts that name the weights in a cache key."""
        return models.identity(config["model"], config.get("revision"))

    @property
    def signature(self) -> str:
        """Model with the first digits of what names its weights."""
        return models.signature(self.model, self.revision)
