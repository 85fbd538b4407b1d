"""Bag-of-words retrieval: words, counts, inverted lists, and the top k of queries × passages."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphcontext.compiled import compiled
from graphcontext.data.records import Corpus, Question, Ranking
from graphcontext.retrieve.by_corpus import best, by_corpus, empty, scored

_WORD = re.compile(r"\b\w\w+\b")  # scikit-learn's default token: two or more word characters
NO_MATCH = "no word of the question occurs in the corpus"
NO_WEIGHT = "no word of the question has a positive weight in the corpus"  # Okapi: those in half of its passages

LARGE = 20_000  # passages from which compiling or loading machine code pays

# counts of passages → their weights, and what weighs the counts of questions; all CSR over one vocabulary
Weighting = Callable[[Any], tuple[Any, Callable[[Any], Any]]]


def words(text: str) -> list[str]:
    """Return the lower-cased words of two or more characters, as scikit-learn's vectorisers do by default."""
    return _WORD.findall(text.lower())


def blanks(text: str) -> list[str]:
    """Return the text split on white space, case kept (the tokens of KGP's BM25 row)."""
    return text.split()


def count(tokens: Sequence[Sequence[str]], vocabulary: dict[str, int], grow: bool) -> Any:
    """Return term counts, CSR (n_texts, n_terms) float64; unknown terms are added if ``grow``."""
    from scipy.sparse import csr_array

    columns: list[int] = []
    indptr = [0]
    for text in tokens:
        if grow:
            columns.extend(vocabulary.setdefault(token, len(vocabulary)) for token in text)
        else:
            columns.extend(vocabulary[token] for token in text if token in vocabulary)
        indptr.append(len(columns))
    shape = (len(tokens), len(vocabulary))
    counts = csr_array((np.ones(len(columns)), np.array(columns, np.int32), indptr), shape=shape)
    counts.sum_duplicates()
    return counts


@dataclass(frozen=True)
class Index:
    """The inverted lists of a corpus.

    Args:
        vocabulary: column of each term.
        by_term: weights, CSR (n_terms, n_passages); a row lists the passages that hold the term, ascending.
        weigh_query: turns a question's counts, CSR (n_questions, n_terms), into weights.
    """

    vocabulary: dict[str, int]
    by_term: Any
    weigh_query: Callable[[Any], Any]


class Lexical:
    """Ranks passages by the product of weighted term counts, the index of the last corpus kept.

    Args:
        tokenise: splits a text into terms.
        weigh: turns the counts of the passages, CSR (n_passages, n_terms), into weights; also returns what turns
            those of questions into weights.
        top_k: passages per question.
        batch_size: questions per product.
    """

    def __init__(self, tokenise: Callable[[str], list[str]], weigh: Weighting, top_k: int, batch_size: int):
        self.tokenise, self.weigh, self.top_k, self.batch_size = tokenise, weigh, top_k, batch_size
        self._last: tuple[str, Index] | None = None

    def retrieve(self, questions: Sequence[Question], corpora: dict[str, Corpus]) -> list[Ranking]:
        """Return each question's passages with a positive score; a question with none has status ``empty``."""
        rankings: list[Ranking | None] = [None] * len(questions)
        for corpus, positions, asked in by_corpus(questions, corpora):
            index = self.index(corpus)
            queries = count([self.tokenise(q.text) for q in asked], index.vocabulary, grow=False)
            n_known = np.diff(queries.indptr)  # words of each question that the corpus holds
            found = top(index.weigh_query(queries), index.by_term, self.top_k, self.batch_size)
            for position, question, n, (indices, values) in zip(positions, asked, n_known, found, strict=True):
                ranking = Ranking(question.id, scored(corpus, indices, values))
                if not len(indices):
                    reason = NO_WEIGHT if n else NO_MATCH
                    ranking = empty(question, reason) if corpus.passages else empty(question)
                rankings[position] = ranking
        return [r for r in rankings if r is not None]

    def index(self, corpus: Corpus) -> Index:
        """Return the corpus' index; questions come in chunks, so the last one is kept."""
        if self._last is None or self._last[0] != corpus.id:
            vocabulary: dict[str, int] = {}
            counts = count([self.tokenise(p.match_text) for p in corpus.passages], vocabulary, grow=True)
            weights, weigh_query = self.weigh(counts)
            self._last = corpus.id, Index(vocabulary, weights.T.tocsr(), weigh_query)
        return self._last[1]


def top(queries: Any, by_term: Any, k: int, batch_size: int = 64) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the ``k`` best passages of each question and their positive scores, ties by lower passage index.

    Args:
        queries: CSR (n_questions, n_terms) float64.
        by_term: CSR (n_terms, n_passages) float64.
        k: passages per question at most.
        batch_size: questions per sparse product; large corpora go through the inverted lists instead, with the
            same sums in the same order.
    """
    if by_term.shape[1] >= LARGE:
        yield from _top_of_lists(queries, by_term, k)
        return
    for start in range(0, queries.shape[0], batch_size):
        scores = queries[start : start + batch_size] @ by_term
        scores.sort_indices()
        for first, end in itertools.pairwise(scores.indptr):
            yield best(scores.data[first:end], k, scores.indices[first:end])


def _top_of_lists(queries: Any, by_term: Any, k: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the same, one question after the other, without a matrix of scores."""
    scores, passages, values = np.zeros(by_term.shape[1]), np.empty(k, np.int64), np.empty(k)
    for first, end in itertools.pairwise(queries.indptr):
        terms, weights = queries.indices[first:end], queries.data[first:end]
        n = _add_and_select(terms, weights, by_term.indptr, by_term.indices, by_term.data, scores, passages, values)
        yield passages[:n].copy(), values[:n].copy()


@compiled
def _add_and_select(terms, weights, indptr, indices, data, scores, passages, values):
    """Sum up the terms' lists in ``scores``, take the best out into ``passages`` and ``values``, and clear it."""
    for t in range(len(terms)):
        weight = weights[t]
        for slot in range(indptr[terms[t]], indptr[terms[t] + 1]):
            scores[indices[slot]] += weight * data[slot]
    n, k, least = 0, len(values), 0.0
    for passage in range(len(scores)):
        score = scores[passage]
        if score > least:  # ascending index: an equal score ranks behind
            at = min(n, k - 1)
            while at > 0 and values[at - 1] < score:
                values[at], passages[at] = values[at - 1], passages[at - 1]
                at -= 1
            values[at], passages[at] = score, passage
            n = min(n + 1, k)
            if n == k:
                least = values[k - 1]
        scores[passage] = 0.0
    return n


def document_frequency(counts: Any) -> np.ndarray:
    """Return in how many rows each term occurs (n_terms,)."""
    return np.bincount(counts.indices, minlength=counts.shape[1])
