"""From documents to corpora of single questions: cut into passages once, padded with documents of other questions."""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from graphcontext.data.leaks import normalise
from graphcontext.data.plain_text import n_words
from graphcontext.data.records import Corpus, Passage, Source, content_id, to_json
from graphcontext.errors import InputError

UNITS = "sentence, paragraph, merged:N (neighbouring sentences up to N characters)"


@dataclass(frozen=True, slots=True)
class Document:
    """A document of a question's context: its title and the sentences of each paragraph."""

    title: str
    paragraphs: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Cut:
    """A document cut into passages: their texts, and the passage of each sentence (−1 where a sentence is blank)."""

    texts: tuple[str, ...]
    of_sentence: tuple[int, ...]


def parse_unit(unit: str) -> int | None:
    """Return how many characters sentences are merged up to: 0 for ``sentence``, None for ``paragraph``.

    Raises:
        InputError: another word.
    """
    if unit in ("sentence", "paragraph"):
        return 0 if unit == "sentence" else None
    name, _, n = str(unit).partition(":")
    if name != "merged" or not (n.isascii() and n.isdecimal()) or int(n) < 1:
        raise InputError(f"dataset.passage_unit={unit}; allowed: {UNITS}")
    return int(n)


def cut(document: Document, most: int | None) -> Cut:
    """Cut a document into passages, never across paragraphs; blank sentences are left out.

    Args:
        document: its sentences may be empty.
        most: neighbours are merged while the passage has at most so many characters; a longer sentence stands
            alone. 0 merges none, None all.

    >>> cut(Document("T", (("One.", " Two.", "", " Three is longer."),)), most=12)
    Cut(texts=('One. Two.', 'Three is longer.'), of_sentence=(0, 0, -1, 1))
    """
    texts: list[str] = []
    of_sentence: list[int] = []
    for paragraph in document.paragraphs:
        is_open = False  # whether the last passage is of this paragraph
        for sentence in paragraph:
            plain = sentence.strip()
            if not plain:
                of_sentence.append(-1)
                continue
            if is_open and (most is None or len(texts[-1]) + 1 + len(plain) <= most):
                texts[-1] += f" {plain}"
            else:
                texts.append(plain)
                is_open = True
            of_sentence.append(len(texts) - 1)
    return Cut(tuple(texts), tuple(of_sentence))


@dataclass(frozen=True)
class Wanted:
    """How corpora are made.

    Args:
        most: see :func:`cut`.
        license: of the passages.
        n_passages, n_documents: what each corpus is padded to, at most one of them; None for neither.
        seed: draws the order of other questions' documents, with the question's id.
    """

    most: int | None
    license: str
    n_passages: int | None
    n_documents: int | None
    seed: int


@dataclass
class Made:
    """A corpus in the making: its passages with what hashes them, and how many equal texts and titles it holds."""

    passages: list[Passage] = field(default_factory=list)
    lines: list[bytes] = field(default_factory=list)
    n_words: int = 0
    n_documents: int = 0
    gold: list[str] = field(default_factory=list)
    ids: dict[tuple[str, str], str] = field(default_factory=dict)
    equal: Counter[tuple[str, str]] = field(default_factory=Counter)
    titles: Counter[str] = field(default_factory=Counter)

    def corpus(self) -> Corpus:
        """Return the corpus, with the id that :meth:`Corpus.of` gives it."""
        digest = hashlib.sha256(b"[" + b", ".join(self.lines) + b"]")
        return Corpus(digest.hexdigest()[:16], tuple(self.passages))


class Documents:
    """All documents of a file, each cut once; makes the corpus of each question.

    Args:
        documents: of all questions, in any order and with repeats.
        wanted: how corpora are made.
    """

    def __init__(self, documents: Iterable[Document], wanted: Wanted) -> None:
        self.wanted = wanted
        self._cuts = {document: cut(document, wanted.most) for document in documents}
        pool = sorted(self._cuts, key=lambda document: (document.title, document.paragraphs))
        self._pool = [(document, plain_title(document.title)) for document in pool if self._cuts[document].texts]
        self._known: dict[tuple[str, str, int, int], tuple[Passage, bytes, int]] = {}

    @property
    def n(self) -> int:
        """How many different documents there are."""
        return len(self._cuts)

    def of_question(self, question_id: str, own: Sequence[Document], gold: Sequence[tuple[int, int]]) -> Made:
        """Return the corpus of one question: its own documents, then others up to the number that is wanted.

        Documents of others come in an order drawn by the seed and the question's id; those with the title of an own
        document are passed over, and of the rest the passages whose text is that of a gold passage. The last document
        is cut so that exactly ``n_passages`` are reached. Own documents are never left out for ``n_passages``; for
        ``n_documents`` those without a gold passage are, the last first.

        Args:
            question_id: draws the order.
            own: the documents of its context.
            gold: (document, sentence) of each support, in order of reasoning; no sentence is blank.
        """
        made = Made()
        ids: dict[tuple[int, int], str] = {}
        for n in self._kept(own, {document for document, _ in gold}):
            first = len(made.passages)
            self._add(made, own[n], self._cuts[own[n]].texts)
            ids |= {(n, i): passage.id for i, passage in enumerate(made.passages[first:])}
        supports = [ids[n, self._cuts[own[n]].of_sentence[sentence]] for n, sentence in gold]
        made.gold = list(dict.fromkeys(supports))
        if self._lacks(made):
            texts = {self._gold_text(own[n], sentence) for n, sentence in gold}
            self._pad(made, question_id, {plain_title(document.title) for document in own}, texts)
        return made

    def pooled(self, documents: Iterable[Document]) -> Made:
        """Return one corpus of all documents, each passage (title and text) once."""
        made = Made()
        for document in dict.fromkeys(documents):
            texts = dict.fromkeys(self._cuts[document].texts)
            self._add(made, document, [text for text in texts if not made.equal[document.title, text]])
        return made

    def pooled_gold(self, made: Made, own: Sequence[Document], gold: Sequence[tuple[int, int]]) -> list[str]:
        """Return the ids of a question's gold passages in the corpus of all."""
        if not made.ids:
            made.ids |= {(passage.title, passage.match_text): passage.id for passage in made.passages}
        texts = ((own[n].title, self._gold_text(own[n], sentence)) for n, sentence in gold)
        return list(dict.fromkeys(made.ids[key] for key in texts))

    def _gold_text(self, document: Document, sentence: int) -> str:
        found = self._cuts[document]
        return found.texts[found.of_sentence[sentence]]

    def _kept(self, own: Sequence[Document], with_gold: set[int]) -> list[int]:
        """Return which own documents are kept, where there are more than ``n_documents``."""
        held = [n for n, document in enumerate(own) if self._cuts[document].texts]
        room = len(held) if self.wanted.n_documents is None else self.wanted.n_documents - len(with_gold)
        others = [n for n in held if n not in with_gold]
        return sorted([*with_gold, *others[: max(room, 0)]])

    def _lacks(self, made: Made) -> bool:
        if self.wanted.n_passages is not None:
            return len(made.passages) < self.wanted.n_passages
        return self.wanted.n_documents is not None and made.n_documents < self.wanted.n_documents

    def _pad(self, made: Made, question_id: str, titles: set[str], gold: set[str]) -> None:
        for at in shuffled(len(self._pool), f"{self.wanted.seed}\0{question_id}"):
            document, title = self._pool[at]
            if title in titles:
                continue
            texts = [text for text in self._cuts[document].texts if text not in gold]
            if self.wanted.n_passages is not None:
                texts = texts[: self.wanted.n_passages - len(made.passages)]
            self._add(made, document, texts)
            if not self._lacks(made):
                return

    def _add(self, made: Made, document: Document, texts: Sequence[str]) -> None:
        """Add passages of a document to a corpus."""
        if not texts:
            return
        made.n_documents += 1
        made.titles[document.title] += 1
        number = made.titles[document.title]
        for text in texts:
            key = (document.title, text, made.equal[document.title, text], number)
            made.equal[document.title, text] += 1
            if key not in self._known:
                self._known[key] = _passage(*key, self.wanted.license)
            passage, line, n = self._known[key]
            made.passages.append(passage)
            made.lines.append(line)
            made.n_words += n


def plain_title(title: str) -> str:
    """Return a title by which documents are told apart, without regard to case and punctuation."""
    return normalise(title) or title.casefold()


def shuffled(n: int, seed: str) -> Iterator[int]:
    """Yield 0 … n − 1 in an order drawn by ``seed``, drawing no more than is taken (Fisher and Yates)."""
    draw = random.Random(int.from_bytes(hashlib.sha256(seed.encode()).digest(), "big"))
    moved: dict[int, int] = {}
    for first in range(n):
        at = first + int(draw.random() * (n - first))
        yield moved.get(at, at)
        moved[at] = moved.get(first, first)


def _passage(title: str, text: str, n: int, number: int, license: str) -> tuple[Passage, bytes, int]:
    """Return a passage, its part of a corpus' hash and its words.

    Args:
        title, text: what it says.
        n: how many equal ones come before it.
        number: of its document among those of one title, from 1.
        license: of the text.
    """
    document = title if number == 1 else f"{title} ({number})"
    passage = Passage(
        id=content_id(title, text, str(n)),
        title=title,
        match_text=text,
        context_text=f"{title}: {text}" if title else text,
        source=Source(license=license, document=document),
    )
    line = json.dumps(to_json(passage), sort_keys=True, ensure_ascii=False)
    return passage, json.dumps(line, ensure_ascii=False).encode(), n_words(text)
