"""Triples that a language model names."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from graphcontext.data.records import Passage
from graphcontext.enhance.triples import Extraction, Triple
from graphcontext.errors import InputError
from graphcontext.generate.chat import ChatRequest, ChatResponse
from graphcontext.generate.prompt import Prompt

_FENCE = re.compile(r"^```[\w-]*\n|\n?```\s*$")
_BULLET = re.compile(r"^\s*(?:[-*•]|\(?\d+[.)])\s+")
_JSON_START = re.compile(r"\[\s*(?:\[|\{)|\{\s*\"")  # after words such as "Here is the JSON:"
_NOTHING = frozenset(("none", "no triples", "no facts", "n/a"))


class LLMExtractor:
    """Asks a language model for the triples of each passage (GraphContextGen §4.3: τ_init from M).

    An answer is JSON (``[[head, relation, tail], …]``, or objects with these keys, or either under
    ``triples``), or one ``head | relation | tail`` a line. ``[]`` is an empty answer. Text that is neither
    is ``failed`` (parse), JSON that the token limit cut is ``failed`` (truncated); the next run asks both
    again. Of lines, those that are whole count: a cut last line and malformed ones are dropped and counted
    in ``reason``.

    Differs from the paper: its prompt is unknown, ours is our own wording.

    Args:
        llm: has ``chat(requests, role, max_new_tokens, check)``.
        prompt: its ``{context}`` is the passage.
        max_new_tokens: most tokens of one answer.
        max_triples: per passage, the first ones.

    Raises:
        InputError: a limit below 1, or a prompt that does not show the passage.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()
    name: ClassVar[str] = "llm"

    def __init__(self, llm: Any, prompt: Prompt, max_new_tokens: int, max_triples: int) -> None:
        if max_new_tokens < 1 or max_triples < 1:
            got = f"max_new_tokens={max_new_tokens}, max_triples={max_triples}"
            raise InputError(f"extractor: {got}; allowed: 1 and more")
        prompt.require("context", "an extraction")
        self.llm, self.prompt = llm, prompt
        self.max_new_tokens, self.max_triples = max_new_tokens, max_triples

    @property
    def repeatable(self) -> bool:
        """Whether a failure would repeat itself: greedy decoding on this machine."""
        return bool(getattr(self.llm, "repeatable", False))

    def extract(self, passages: Sequence[Passage]) -> list[Extraction]:
        """Return the triples of each passage's ``context_text``, by index; one call per passage."""
        requests = [ChatRequest(p.id, self.prompt.render("", p.context_text)) for p in passages]
        responses = self.llm.chat(requests, "extractor", self.max_new_tokens, check=_fault)
        return [self._extraction(response) for response in responses]

    def _extraction(self, response: ChatResponse) -> Extraction:
        if response.status == "failed":
            return Extraction(status="failed", reason=response.reason)
        parsed = parse_triples(response.text, response.finish == "length")
        if parsed.fault:
            return Extraction(status="failed", reason=parsed.fault)
        triples = tuple(dict.fromkeys(parsed.triples))[: self.max_triples]
        reason = f"{parsed.n_malformed} malformed" if parsed.n_malformed else None
        return Extraction(triples, "ok" if triples else "empty", reason)


@dataclass(frozen=True)
class Parsed:
    """What an answer says; ``fault`` is ``parse: …`` or ``truncated: …`` where it cannot be read."""

    triples: tuple[Triple, ...] = ()
    n_malformed: int = 0
    fault: str | None = None


def parse_triples(text: str, was_cut: bool = False) -> Parsed:
    """Read triples from an answer; ``was_cut`` says that the token limit ended it.

    >>> parse_triples("ss | lists | sockets").triples
    (('ss', 'lists', 'sockets'),)
    >>> parse_triples("[]"), parse_triples("not json").fault
    (Parsed(triples=(), n_malformed=0, fault=None), 'parse: no triple in "not json"')
    """
    text = _FENCE.sub("", text.strip()).strip()
    if not text or text.strip(" .").lower() in _NOTHING:
        return Parsed()
    if text[0] in "[{":
        return _parse_json(text, was_cut)
    lines = [line for line in text.splitlines() if line.strip()]
    cut = lines.pop() if was_cut and len(lines) > 1 else None
    triples = [t for line in lines if (t := _triple(_BULLET.sub("", line).split("|"))) is not None]
    if not triples and (start := _JSON_START.search(text)) is not None:
        return _parse_json(text[start.start() :], was_cut)
    if not triples:
        kind = "truncated" if was_cut else "parse"
        return Parsed(fault=f'{kind}: no triple in "{text.splitlines()[0][:60]}"')
    return Parsed(tuple(triples), len(lines) - len(triples) + (cut is not None))


def _parse_json(text: str, was_cut: bool) -> Parsed:
    try:
        found, _ = json.JSONDecoder().raw_decode(text)  # what follows the JSON is talk
    except json.JSONDecodeError as error:
        ended = error.pos >= len(text.rstrip()) or "Unterminated string" in error.msg
        kind = "truncated" if was_cut or ended else "parse"
        return Parsed(fault=f"{kind}: {error.msg} at character {error.pos}")
    if isinstance(found, dict):
        found = found.get("triples", [found])
    if not isinstance(found, list):
        return Parsed(fault=f"parse: triples is {type(found).__name__}")
    if len(found) == 3 and all(isinstance(part, str) for part in found):
        found = [found]
    triples = [t for entry in found if (t := _triple(entry)) is not None]
    if found and not triples:
        return Parsed(fault=f"parse: none of {len(found)} entries is [head, relation, tail]")
    return Parsed(tuple(triples), len(found) - len(triples))


def _triple(entry: Any) -> Triple | None:
    if isinstance(entry, dict):
        entry = [entry.get(key) for key in ("head", "relation", "tail")]
    if not isinstance(entry, list) or len(entry) != 3 or not all(isinstance(part, str) for part in entry):
        return None
    head, relation, tail = (" ".join(part.split()).strip(" \"'") for part in entry)
    return (head, relation, tail) if head and relation and tail else None


def _fault(response: ChatResponse) -> str | None:
    return parse_triples(response.text, response.finish == "length").fault
