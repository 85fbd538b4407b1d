"""Entities by an alias dictionary made of the corpus' own document titles."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import ClassVar

from graphcontext.data.records import Corpus, Passage
from graphcontext.enhance.surface_form import normalise

_WORD = re.compile(r"\w+")
_AFTER_NAME = re.compile(r"\s*\([^()]*\)\s*$")

Aliases = dict[tuple[str, ...], tuple[str, ...]]


class TitlesLinker:
    r"""Finds mentions of the corpus' documents in its passages; stand-in for WAT's anchor dictionary (KGP §2.2).

    A document is known by its title and by its title without a parenthesis at the end ("Sinister (film)": "Sinister").
    Passages are read from the left, the longest alias first, letter by letter; an alias of several words may also
    begin in lower case. What an alias may mean, it means in equal shares:

    .. math:: \mathrm{prior}(d | a) = 1 / |\{d' : a \in \mathrm{aliases}(d')\}|

    WAT takes the share of Wikipedia's links with that text. At 0.8 an alias of two documents means neither, though
    the title clique still joins the passages of each.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()
    name: ClassVar[str] = "titles"

    def begin(self, corpora: dict[str, Corpus]) -> None:
        """Nothing: the dictionary is each corpus' own."""

    def link(self, passages: Sequence[Passage]) -> list[list[tuple[str, float]]]:
        """Return the documents, by normalised title, that each passage mentions; ``passages`` are of one corpus."""
        meant = aliases(passages)
        longest: dict[str, list[int]] = {}  # first word → lengths of aliases, longest first
        for alias in meant:
            longest.setdefault(alias[0], []).append(len(alias))
        lengths = {word: sorted(set(found), reverse=True) for word, found in longest.items()}
        return [list(dict.fromkeys(_mentions(p.match_text, meant, lengths))) for p in passages]


def aliases(passages: Sequence[Passage]) -> Aliases:
    """Return the words of each alias → the normalised titles that it may mean, sorted."""
    found: dict[tuple[str, ...], set[str]] = {}
    for title in sorted({p.title for p in passages}):
        if not normalise(title):
            continue
        for name in {title, _AFTER_NAME.sub("", title)}:
            words = tuple(_WORD.findall(name))
            if not any(c.isalpha() for word in words for c in word) or len("".join(words)) < 2:
                continue
            spellings = {words}
            if len(words) > 1:
                spellings.add((words[0][:1].lower() + words[0][1:], *words[1:]))
            for spelling in spellings:
                found.setdefault(spelling, set()).add(normalise(title))
    return {alias: tuple(sorted(titles)) for alias, titles in found.items()}


def _mentions(text: str, meant: Aliases, lengths: dict[str, list[int]]) -> Iterator[tuple[str, float]]:
    words = _WORD.findall(text)
    at = 0
    while at < len(words):
        for length in lengths.get(words[at], ()):
            titles = meant.get(tuple(words[at : at + length]))
            if titles:
                yield from ((title, 1 / len(titles)) for title in titles)
                at += length
                break
        else:
            at += 1
