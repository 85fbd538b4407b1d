"""TF-IDF cosine of a text with chosen passages of a corpus: g of KGP's traversal (Algorithm 1)."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from graphcontext.errors import InputError, did_you_mean
from graphcontext.retrieve.lexical import words

FITS = ("candidates", "corpus")
_DECIMALS = 12  # below it cosines tie: sums of the same weights in another order differ in their last bits


@dataclass(frozen=True, eq=False)
class Counts:
    """How often each word occurs in each passage of a corpus, CSR.

    Args:
        texts: a number for each passage, equal where their texts are (n_passages,).
        terms: the corpus' words as ids of :class:`Vocabulary`, ascending (n_terms,).
        indptr: row pointers (n_passages + 1,).
        columns: of each slot the place in ``terms``, ascending in a row (n_slots,).
        values: of each slot the count (n_slots,), float64.
        n_words: how many different words each passage has (n_passages,).
    """

    texts: np.ndarray
    terms: np.ndarray
    indptr: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    n_words: np.ndarray


class Vocabulary:
    """The words of many corpora, and of each text met its counts: a passage in ten corpora is split once."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._numbers: dict[str, int] = {}
        self._indptr, self._terms, self._values = array("q", [0]), array("q"), array("q")

    def count(self, text: str) -> tuple[list[int], list[int]]:
        """Return the ids of the words of a text, ascending, and how often each occurs."""
        ids = self._ids
        found = sorted(Counter([ids.setdefault(word, len(ids)) for word in words(text)]).items())
        return [term for term, _ in found], [n for _, n in found]

    def _number(self, text: str) -> int:
        """Return the number of a passage's text, whose counts are kept."""
        number = self._numbers.get(text)
        if number is None:
            number = self._numbers[text] = len(self._numbers)
            terms, values = self.count(text)
            self._terms.extend(terms)
            self._values.extend(values)
            self._indptr.append(len(self._terms))
        return number

    def counts(self, texts: Sequence[str]) -> Counts:
        """Return the counts of a corpus' passages, by index."""
        numbers = np.array([self._number(text) for text in texts], np.int64)
        starts = np.array(self._indptr)
        n_words = np.diff(starts)[numbers] if len(numbers) else np.zeros(0, np.int64)
        indptr = np.concatenate([[0], np.cumsum(n_words)])
        slots = _slots(starts[numbers], n_words)
        ids, values = np.frombuffer(self._terms, np.int64)[slots], np.frombuffer(self._values, np.int64)[slots]
        terms = np.flatnonzero(np.bincount(ids, minlength=len(self._ids)))
        place = np.zeros(len(self._ids), np.int64)
        place[terms] = np.arange(len(terms))
        return Counts(numbers, terms, indptr, place[ids], values.astype(np.float64), n_words)


def _slots(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return the slots of rows that begin at ``starts``, one row after the other."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(lengths.sum())


class SubsetTfidf:
    r"""Cosines of TF-IDF vectors, the vectoriser fitted on the passages that are compared (KGP, Algorithm 1, g).

    .. math:: w_{t} = \mathrm{tf}_{t} \left(\ln \frac{1 + n}{1 + \mathrm{df}_t} + 1\right), \quad
        \mathrm{score} = \frac{w^\top v}{\|w\| \|v\|}

    with n and df taken over the candidates alone (``fit=candidates``, the released code, which fits scikit-learn's
    vectoriser again for every step) or over the corpus. Words of the text that the fitted passages lack count for
    nothing, in its length too. Equal to scikit-learn's ``TfidfVectorizer`` with its defaults, from one count matrix
    per corpus.

    Args:
        vocabulary: shared by the corpora of a run.
        texts: of the corpus' passages.
        fit: ``candidates`` or ``corpus``.
    """

    def __init__(self, vocabulary: Vocabulary, texts: Sequence[str], fit: str = "candidates") -> None:
        self.vocabulary, self.fit = vocabulary, check_fit(fit)
        self.counts = vocabulary.counts(texts)
        self._fitted = _Fitted(self.counts, np.arange(len(texts)))

    def scores(self, text: str, candidates: np.ndarray | None = None) -> np.ndarray:
        """Return the cosine of ``text`` with each candidate, in their order; default: all passages.

        Args:
            text: a question or an evidence.
            candidates: passage indices (n_candidates,).
        """
        ids, n = (np.array(part, np.int64) for part in self.vocabulary.count(text))
        at = np.searchsorted(self.counts.terms, ids)
        known = at < len(self.counts.terms)
        known[known] = self.counts.terms[at[known]] == ids[known]
        columns, n = at[known], n[known]
        if candidates is None:
            return self._fitted.cosines(columns, n)
        if self.fit == "corpus":
            return self._fitted.cosines(columns, n)[candidates]
        return _Fitted(self.counts, candidates).cosines(columns, n)


class _Fitted:
    """The passages ``rows`` of a corpus, weighted by the document frequencies among themselves."""

    def __init__(self, counts: Counts, rows: np.ndarray) -> None:
        slots = _slots(counts.indptr[rows], counts.n_words[rows])
        self.columns = counts.columns[slots]
        self.row_of = np.repeat(np.arange(len(rows)), counts.n_words[rows])
        df = np.bincount(self.columns, minlength=len(counts.terms))
        self.df, self.n_rows = df, len(rows)
        self.idf = np.log((1 + len(rows)) / (1 + df)) + 1
        self.weights = counts.values[slots] * self.idf[self.columns]
        self.lengths = np.sqrt(np.bincount(self.row_of, self.weights**2, minlength=len(rows)))

    def cosines(self, columns: np.ndarray, n: np.ndarray) -> np.ndarray:
        """Return the cosine of each row with a text that holds the word in ``columns[i]`` ``n[i]`` times."""
        query = np.zeros(len(self.idf))
        query[columns] = np.where(self.df[columns] > 0, n * self.idf[columns], 0.0)
        norm = np.sqrt((query[columns] ** 2).sum())
        products = np.bincount(self.row_of, self.weights * query[self.columns], minlength=self.n_rows)
        lengths = self.lengths * norm
        return np.divide(products, lengths, out=np.zeros(self.n_rows), where=lengths > 0)


def order(scores: np.ndarray, k: int) -> np.ndarray:
    """Return the places of the ``k`` highest scores, best first, ties by lower place.

    >>> order(np.array([0.1, 0.3, 0.3, 0.2]), 3).tolist()
    [1, 2, 3]
    """
    return np.argsort(-np.round(scores, _DECIMALS), kind="stable")[:k]


def check_fit(fit: str) -> str:
    """Return ``fit`` if it is one."""
    if fit not in FITS:
        raise InputError(f"retriever.fit={fit}{did_you_mean(str(fit), FITS)}")
    return fit
