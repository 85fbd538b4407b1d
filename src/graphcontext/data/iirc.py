"""IIRC: questions on a passage of Wikipedia whose answers lie in the articles that it links to."""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, ClassVar

from graphcontext.data import sides
from graphcontext.data.json_items import Part, items, kind_of, read_json
from graphcontext.data.multihop import Item, MultiHop, read_items
from graphcontext.data.padding import Document
from graphcontext.errors import InputError

ARTICLES = "context_articles.json"
NO_ANSWER = ("no answer", "noanswer")
MAIN = "main"  # what a span of the passage that the question was asked on is of
_TAG = re.compile(r"<[^<>]*>")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[\"'“(\[]?[A-Z0-9])")


class IIRC(MultiHop):
    """Read IIRC's JSON: a passage, the articles that it links to, and gold spans in both.

    ``dev.json`` is a list of passages with ``title, text, links`` (``target``) and ``questions``, each with
    ``qid, question, answer`` and ``context``: the gold spans, whose ``passage`` is ``main`` or an article. The articles
    are the values of ``context_articles.json``, by title in lower case, as text with ``<a>`` elements. It lies beside.

    A question's documents are the passage and the articles, in the order of its links; those without an article are
    passed over. Sentences end where a full stop, question or exclamation mark comes before a capital or a digit; a
    line is a paragraph. Gold are the sentences that a span overlaps, found by its text (the place nearest to its
    ``indices`` where there are several); spans that are not found are left out and counted.

    Answers by ``answer.type``, which is the question's type on the card: each of the ``answer_spans`` of a ``span`` is
    acceptable (KGP §4.1), of a ``value`` the number with and without its unit, of a ``binary`` its word, of ``none``
    "no answer" and "noanswer".

    The data set was not at hand: this follows what its authors' and others' readers take from it, and was tested on
    files made for the tests.

    Args and Raises: as :class:`~graphcontext.data.multihop.MultiHop`. Passages link to many articles:
    ``n_documents=12`` (Table 3) keeps the gold ones and fills up.
    """

    patterns: ClassVar[sides.Patterns] = {
        "test": ("dev*", "*_dev*", "test*", "*_test*"),
        "train": ("train*", "*_train*"),
    }

    @classmethod
    def files(cls, path: Path, side: str, split: str) -> dict[str, Path]:
        """Return the files that a side is read from, by role: those of the sides and the articles."""
        found = super().files(path, side, split)
        folder = path if path.is_dir() else path.parent
        for name in (ARTICLES, f"{ARTICLES}.gz"):
            if (folder / name).is_file():
                return found | {"articles": folder / name}
        raise InputError(f"{folder} holds no {ARTICLES}, the articles that passages link to; put it beside {path.name}")

    def read(self, files: Mapping[str, Path]) -> dict[str, list[Item]]:
        """Return the questions of the files of each side."""
        articles = _Articles(files["articles"])
        by_side = {side: path for side, path in files.items() if side != "articles"}
        return {side: read_items(path, _questions(path, articles), "qid", _item) for side, path in by_side.items()}


class _Articles:
    """The articles of a file, each made plain and cut into sentences when it is asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        values = read_json(path)
        if not isinstance(values, dict):
            raise InputError(f"{path} holds {kind_of(values)}, expected an object of titles and articles")
        self._texts: dict[str, Any] = {title.lower(): text for title, text in values.items()}
        self._known: dict[str, Document] = {}

    def get(self, title: str) -> Document | None:
        """Return an article, None where there is none of this title."""
        key = title.lower()
        if key not in self._known and key in self._texts:
            text = Part(self.path, f"article {key[:60]!r}", "", self._texts[key]).text()
            self._known[key] = _document(title, html.unescape(_TAG.sub("", text)))
        return self._known.get(key)


@dataclass(frozen=True, slots=True)
class _Passage:
    """What the questions of one passage share: its documents, and which of them is of which name."""

    documents: tuple[Document, ...]
    of_name: dict[str, int]


def _questions(path: Path, articles: _Articles) -> Any:
    """Yield the questions of a file, each beside the passage that it is asked on."""
    for entry in items(path):
        title = entry.get("title").text()
        documents = [_document(title, entry.get("text").text())]
        of_name = {MAIN: 0}
        questions = entry.get("questions").entries()
        spans = [span for question in questions for span in question.get("context").entries()]
        links = [link.get("target").text() for link in entry.get("links").entries()]
        for name in (*links, *(span.get("passage").text() for span in spans)):
            article = articles.get(name) if name.lower() not in of_name else None
            if article is not None:
                of_name[name.lower()] = len(documents)
                documents.append(article)
        passage = _Passage(tuple(documents), of_name)
        for question in questions:
            yield _Question(question.path, f"{question.item}, {question.name}", "", question.value, passage)


@dataclass(frozen=True, slots=True)
class _Question(Part):
    """A question, and the passage that it is asked on."""

    passage: _Passage


def _item(part: Part, name: str) -> Item:
    passage = part.passage  # type: ignore[attr-defined]
    gold: dict[tuple[int, int], None] = {}
    lost = 0
    for span in part.get("context").entries():
        n = passage.of_name.get(span.get("passage").text().lower())
        near = span.get("indices").entries()[0].number() if span.has("indices") and span.value["indices"] else 0
        found = [] if n is None else _overlapped(passage.documents[n], span.get("text").text(), near)
        lost += not found
        gold |= dict.fromkeys((n, sentence) for sentence in found)
    kind, answers = _answers(part.get("answer"))
    return Item(
        id=name,
        text=part.get("question").text().strip(),
        answers=tuple(dict.fromkeys(answer for answer in answers if answer)),
        documents=passage.documents,
        gold=tuple(gold),
        kind=kind,
        lost=lost,
    )


def _answers(answer: Part) -> tuple[str, tuple[str, ...]]:
    """Return the type of an answer and the texts that are acceptable."""
    kind = answer.get("type")
    if kind.text() == "span":
        return "span", tuple(_plain(span.get("text").text()) for span in answer.get("answer_spans").entries())
    if kind.text() == "none":
        return "none", NO_ANSWER
    if kind.text() not in ("value", "binary"):
        kind.fail(f"is {kind.value[:40]!r}, expected span, value, binary or none")
    found = answer.get("answer_value")
    value = str(found.value) if type(found.value) in (int, float) else found.text().strip()
    unit = answer.get("answer_unit").text().strip() if answer.has("answer_unit") else ""
    return kind.value, (f"{value} {unit}", value) if unit and kind.value == "value" else (value,)


def _document(title: str, text: str) -> Document:
    """Return a text as paragraphs of sentences: a line is a paragraph."""
    lines = [_plain(line) for line in text.split("\n")]
    return Document(title, tuple(tuple(_SENTENCE_END.split(line)) for line in lines if line))


def _overlapped(document: Document, span: str, near: int) -> list[int]:
    """Return the sentences that a span overlaps, at the place nearest to character ``near``; none where there is none.

    >>> _overlapped(Document("T", (("One is here.", "Two is."), ("Three.",))), "here. Two", 0)
    [0, 1]
    """
    sentences = [sentence for paragraph in document.paragraphs for sentence in paragraph]
    starts = [0, *accumulate(len(sentence) + 1 for sentence in sentences)]
    text, wanted = " ".join(sentences), _plain(html.unescape(_TAG.sub("", span)))
    places = [found.start() for found in re.finditer(re.escape(wanted), text)] if wanted else []
    if not places:
        return []
    first = min(places, key=lambda place: abs(place - near))
    return list(range(bisect_right(starts, first) - 1, bisect_right(starts, first + len(wanted) - 1)))


def _plain(text: str) -> str:
    return " ".join(text.split())
