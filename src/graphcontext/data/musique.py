"""MuSiQue: questions of two to four hops over twenty paragraphs, with their decomposition."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from graphcontext.data import sides
from graphcontext.data.json_items import Part, line_items
from graphcontext.data.multihop import Item, MultiHop, read_items
from graphcontext.data.padding import Document

_HOPS = re.compile(r"[2-4]hop[0-9]?(?=__)")


class MuSiQue(MultiHop):
    """Read MuSiQue's JSONL: questions over paragraphs, the gold ones in the order of the question's decomposition.

    A line holds ``id, question, answer, answer_aliases``, ``paragraphs`` (``idx, title, paragraph_text,
    is_supporting``) and ``question_decomposition``, whose ``paragraph_support_idx`` names the paragraph of each hop.
    Supports that no hop names follow in the order of the file. All answers are acceptable. The data set has no
    sentences: a passage is a paragraph. Its type is how its hops are linked, the head of its id (``3hop1``).

    A hop that names no paragraph (an unanswerable question of ``musique_full``) has no support; one that names a
    paragraph that is not there or is blank is left out and counted.

    Args and Raises: as :class:`~graphcontext.data.multihop.MultiHop`.
    """

    patterns: ClassVar[sides.Patterns] = {
        "test": ("musique_ans*dev*", "*dev*", "*test*"),
        "train": ("musique_ans*train*", "*train*"),
    }
    suffix: ClassVar[str] = ".jsonl"
    sentences: ClassVar[bool] = False

    def read(self, files: Mapping[str, Path]) -> dict[str, list[Item]]:
        """Return the questions of the files of each side."""
        return {side: read_items(path, line_items(path), "id", _item) for side, path in files.items()}


def _item(part: Part, name: str) -> Item:
    documents: list[Document] = []
    position: dict[int, int] = {}
    supporting: list[int] = []
    for n, entry in enumerate(part.get("paragraphs").entries()):
        number = entry.get("idx").number()
        if position.setdefault(number, n) != n:
            entry.fail(f"has the idx {number} of another paragraph")
        documents.append(Document(entry.get("title").text(), ((entry.get("paragraph_text").text(),),)))
        if entry.get("is_supporting").truth():
            supporting.append(number)
    hops = part.get("question_decomposition").entries()
    named = [hop.get("paragraph_support_idx") for hop in hops]
    order = [entry.number() for entry in named if entry.value is not None]
    gold: dict[tuple[int, int], None] = {}
    lost = 0
    for number in dict.fromkeys([*order, *supporting]):
        n = position.get(number, -1)
        if n >= 0 and documents[n].paragraphs[0][0].strip():
            gold[n, 0] = None
        else:
            lost += 1
    aliases = part.get("answer_aliases").texts() if part.has("answer_aliases") else ()
    answers = (answer.strip() for answer in (part.get("answer").text(), *aliases))
    hop = _HOPS.match(name)
    return Item(
        id=name,
        text=part.get("question").text().strip(),
        answers=tuple(dict.fromkeys(answer for answer in answers if answer)),
        documents=tuple(documents),
        gold=tuple(gold),
        kind=hop[0] if hop else f"{len(hops)}hop",
        lost=lost,
    )
