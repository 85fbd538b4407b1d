"""Read the items of a data set in JSON, one list a file or one object a line: every fault with file and item."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from graphcontext.data.json_lines import LONGEST_ID, kind_of, rows
from graphcontext.data.packed import DAMAGE, open_bytes
from graphcontext.errors import InputError

MEND = "fetch it again, or name another file by dataset.path"


@dataclass(frozen=True, slots=True)
class Part:
    """A value of an item, and where it stands.

    Args:
        path: the file.
        item: which item: ``item 3``, ``line 3`` or ``question 5a7f6fd7``.
        name: the keys that lead to the value, empty for the item itself.
        value: what stands there.
    """

    path: Path
    item: str
    name: str
    value: Any

    def fail(self, message: str) -> NoReturn:
        """Raise an :class:`InputError` that names file, item and key."""
        raise InputError(f"{self.path}: {' '.join(f'{self.item}: {self.name} {message}'.split())}")

    def get(self, key: str) -> Part:
        """Return what an object holds under ``key``.

        Raises:
            InputError: it is no object, or has no such key.
        """
        if not isinstance(self.value, dict):
            self.fail(f"is {kind_of(self.value)}, expected an object")
        name = f"{self.name}.{key}" if self.name else key
        if key not in self.value:
            listed = ", ".join(k[:40] for k in list(self.value)[:8]) or "none"
            self.fail(f"has no key {key}; its keys: {listed}")
        return Part(self.path, self.item, name, self.value[key])

    def has(self, key: str) -> bool:
        """Tell whether an object holds more than null under ``key``."""
        return isinstance(self.value, dict) and self.value.get(key) is not None

    def entries(self) -> list[Part]:
        """Return the entries of a list."""
        if not isinstance(self.value, list):
            self.fail(f"is {kind_of(self.value)}, expected a list")
        return [Part(self.path, self.item, f"{self.name}[{i}]", value) for i, value in enumerate(self.value)]

    def pair(self, names: str) -> tuple[Part, Part]:
        """Return the two entries of a list of two; ``names`` says what they are."""
        entries = self.entries()
        if len(entries) != 2:
            self.fail(f"is a list of {len(entries)}, expected [{names}]")
        return entries[0], entries[1]

    def text(self) -> str:
        """Return a text."""
        if not isinstance(self.value, str):
            self.fail(f"is {kind_of(self.value)}, expected text")
        return self.value

    def texts(self) -> tuple[str, ...]:
        """Return a list of texts."""
        if isinstance(self.value, list) and all(type(value) is str for value in self.value):
            return tuple(self.value)
        return tuple(entry.text() for entry in self.entries())

    def number(self) -> int:
        """Return a whole number."""
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            self.fail(f"is {kind_of(self.value)}, expected a whole number")
        return self.value

    def truth(self) -> bool:
        """Return true or false."""
        if not isinstance(self.value, bool):
            self.fail(f"is {kind_of(self.value)}, expected true or false")
        return self.value

    def identifier(self) -> str:
        """Return an id: text, or a whole number as text."""
        if isinstance(self.value, bool) or not isinstance(self.value, str | int):
            self.fail(f"is {kind_of(self.value)}, expected text or a whole number")
        text = str(self.value)
        if not text.strip() or len(text) > LONGEST_ID or min(text) < " ":
            self.fail(f"is {text[:40]!r}, expected 1 to {LONGEST_ID} characters without line breaks")
        return text

    def named(self, item: str) -> Part:
        """Return the same with another word for the item."""
        return replace(self, item=item)


def read_json(path: Path) -> Any:
    """Return the value of a JSON file, plain or ``.gz``.

    Raises:
        InputError: cut or damaged, no UTF-8, no JSON, NaN or infinity, half a surrogate pair.
    """
    try:
        with open_bytes(path) as stream:
            raw = stream.read()
        values = json.loads(raw.decode("utf-8-sig"), parse_constant=_no_number)
        if b"\\ud" in raw or b"\\uD" in raw:
            json.dumps(values, ensure_ascii=False).encode()
    except DAMAGE as fault:
        raise InputError(f"{path} is cut or damaged: {fault}; {MEND}") from fault
    except UnicodeDecodeError as fault:
        raise InputError(f"{path} is no UTF-8 text ({fault.reason} at byte {fault.start}); {MEND}") from fault
    except UnicodeEncodeError as fault:
        raise InputError(f"{path} holds half of a surrogate pair, which is no character; {MEND}") from fault
    except json.JSONDecodeError as fault:
        cut = "the file ends too early: it is cut" if not raw[fault.pos :].strip() else fault.msg
        raise InputError(f"{path} is no JSON: {cut} (line {fault.lineno}, character {fault.colno}); {MEND}") from fault
    except (ValueError, RecursionError) as fault:
        reason = "nested too deep" if isinstance(fault, RecursionError) else str(fault)
        raise InputError(f"{path} is no JSON: {reason}; {MEND}") from fault
    return values


def items(path: Path) -> Iterator[Part]:
    """Yield the items of a JSON list.

    Raises:
        InputError: what :func:`read_json` raises; no list.
    """
    values = read_json(path)
    if not isinstance(values, list):
        raise InputError(f"{path} holds {kind_of(values)}, expected a list of items; {MEND}")
    for n, value in enumerate(values):
        yield Part(path, f"item {n}", "", value)


def line_items(path: Path) -> Iterator[Part]:
    """Yield the objects of a JSONL file."""
    for row in rows(path):
        yield Part(path, f"line {row.line}", "", row.values)


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON")
