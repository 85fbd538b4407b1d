"""The TF-IDF keyword graph of KGP (§2.2 and the official code)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from graphcontext.data.records import Corpus, Graph
from graphcontext.errors import InputError, did_you_mean
from graphcontext.graph.incidence import graph_of_shared
from graphcontext.graph.noun_text import stop_words
from graphcontext.retrieve.lexical import words

TEXTS = ("noun", "raw")
_LARGEST = 2**62


class TfidfKeywords:
    r"""Joins every two passages that hold a common keyword or come from documents of one title (KGP §2.2).

    Keywords are the union of every passage's ``n_kw`` terms of highest TF-IDF, terms being runs of 1 to
    ``ngram_max`` words without stop words, as scikit-learn's ``TfidfVectorizer`` cuts and weighs them:

    .. math:: w_{it} = n_{it} \left(1 + \ln \frac{1 + n}{1 + n_t}\right)

    (its scaling of rows to length 1 changes no order within a passage). Equal weights: the term that comes first in
    the alphabet. Titles are tags beside the keywords, in lower case, one per passage.

    Args:
        nouns: gives the nouns of a text (:class:`graphcontext.graph.noun_text.NounText`).
        text: ``noun`` reads the nouns of each passage, ``raw`` the passage as it is.
        n_kw: keywords of a passage, ≥ 1; the paper's 50.
        ngram_max: words of the longest term, ≥ 1; the code's 4.
        compat_first_row_keywords: the shipped code's faults, to reproduce its graph: only the first passage gives
            keywords, and a title counts only where it stands in a text as it is written, so one with a capital or
            with more than ``ngram_max`` words never does.

    Raises:
        InputError: a value out of range.

    Differs from the paper:
        The union over passages and titles in lower case, which the code means and misses; nodes are passages by
        index, where the code folds equal texts into one. Passages without text have no edge. Stop words are spaCy's
        326 words, not scikit-learn's 318.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()

    def __init__(
        self,
        nouns: Any,
        text: str = "noun",
        n_kw: int = 50,
        ngram_max: int = 4,
        compat_first_row_keywords: bool = False,
    ) -> None:
        self.nouns, self.text = nouns, checked_text(text)
        self.n_kw, self.ngram_max = checked_number("n_kw", n_kw), checked_number("ngram_max", ngram_max)
        self.compat_first_row_keywords = compat_first_row_keywords
        self._words: dict[str, list[str]] = {}

    def begin(self, corpora: dict[str, Corpus]) -> None:
        """Tag the passages of all corpora, each text once."""
        if self.text == "noun":
            self.nouns.begin(corpora)

    def build(self, corpus: Corpus) -> Graph:
        """Return the graph over the corpus' passages; ``facts["n_keywords"]`` counts the keywords in use."""
        at = np.array([i for i, p in enumerate(corpus.passages) if p.match_text.strip()], np.int64)
        passages = [corpus.passages[i] for i in at]
        texts = self._tokens([p.match_text for p in passages])
        terms = count_terms(texts, self.ngram_max)
        is_best = best_terms(terms, self.n_kw)
        if self.compat_first_row_keywords:
            is_best &= terms.rows == 0
        is_keyword = np.zeros(terms.n, bool)
        is_keyword[terms.terms[is_best]] = True
        held = is_keyword[terms.terms]
        titles = [p.title for p in passages]
        tags = as_written(titles, texts, self.ngram_max) if self.compat_first_row_keywords else in_lower_case(titles)
        rows = np.concatenate([terms.rows[held], tags[0]])
        keys = np.concatenate([terms.terms[held], tags[1] + terms.n])
        facts = {
            **{"n_kw": self.n_kw, "ngram_max": self.ngram_max, "text": self.text},
            "compat_first_row_keywords": self.compat_first_row_keywords,
            "n_keywords": int(is_keyword.sum()),
        }
        return graph_of_shared(corpus.id, len(corpus.passages), at[rows], keys, facts)

    def _tokens(self, texts: Sequence[str]) -> list[list[str]]:
        """Return the words of each text without stop words; those of a text are kept for the next corpus."""
        new = list(dict.fromkeys(text for text in texts if text not in self._words))
        read = self.nouns.nouns(new) if self.text == "noun" else new
        for text, cleaned in zip(new, read, strict=True):
            self._words[text] = [word for word in words(cleaned) if word not in stop_words()]
        return [self._words[text] for text in texts]


@dataclass(frozen=True)
class Terms:
    """How often each term stands in each text, sorted by text and term.

    Args:
        rows: text of each entry (n_entries,) int64.
        terms: term of each entry (n_entries,) int64, numbered in alphabetical order.
        counts: how often (n_entries,) int64.
        n: distinct terms.
        n_texts: texts.
    """

    rows: np.ndarray
    terms: np.ndarray
    counts: np.ndarray
    n: int
    n_texts: int


def count_terms(texts: Sequence[Sequence[str]], longest: int) -> Terms:
    """Count the runs of 1 to ``longest`` words of each text; no term is ever spelt out."""
    vocabulary = {word: rank for rank, word in enumerate(sorted({word for text in texts for word in text}), 1)}
    lengths = np.array([len(text) for text in texts], np.int64)
    row = np.repeat(np.arange(len(texts)), lengths)
    word = np.fromiter((vocabulary[w] for text in texts for w in text), np.int64, len(row))  # 1 and more; 0: no word
    base, rows, codes = len(vocabulary) + 1, [], []
    digits = np.zeros((len(word), longest), np.int64)
    for n in range(min(longest, len(word))):
        fits = row[: len(row) - n] == row[n:]
        starts = np.flatnonzero(fits)
        digits[starts, n] = word[starts + n]
        run = digits[starts]
        run[:, n + 1 :] = 0
        rows.append(row[starts])
        codes.append(run)
    if not codes:
        nothing = np.zeros(0, np.int64)
        return Terms(nothing, nothing, nothing, 0, len(texts))
    n_terms, term = _ranks(np.concatenate(codes), base)
    pairs, counts = np.unique(np.concatenate(rows) * n_terms + term, return_counts=True)
    rows_of, terms_of = np.divmod(pairs, n_terms)
    return Terms(rows_of, terms_of, counts, n_terms, len(texts))


def _ranks(digits: np.ndarray, base: int) -> tuple[int, np.ndarray]:
    """Return how many distinct rows there are, and the rank of each row in lexicographic order."""
    code, bound = digits[:, 0], base
    for column in digits.T[1:]:
        if bound > _LARGEST // base:
            kept, code = np.unique(code, return_inverse=True)
            bound = len(kept)
        code, bound = code * base + column, bound * base
    kept, code = np.unique(code, return_inverse=True)
    return len(kept), code


def best_terms(terms: Terms, k: int) -> np.ndarray:
    """Return which entries are among the ``k`` of highest TF-IDF of their text, bool (n_entries,)."""
    frequency = np.bincount(terms.terms, minlength=terms.n)
    weights = terms.counts * (1 + np.log((1 + terms.n_texts) / (1 + frequency)))[terms.terms]
    order = np.lexsort((-weights, terms.rows))  # stable: equal weights stay in the order of terms
    lengths = np.bincount(terms.rows, minlength=terms.n_texts)
    place = np.arange(len(order)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    is_best = np.zeros(len(order), bool)
    is_best[order[place < k]] = True
    return is_best


def in_lower_case(titles: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return (text, tag) pairs: equal titles but for case and blanks are one tag, a blank one is none."""
    number: dict[str, int] = {}
    named = [" ".join(title.lower().split()) for title in titles]
    tags = [number.setdefault(name, len(number)) if name else -1 for name in named]
    rows = np.flatnonzero(np.array(tags, np.int64) >= 0)
    return rows, np.array(tags, np.int64)[rows]


def as_written(titles: Sequence[str], texts: Sequence[Sequence[str]], longest: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (text, tag) pairs of the titles that are, letter by letter, a term of a text in lower case."""
    own = sorted({t for t in titles if words(t) == t.split(" ") and len(t.split(" ")) <= longest})
    lines = [f" {' '.join(text)} " for text in texts]
    pairs = [(i, n) for n, title in enumerate(own) for i, line in enumerate(lines) if f" {title} " in line]
    found = np.array(pairs, np.int64).reshape(-1, 2)
    return found[:, 0], found[:, 1]


def checked_text(text: str) -> str:
    """Return ``text`` if it is one of :data:`TEXTS`."""
    if text not in TEXTS:
        raise InputError(f"graph.text={text}; allowed: {', '.join(TEXTS)}{did_you_mean(str(text), TEXTS)}")
    return text


def checked_number(key: str, value: int) -> int:
    """Return ``value`` if it is a whole number ≥ 1; ``key`` names it in the error."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"graph.{key}={value}: allowed is a whole number of at least 1")
    return value
