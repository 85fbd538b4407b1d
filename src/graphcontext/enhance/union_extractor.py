"""Triples of several extractors, joined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from graphcontext.data.records import Passage
from graphcontext.enhance.triples import Extraction
from graphcontext.errors import InputError


class Union:
    r"""Joins the triples that several extractors find in a passage (GraphContextGen §4.3, Algorithm 1).

    .. math:: \tau_{init} = \tau_M \cup \tau_{REBEL}

    Triples stand in the order of the parts, each once. What a part says of a passage (``2 malformed``) stands in
    ``reason`` under its name. A passage is ``failed`` only where every part failed; the kinds of failure of some stand
    in ``lost``, to be counted.

    Args:
        parts: name → extractor: each has ``extract(passages) -> list[Extraction]``, ``name`` and ``repeatable``.

    Raises:
        InputError: no parts.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, parts: dict[str, Any]) -> None:
        if not isinstance(parts, dict) or not parts:
            raise InputError(f"extractor.parts={parts}; allowed: at least one extractor, by name")
        self.parts = parts

    @classmethod
    def identity(cls, config: dict[str, Any]) -> dict[str, Any]:
        """Return the order of the parts, in which their triples stand."""
        return {"order": list(config["parts"])}

    @property
    def name(self) -> str:
        """The names of the parts: ``llm ∪ rebel``."""
        return " ∪ ".join(self.parts)

    @property
    def repeatable(self) -> bool:
        """Whether a failure would repeat itself, whichever part it is of."""
        return all(getattr(part, "repeatable", False) for part in self.parts.values())

    def extract(self, passages: Sequence[Passage]) -> list[Extraction]:
        """Return the triples of each passage, by index; one part after the other reads all passages."""
        found = {name: part.extract(passages) for name, part in self.parts.items()}
        return [join(dict(zip(found, each, strict=True))) for each in zip(*found.values(), strict=True)]


def join(found: dict[str, Extraction]) -> Extraction:
    """Return the union of what the parts found in one passage.

    >>> join({"llm": Extraction(status="failed", reason="parse: x"), "rebel": Extraction((("a", "b", "c"),))})
    Extraction(triples=(('a', 'b', 'c'),), status='ok', reason='llm: parse: x', lost='llm parse')
    """
    failed = {name: e.reason or "unknown" for name, e in found.items() if e.status == "failed"}
    lost = ", ".join(f"{name} {reason.partition(':')[0]}" for name, reason in failed.items())
    if len(failed) == len(found):
        return Extraction(status="failed", reason=f"{lost}: {next(iter(failed.values()))}")
    triples = tuple(dict.fromkeys(t for e in found.values() for t in e.triples))
    said = "; ".join(f"{name}: {e.reason}" for name, e in found.items() if e.reason)
    return Extraction(triples, "ok" if triples else "empty", said or None, lost or None)
