"""HotpotQA in its distractor setting, and 2WikiMultiHopQA, whose files have the same layout."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from graphcontext.data import sides
from graphcontext.data.json_items import Part, items
from graphcontext.data.multihop import Item, MultiHop, read_items
from graphcontext.data.padding import Document


class HotpotQA(MultiHop):
    """Read HotpotQA's or 2WikiMultiHopQA's JSON: questions over about ten paragraphs, with gold sentences.

    A file is a list of items with ``_id, question, answer, context`` (pairs of title and sentences) and
    ``supporting_facts`` (pairs of title and number of a sentence, from 0); ``type`` splits the card. Of 2Wiki's further
    keys (``evidences``, ``entity_ids`` …) none is read.

    A supporting fact that names no title or sentence of the context, or a blank sentence, is left out and counted
    (HotpotQA has some of them); a question that keeps none stays. Where two documents have its title it means the
    first that has such a sentence.

    Args and Raises: as :class:`~graphcontext.data.multihop.MultiHop`.
    """

    patterns: ClassVar[sides.Patterns] = {
        "test": ("hotpot_dev_distractor*", "dev*", "*_dev*", "test*", "*_test*"),
        "train": ("hotpot_train*", "train*", "*_train*"),
    }

    def read(self, files: Mapping[str, Path]) -> dict[str, list[Item]]:
        """Return the questions of the files of each side."""
        return {side: read_items(path, items(path), "_id", _item) for side, path in files.items()}


def _item(part: Part, name: str) -> Item:
    pairs = [entry.pair("title, sentences") for entry in part.get("context").entries()]
    documents = tuple(Document(title.text(), (sentences.texts(),)) for title, sentences in pairs)
    by_title: dict[str, list[int]] = {}
    for n, document in enumerate(documents):
        by_title.setdefault(document.title, []).append(n)
    gold: dict[tuple[int, int], None] = {}
    lost = 0
    for entry in part.get("supporting_facts").entries():
        title, number = entry.pair("title, sentence")
        sentence = number.number()
        named = (n for n in by_title.get(title.text(), ()) if _has(documents[n], sentence))
        document = next(named, None)
        if document is None:
            lost += 1
        else:
            gold[document, sentence] = None
    answer = part.get("answer").text().strip()
    return Item(
        id=name,
        text=part.get("question").text().strip(),
        answers=(answer,) if answer else (),
        documents=documents,
        gold=tuple(gold),
        kind=part.get("type").text() if part.has("type") else "not given",
        lost=lost,
    )


def _has(document: Document, sentence: int) -> bool:
    (sentences,) = document.paragraphs
    return 0 <= sentence < len(sentences) and bool(sentences[sentence].strip())
