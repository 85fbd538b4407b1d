"""Stream JSONL files of a user's own: one JSON object a line, every fault with file and line."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from graphcontext.data.packed import DAMAGE, open_bytes
from graphcontext.errors import InputError

LONGEST_ID = 500
KINDS = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}


@dataclass(frozen=True, slots=True)
class Row:
    """One object of a file, and where it stands."""

    path: Path
    line: int
    values: dict[str, Any]

    def fail(self, message: str) -> NoReturn:
        """Raise an :class:`InputError` that names file and line."""
        raise InputError(f"{self.path}: line {self.line}: {message}")

    def key(self, *names: str) -> str:
        """Return the first of ``names`` that the object has.

        Raises:
            InputError: it has none.
        """
        for name in names:
            if name in self.values:
                return name
        listed = ", ".join(list(self.values)[:8]) or "none"
        self.fail(f"no key {' or '.join(names)}; its keys: {listed}")

    def text(self, *names: str) -> str:
        """Return the text under the first of ``names``."""
        name = self.key(*names)
        value = self.values[name]
        if not isinstance(value, str):
            self.fail(f"{name} is {kind_of(value)}, expected text")
        return value

    def optional_text(self, name: str) -> str:
        """Return the text under ``name``, empty where there is none or it is null."""
        return "" if self.values.get(name) is None else self.text(name)

    def identifier(self, *names: str) -> str:
        """Return the id under the first of ``names``: text, or a whole number as text."""
        name = self.key(*names)
        value = self.values[name]
        if isinstance(value, bool) or not isinstance(value, str | int):
            self.fail(f"{name} is {kind_of(value)}, expected text or a whole number")
        text = str(value)
        if not text.strip() or len(text) > LONGEST_ID or min(text) < " ":
            self.fail(f"{name} is {text[:40]!r}, expected 1 to {LONGEST_ID} characters without line breaks")
        return text

    def list_of(self, name: str, read: Callable[[Row], str]) -> tuple[str, ...]:
        """Return the list under ``name``, empty where there is none or it is null.

        Args:
            name: the key.
            read: takes one entry, as a row that holds it under ``name``.
        """
        value = self.values.get(name)
        if value is None:
            return ()
        if not isinstance(value, list):
            self.fail(f"{name} is {kind_of(value)}, expected a list")
        return tuple(read(Row(self.path, self.line, {f"{name}[{i}]": entry})) for i, entry in enumerate(value))

    def unread(self, known: frozenset[str]) -> set[str]:
        """Return the keys that nothing reads; one that is nearly a known key which is not there is refused."""
        unknown = self.values.keys() - known
        for name in sorted(unknown):
            near = _nearest(name, known)
            if near and near not in self.values:
                self.fail(f"key {name[:40]}; did you mean {near}? rename it, or leave it out")
        return unknown


def entry(row: Row) -> str:
    """Return the text of a list's entry."""
    return row.text(next(iter(row.values)))


def entry_id(row: Row) -> str:
    """Return the id that is a list's entry."""
    return row.identifier(next(iter(row.values)))


def rows(path: Path) -> Iterator[Row]:
    """Yield the objects of a JSONL file (plain or ``.gz``), in constant memory; blank lines are passed over.

    Raises:
        InputError: with file and line: no UTF-8, no JSON, NaN or infinity, no object, or half a surrogate pair.
    """
    number = 0
    try:
        with open_bytes(path) as stream:
            for number, raw in enumerate(stream, 1):
                values = _parse(path, number, raw)
                if values is not None:
                    yield Row(path, number, values)
    except DAMAGE as fault:
        raise InputError(f"{path} is cut or damaged after line {number}: {fault}; fetch it again") from fault


def kind_of(value: Any) -> str:
    """Name the JSON type of a value."""
    return KINDS.get(type(value), "a number")


@cache
def _nearest(name: str, known: frozenset[str]) -> str:
    close = difflib.get_close_matches(name.lower(), sorted(known), n=1, cutoff=0.8)
    return close[0] if close else ""


def _parse(path: Path, number: int, raw: bytes) -> dict[str, Any] | None:
    where = f"{path}: line {number}"
    try:
        line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        if not line.strip():
            return None
        values = json.loads(line, parse_constant=_no_number)
        if "\\ud" in line.lower():
            json.dumps(values, ensure_ascii=False).encode()
    except UnicodeDecodeError as fault:
        raise InputError(f"{where} is no UTF-8 text ({fault.reason}); save the file as UTF-8") from fault
    except UnicodeEncodeError as fault:
        raise InputError(f"{where} holds half of a surrogate pair, which is no character") from fault
    except (ValueError, RecursionError) as fault:
        reason = "nested too deep" if isinstance(fault, RecursionError) else str(fault).partition(": line ")[0]
        raise InputError(f"{where} is no JSON: {reason}; expected one object a line") from fault
    if not isinstance(values, dict):
        raise InputError(f"{where} holds {kind_of(values)}; expected one JSON object a line")
    return values


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON")
