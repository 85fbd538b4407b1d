"""Packing: what of a context fits the token budget."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from graphcontext.data.records import Context, Unit
from graphcontext.errors import InputError

SEPARATOR = "\n\n"


class Packing:
    """Keeps the units of a context that fit a token budget, in their order, each whole or not at all.

    A unit costs its own tokens and, but for the first, those of the blank line before it. A unit that does
    not fit is cut and counted; smaller ones after it may still fit.

    Args:
        tokenizer: has ``count(text) -> int``.
        max_tokens: budget of the joined context; null keeps everything.

    Raises:
        InputError: a budget below 1.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, tokenizer: Any, max_tokens: int | None) -> None:
        if max_tokens is not None and max_tokens < 1:
            raise InputError(f"packing.max_tokens={max_tokens}; allowed: 1 and more, or null for no limit")
        self.tokenizer, self.max_tokens = tokenizer, max_tokens

    def pack(self, context: Context) -> Context:
        """Return the context with the units that fit, its ``n_tokens`` and its ``n_cut``."""
        between = self.tokenizer.count(SEPARATOR)
        kept: list[Unit] = []
        used = 0
        for unit in context.units:
            cost = self.tokenizer.count(unit.text) + (between if kept else 0)
            if self.max_tokens is None or used + cost <= self.max_tokens:
                kept.append(unit)
                used += cost
        return replace(context, units=tuple(kept), n_tokens=used, n_cut=len(context.units) - len(kept))
