"""Prompts: a question and its context become chat messages."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from graphcontext.errors import InputError, did_you_mean
from graphcontext.files import digest
from graphcontext.generate.chat import Message

KEYS = ("system", "user", "user_without_context", "answer_prefix")
_FIELD = re.compile(r"\{(question|context|reference|prediction)\}")


class Prompt:
    """A system text and a user text with the fields ``{question}`` and ``{context}``, filled in one pass.

    A prompt for grading has ``{reference}`` and ``{prediction}`` too; elsewhere these stay as they are.

    Args:
        system: system text; empty sends none.
        user: user text where there is context.
        user_without_context: user text where there is none; empty means ``user`` with an empty context.
        answer_prefix: text that opens the answer; the model writes what comes after it.
        path: JSON or YAML file with the same keys, such as a paper's verbatim text; it replaces the texts
            that it names. Its content enters the cache key, its path does not.

    Raises:
        InputError: no such file, an unknown key in it, ``user`` with neither ``{question}`` nor ``{context}``,
            or ``user_without_context`` without ``{question}``. Which field ``user`` must hold, who takes the
            prompt says (:meth:`require`): the question for answers, the context for extraction.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset({"path"})

    neutral: ClassVar[dict[str, Any]] = {"answer_prefix": ""}

    def __init__(
        self,
        system: str,
        user: str,
        user_without_context: str = "",
        answer_prefix: str = "",
        path: str | None = None,
    ) -> None:
        texts = dict(zip(KEYS, (system, user, user_without_context, answer_prefix)))
        texts |= _read(path) if path else {}
        self.system, self.user = texts["system"], texts["user"]
        self.user_without_context, self.answer_prefix = texts["user_without_context"], texts["answer_prefix"]
        self.path = path
        if "{question}" not in self.user and "{context}" not in self.user:
            raise InputError(f"prompt.user{self._where()} has neither {{question}} nor {{context}}")
        if self.user_without_context and "{question}" not in self.user_without_context:
            raise InputError(f"prompt.user_without_context{self._where()} lacks {{question}}")

    def require(self, field: str, purpose: str) -> None:
        """Check that ``user`` shows ``field``, without which every request would be the same.

        Raises:
            InputError: naming the field and what the prompt is for.
        """
        if f"{{{field}}}" not in self.user:
            raise InputError(f"prompt.user{self._where()} lacks {{{field}}}; {purpose} needs it")

    def _where(self) -> str:
        return f" (prompt.path={self.path})" if self.path else ""

    @classmethod
    def identity(cls, config: dict[str, Any]) -> dict[str, Any]:
        """Return the hash of the file's texts, where there is a file."""
        return {"file": digest(_read(config["path"]))} if config.get("path") else {}

    def render(self, question: str, context: str = "", **more: str) -> tuple[Message, ...]:
        """Return the chat messages; braces in the question or the context stay as they are."""
        bare = not context.strip() and self.user_without_context
        template = self.user_without_context if bare else self.user
        values = {"question": question, "context": context, **more}
        user = {"role": "user", "content": _FIELD.sub(lambda m: values.get(m[1], m[0]), template)}
        opened = ({"role": "assistant", "content": self.answer_prefix},) if self.answer_prefix else ()
        return (*(({"role": "system", "content": self.system},) if self.system else ()), user, *opened)


def _read(path: str) -> dict[str, str]:
    import yaml

    file = Path(os.path.expanduser(path))
    if not file.is_file():
        raise InputError(f"prompt.path={path} is not a file; expected JSON or YAML with {', '.join(KEYS)}")
    try:
        text = file.read_text(encoding="utf-8")
        found = json.loads(text) if file.suffix == ".json" else yaml.safe_load(text)
    except (ValueError, yaml.YAMLError) as error:
        raise InputError(f"prompt.path={path}: {str(error).splitlines()[0]}") from error
    if not isinstance(found, Mapping):
        raise InputError(f"prompt.path={path} holds {type(found).__name__}; expected {', '.join(KEYS)}")
    for key, value in found.items():
        if key not in KEYS:
            raise InputError(f"prompt.path={path}: no key {key}{did_you_mean(str(key), KEYS)}")
        if not isinstance(value, str):
            raise InputError(f"prompt.path={path}: {key} is {type(value).__name__}; expected text")
    return dict(found)
