"""Tokenizers that count: what a context budget is measured in."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from graphcontext import models
from graphcontext.whole import load_tokenizer

WORDS = "words"
_WORD = re.compile(r"\w+|[^\w\s]")


class ModelTokenizer:
    """Counts the tokens of a model's own tokenizer, special ones left out.

    Args:
        model: embedded name, local folder, or hub name; ``words`` counts as :class:`Words` does, for models
            behind an API, whose tokenizer is not here.
        revision: hub commit; null for embedded models and folders.

    Raises:
        MissingWeightsError: at the first count, when the model is not on this machine.
        InputError: at the first count, when its tokenizer's files are missing or damaged.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, model: str, revision: str | None = None) -> None:
        self.model, self.revision = model, revision
        self._tokenizer: Any = None

    @classmethod
    def identity(cls, config: dict[str, Any]) -> dict[str, Any]:
        """Return the hash of the model's files."""
        if config["model"] == WORDS:
            return {}
        return models.identity(config["model"], config.get("revision"))

    def count(self, text: str) -> int:
        """Return the number of tokens of ``text``."""
        if self.model == WORDS:
            return Words().count(text)
        if self._tokenizer is None:
            self._tokenizer = load_tokenizer(models.resolve(self.model, self.revision))
        ids = self._tokenizer(text, add_special_tokens=False, truncation=False, verbose=False)["input_ids"]
        return len(ids)


class Words:
    """Counts words and punctuation marks, without any weights.

    >>> Words().count("Don't panic: run ls -la")
    9
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()

    def count(self, text: str) -> int:
        """Return the number of words and punctuation marks of ``text``."""
        return sum(1 for _ in _WORD.finditer(text))
