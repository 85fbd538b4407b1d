"""Routes: whether a question asks for content or for parts of documents, and which (KGP §4.1, structural questions)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from graphcontext.data.records import Question
from graphcontext.errors import InputError
from graphcontext.generate.chat import ChatRequest, ChatResponse
from graphcontext.generate.prompt import Prompt

_WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_NTH = (
    *("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"),
    *("eleventh", "twelfth"),
)
_COUNT = "|".join(_WORDS[1:])
_ORDINAL = rf"{'|'.join(_NTH)}|\d{{1,6}}(?:st|nd|rd|th)|last|final|penultimate|(?:second|next)[- ](?:to[- ])?last"
_LABEL = r"[A-Z]{1,2}[-.]?\d+(?:\.\d+)*|\d+(?:[-.]\d+)*[a-z]?"
_NUMBER = rf"\d{{1,6}}|{'|'.join(_WORDS)}"
_AND = r"\s*(?:,\s*(?:and\s+|or\s+)?|\band\b|\bor\b|&)\s*"
_TO = r"\s*(?:-|–|—|\bto\b|\bthrough\b)\s*"
_PAGES = re.compile(
    rf"\b(?:pages?|pgs?\.|pp?\.)\s*(?:numbers?\s+|no\.\s*)?(?P<list>(?:{_NUMBER})\b(?:(?:{_AND}|{_TO})(?:pages?\s+)?"
    rf"(?:{_NUMBER})\b)*)",
    re.IGNORECASE,
)
_NTH_PAGE = re.compile(rf"\b(?P<nth>{_ORDINAL})(?:{_AND}(?:the\s+)?(?P<other>{_ORDINAL}))?\s+pages?\b", re.IGNORECASE)
_MANY_PAGES = re.compile(rf"\b(?P<end>first|last)\s+(?P<n>\d{{1,6}}|{_COUNT})\s+pages\b", re.IGNORECASE)
_TABLES = re.compile(
    rf"\btab(?:les?|\.)\s*(?:numbers?\s+|no\.\s*)?(?P<list>(?:{_LABEL})\b(?:{_AND}(?:tables?\s+)?(?:{_LABEL})\b)*)",
    re.IGNORECASE,
)
_NTH_TABLE = re.compile(rf"\b(?P<nth>{_ORDINAL})\s+table\b", re.IGNORECASE)
_ANY_TABLE = re.compile(
    r"\btables?\b[^.?!]{0,40}\bpages?\b|"
    r"\b(?:how\s+many|which|what|all|list|every|each|number\s+of|the)\s+(?:of\s+the\s+|the\s+)?tables?\b",
    re.IGNORECASE,
)
_ALL_TABLES = re.compile(
    r"\b(?:how\s+many\s+tables|(?:list|show|name)\s+(?:all\s+|every\s+)?(?:of\s+)?(?:the\s+)?tables|"
    r"all\s+(?:of\s+)?(?:the\s+)?tables|number\s+of\s+tables)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Route:
    """What of a document's structure a question asks for.

    Args:
        pages: numbers from 1; −1 is the last page, −2 the one before it.
        tables: numbers of tables as their captions have them (``2``, ``A-1``).
        nth_tables: tables by their order in the document, or on the pages: 1 is the first, −1 the last.
        all_tables: all tables of the pages, or of the document where no page is named.
        reason: why another way of routing was taken, None where none was.
    """

    pages: tuple[int, ...] = ()
    tables: tuple[str, ...] = ()
    nth_tables: tuple[int, ...] = ()
    all_tables: bool = False
    reason: str | None = None

    @property
    def is_structural(self) -> bool:
        """Whether the question asks for pages or tables."""
        return bool(self.pages or self.tables or self.nth_tables or self.all_tables)

    def __str__(self) -> str:
        said = [f"pages {', '.join(map(str, self.pages))}"] if self.pages else []
        said += [f"tables {', '.join(self.tables)}"] if self.tables else []
        said += [f"tables in order {', '.join(map(str, self.nth_tables))}"] if self.nth_tables else []
        said += ["all tables"] if self.all_tables else []
        return "structure: " + "; ".join(said) if said else "content"


class RuleRouter:
    """Tells structural questions by their words (KGP §4.1: a classifier in front of the traversal).

    "page 3", "pages 2 and 5", "pages 2 to 4", "on the second page", "the last two pages", "Table 2", "Tables A-1 and
    A-2", "the first table", "the table on page 4", "how many tables are on page 3". Others ask for content.

    Differs from the paper: it lets a language model decide (:class:`LLMRouter`).
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()

    def route(self, questions: Sequence[Question]) -> list[Route]:
        """Return each question's route."""
        return [parse(question.text) for question in questions]


class LLMRouter:
    """Asks a language model whether a question asks for structure or content, and for which nodes (KGP §4.1).

    The answer is one JSON object, ``{"kind": "structure", "pages": [3], "tables": ["2"]}`` or ``{"kind": "content"}``.
    What is none, or a failed call, is routed by :class:`RuleRouter`, and said in the ranking's reason.

    Args:
        llm: has ``chat(requests, role, max_new_tokens)``.
        prompt: its ``{question}`` is the question.
        max_new_tokens: most tokens of an answer, ≥ 1.

    Raises:
        InputError: ``max_new_tokens`` below 1, or a prompt that does not show the question.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, llm: Any, prompt: Prompt, max_new_tokens: int) -> None:
        if max_new_tokens < 1:
            raise InputError(f"router.max_new_tokens={max_new_tokens}; allowed: 1 and more")
        prompt.require("question", "routing")
        self.llm, self.prompt, self.max_new_tokens = llm, prompt, max_new_tokens

    def route(self, questions: Sequence[Question]) -> list[Route]:
        """Return each question's route, all calls as one batch."""
        requests = [ChatRequest(f"{q.id}/route", self.prompt.render(q.text)) for q in questions]
        answers = self.llm.chat(requests, "router", self.max_new_tokens)
        return [_answered(question, answer) for question, answer in zip(questions, answers, strict=True)]


def _answered(question: Question, answer: ChatResponse) -> Route:
    said = _object(answer.text) if answer.status == "ok" else None
    if said is None or said.get("kind") not in ("structure", "content"):
        why = answer.reason or "failed" if answer.status == "failed" else "parse"
        return Route(**{**vars(parse(question.text)), "reason": f"routed by rules: router: {why}"})
    if said["kind"] == "content":
        return Route()
    pages = tuple(n for n in _listed(said.get("pages")) if isinstance(n, int) and not isinstance(n, bool) and n)
    tables = tuple(str(n).casefold() for n in _listed(said.get("tables")) if isinstance(n, int | str))
    if not pages and not tables:
        return Route(**{**vars(parse(question.text)), "reason": "routed by rules: router: neither page nor table"})
    return Route(pages, tables)


def _object(text: str) -> dict[str, Any] | None:
    start, end = text.find("{"), text.rfind("}")
    try:
        found = json.loads(text[start : end + 1]) if start >= 0 else None
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def parse(text: str) -> Route:
    """Return the route of a question by its words.

    >>> parse("What is on pages 2, 4 to 6 and the last page?").pages
    (2, 4, 5, 6, -1)
    >>> parse("In Table A-1, who leads?").tables
    ('a-1',)
    """
    pages = list(_page_numbers(text))
    tables = [label.casefold() for match in _TABLES.finditer(text) for label in re.findall(_LABEL, match["list"], re.I)]
    nth = [_nth(match["nth"]) for match in _NTH_TABLE.finditer(text)]
    has_all = not tables and not nth and bool(_ALL_TABLES.search(text) or (pages and _ANY_TABLE.search(text)))
    return Route(tuple(dict.fromkeys(pages)), tuple(dict.fromkeys(tables)), tuple(dict.fromkeys(nth)), has_all)


def _page_numbers(text: str) -> Iterator[int]:
    for match in _PAGES.finditer(text):
        numbers = [_number(word) for word in re.findall(_NUMBER, match["list"], re.I)]
        joints = re.split(_NUMBER, match["list"], flags=re.I)[1:-1]
        yield numbers[0]
        for before, joint, number in zip(numbers, joints, numbers[1:]):
            is_range = re.fullmatch(_TO + r"(?:pages?\s+)?", joint, re.I) and before < number <= before + 50
            yield from range(before + 1, number + 1) if is_range else (number,)
    for match in _MANY_PAGES.finditer(text):
        n = min(_number(match["n"]), 50)
        yield from range(1, n + 1) if match["end"].lower() == "first" else range(-n, 0)
    for match in _NTH_PAGE.finditer(text):
        yield from (_nth(word) for word in (match["nth"], match["other"]) if word)


def _number(word: str) -> int:
    return int(word) if word.isdigit() else _WORDS.index(word.lower()) + 1


def _nth(word: str) -> int:
    word = word.lower()
    if word in _NTH:
        return _NTH.index(word) + 1
    if word[0].isdigit():
        return int(re.sub(r"\D", "", word))
    return -1 if word in ("last", "final") else -2
