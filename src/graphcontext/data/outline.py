"""The structure of the documents of a corpus: which pages, tables and texts belong together (KGP §2)."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from graphcontext.data.pdf_tables import CAPTION
from graphcontext.data.records import Corpus, Passage

_PIECE = re.compile(r"\(rows (\d+) to \d+ of \d+\)$")


@dataclass
class TableNode:
    """A table: the number in its caption (``2``, ``A-1``; empty without), its page, and its pieces' passage indices."""

    number: str
    page: int | None
    pieces: list[int]


@dataclass
class Section:
    """One document: its title, and the passage indices of its pages, tables and texts."""

    name: str
    title: str
    pages: dict[int, int] = field(default_factory=dict)
    tables: list[TableNode] = field(default_factory=list)
    texts: dict[int | None, list[int]] = field(default_factory=dict)

    def numbered(self, label: str) -> list[TableNode]:
        """Return the tables of a number: those whose caption has it, else the n-th where that one has no caption."""
        label = label.strip().casefold()
        found = [table for table in self.tables if table.number == label]
        if not found and label.isdecimal() and len(label) < 7 and 0 < int(label) <= len(self.tables):
            found = [table for table in [self.tables[int(label) - 1]] if not table.number]
        return found

    def tables_of(self, page: int) -> list[TableNode]:
        """Return the tables on a page."""
        return [table for table in self.tables if table.page == page]


class Outline:
    """The documents of a corpus, in its order.

    Args:
        corpus: passages with ``kind`` and ``source``; those without a document belong to none.
    """

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus
        self.ids = frozenset(passage.id for passage in corpus.passages)
        self.sections: dict[str, Section] = {}
        for index, passage in enumerate(corpus.passages):
            if passage.source.document is not None:
                section = self.sections.setdefault(
                    passage.source.document, Section(passage.source.document, passage.title)
                )
                _add(section, index, passage)

    @property
    def has_structure(self) -> bool:
        """Whether there is any page or table."""
        return any(section.pages or section.tables for section in self.sections.values())

    def find(self, document: str, kind: str, value: str) -> tuple[str, ...]:
        """Return the ids of a document's node: ``page`` 3, ``table`` 2, or the ``text`` that holds some words."""
        section = self.sections.get(document)
        if section is None:
            return ()
        if kind == "page":
            at = [index for page, index in section.pages.items() if str(page) == value]
        elif kind == "table":
            at = [index for table in section.numbered(value) for index in table.pieces]
        else:
            words = " ".join(value.split()).casefold()
            texts = [index for indices in section.texts.values() for index in indices]
            at = [i for i in texts if words in self.corpus.passages[i].match_text.casefold()][:1]
        return tuple(self.corpus.passages[index].id for index in at)

    def edges(self, adjacent: bool = False) -> Iterator[tuple[int, int]]:
        """Yield page → its texts and tables; with ``adjacent`` each text → the next one of its document too."""
        for section in self.sections.values():
            for page, index in section.pages.items():
                yield from ((index, text) for text in section.texts.get(page, ()))
                yield from ((index, piece) for table in section.tables_of(page) for piece in table.pieces)
            if adjacent:
                texts = sorted(index for indices in section.texts.values() for index in indices)
                yield from itertools.pairwise(texts)


def _add(section: Section, index: int, passage: Passage) -> None:
    page = passage.source.page
    if passage.kind == "page" and page is not None:
        section.pages[page] = index
    elif passage.kind == "table":
        first = passage.context_text.partition("\n")[0]
        piece, caption = _PIECE.search(first), CAPTION.match(first)
        if piece and int(piece[1]) > 1 and section.tables:
            section.tables[-1].pieces.append(index)
        else:
            section.tables.append(TableNode(caption[1].casefold() if caption else "", page, [index]))
    else:
        section.texts.setdefault(page, []).append(index)
