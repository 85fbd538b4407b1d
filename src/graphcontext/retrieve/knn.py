"""Nearest windows of nouns, and smallest edit distance (KGP Table 1 "KNN")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from graphcontext.data.records import Corpus, Graph, Question, Ranking, Scored
from graphcontext.errors import InputError, did_you_mean
from graphcontext.graph.cosine import exact_cosine, margin, unit_rows
from graphcontext.retrieve.by_corpus import by_corpus, checked_count, empty, matchable

QUERIES = ("nouns", "text")
ORDERS = ("best_first", "code")
NO_NOUN = "no passage holds a noun"
_PRODUCTS = 1 << 24  # of one block


class KNN:
    r"""Ranks passages by their window of nouns nearest to the question's nouns, and by edit distance (KGP §4.2).

    .. math:: \mathrm{score}(q, p) = \max_{w \in W(p)} \cos(e_{N(q)}, e_w)

    N are the NOUN and PROPN words of a text, W(p) the windows of 4 words of N(p), stride 2, the last one as long as
    what is left. First the ``top_k`` − ``n_levenshtein`` passages of highest score; then those of smallest Levenshtein
    distance between question and passage that are not among them, until there are ``top_k``: with 15 and 15 all 30 are
    distinct, and where few passages hold a noun more come by distance (none with ``n_levenshtein=0``). Exact; ties by
    lower passage index. The score of a passage is its cosine in the first part, the negative distance in the second.

    A question without nouns is encoded as it is, ``fallback="question_text"``. A passage with blank ``match_text`` (a
    page node) is never retrieved.

    Args:
        encoder: gives the embeddings of windows and of queries; KGP's is ``multi-qa-MiniLM-L6-cos-v1``.
        nouns: gives the nouns of texts (:class:`graphcontext.graph.noun_text.NounText` with ``tag=plain``).
        top_k: passages per question, ≥ 1; KGP takes 30.
        n_levenshtein: how many of them are left to the distance, from 0 to ``top_k``; KGP takes 15.
        window: words of a window, ≥ 1; KGP takes 4.
        stride: words between the beginnings of two windows, from 1 to ``window``; KGP takes 2.
        query: ``nouns`` of the question, or its whole ``text``.
        order: ``best_first``, or ``code``: the first part from its last to its best, as KGP's code returns it, which
            costs it recall at small k.

    Raises:
        InputError: a value out of range.

    Differs from the paper: the code lets a passage stand in both parts, so that its 30 may be fewer.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()
    needs_graph: ClassVar[bool] = False

    def __init__(
        self,
        encoder: Any,
        nouns: Any,
        top_k: int = 30,
        n_levenshtein: int = 15,
        window: int = 4,
        stride: int = 2,
        query: str = "nouns",
        order: str = "best_first",
    ):
        for name, value, allowed in (("query", query, QUERIES), ("order", order, ORDERS)):
            if value not in allowed:
                raise InputError(f"retriever.{name}={value}{did_you_mean(str(value), allowed)}")
        self.top_k, self.window = checked_count("top_k", top_k), checked_count("window", window)
        if isinstance(n_levenshtein, bool) or not isinstance(n_levenshtein, int) or not 0 <= n_levenshtein <= top_k:
            raise InputError(f"retriever.n_levenshtein={n_levenshtein}: allowed is 0 to top_k={top_k}")
        if checked_count("stride", stride) > window:
            raise InputError(f"retriever.stride={stride}: allowed is 1 to window={window}, or words would be lost")
        self.encoder, self.nouns, self.n_levenshtein, self.stride = encoder, nouns, n_levenshtein, stride
        self.query, self.order = query, order
        self._windows: dict[str, tuple[str, ...]] = {}  # of each text

    def retrieve(
        self, questions: Sequence[Question], corpora: dict[str, Corpus], graphs: dict[str, Graph]
    ) -> list[Ranking]:
        """Return one ranking per question, by index; the windows of all corpora are encoded at once."""
        rankings = [empty(question) for question in questions]
        if not questions:
            return rankings
        self._cut(corpora)
        nouns = self.nouns.nouns([q.text for q in questions]) if self.query == "nouns" else [""] * len(questions)
        texts = [own or question.text for own, question in zip(nouns, questions, strict=True)]
        vectors = unit_rows(self.encoder.encode(texts, kind="query"))
        for corpus, positions, asked in by_corpus(questions, corpora):
            kept = matchable(corpus)
            if not len(kept):
                continue
            near = self._nearest(corpus, kept, vectors[positions])
            distances = _distances([q.text for q in asked], [corpus.passages[i].match_text.strip() for i in kept])
            for row, (position, question) in enumerate(zip(positions, asked, strict=True)):
                found = self._united(near[row], kept, distances[row])
                passages = tuple(Scored(corpus.passages[i].id, score) for i, score in found)
                fallback = "question_text" if self.query == "nouns" and not nouns[position] else None
                ranking = Ranking(question.id, passages, fallback=fallback)
                rankings[position] = ranking if passages else empty(question, NO_NOUN)
        return rankings

    def _cut(self, corpora: dict[str, Corpus]) -> None:
        """Cut the passages of all corpora into windows, each text once, and encode all windows at once."""
        fresh = sorted({p.match_text for c in corpora.values() for p in c.passages} - self._windows.keys())
        for text, nouns in zip(fresh, self.nouns.nouns(fresh), strict=True):
            self._windows[text] = windows(nouns.split(), self.window, self.stride)
        if hasattr(self.encoder, "pool"):
            self.encoder.pool(sorted({window for each in self._windows.values() for window in each}))

    def _nearest(self, corpus: Corpus, kept: np.ndarray, queries: np.ndarray) -> list[list[tuple[int, float]]]:
        """Return (passage index, score) of the best passages of each query, best first."""
        k = self.top_k - self.n_levenshtein
        of_each = [self._windows[corpus.passages[i].match_text] for i in kept]
        at = np.array([i for i, own in zip(kept, of_each, strict=True) if own], np.int64)
        if not k or not len(at):
            return [[] for _ in queries]
        lengths = np.array([len(own) for own in of_each if own])
        pool = unit_rows(self.encoder.encode([window for own in of_each for window in own], kind="passage"))
        return [
            [(int(at[i]), float(score)) for i, score in zip(indices, scores, strict=True)]
            for indices, scores in best_by_window(queries, pool, lengths, k)
        ]

    def _united(
        self, near: list[tuple[int, float]], kept: np.ndarray, distances: np.ndarray
    ) -> list[tuple[int, float]]:
        """Return the nearest, then the passages of smallest distance that are not among them, ``top_k`` in all."""
        ranked = {i for i, _ in near}
        by_distance = ((int(kept[j]), -float(distances[j])) for j in np.argsort(distances, kind="stable"))
        more = [found for found in by_distance if found[0] not in ranked][: self.top_k - len(near)]
        return [*(near if self.order == "best_first" else near[::-1]), *(more if self.n_levenshtein else [])]


def windows(words: Sequence[str], size: int, stride: int) -> tuple[str, ...]:
    """Return the windows of ``size`` words, ``stride`` apart, until the last word is in one.

    >>> windows("a b c d e".split(), 4, 2), windows(["a"], 4, 2), windows([], 4, 2)
    (('a b c d', 'c d e'), ('a',), ())
    """
    if not words:
        return ()
    starts = range(0, max(1, len(words) - size + stride), stride)
    return tuple(" ".join(words[start : start + size]) for start in starts)


def best_by_window(
    queries: np.ndarray, pool: np.ndarray, lengths: np.ndarray, k: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the ``k`` passages of highest exact cosine of their best window for each query, ties by lower index.

    Args:
        queries: unit rows (m, dim).
        pool: unit rows of all windows, passage after passage (n_windows, dim).
        lengths: windows of each passage (n_passages,), each ≥ 1.
        k: passages per query.

    Returns:
        Per query the passages' indices and cosines (≤ k,), best first.
    """
    starts = np.cumsum(lengths) - lengths
    k, slack = min(k, len(lengths)), 2 * margin(pool.shape[1])
    block = max(1, _PRODUCTS // len(pool))
    found = []
    for first in range(0, len(queries), block):
        maxima = np.maximum.reduceat(queries[first : first + block] @ pool.T, starts, axis=1)
        for q, row in enumerate(maxima, first):
            last = np.partition(row, len(row) - k)[len(row) - k]
            near = np.flatnonzero(row >= last - slack)
            own = lengths[near]
            ends = np.cumsum(own)
            rows = np.arange(ends[-1]) + np.repeat(starts[near] - (ends - own), own)  # the windows of these passages
            exact = np.maximum.reduceat(exact_cosine(queries, np.full(len(rows), q), pool, rows), ends - own)
            order = np.argsort(-exact, kind="stable")[:k]
            found.append((near[order], exact[order]))
    return found


def _distances(questions: list[str], texts: list[str]) -> np.ndarray:
    """Return the Levenshtein distances (n_questions, n_texts), in characters."""
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cdist

    return cdist(questions, texts, scorer=Levenshtein.distance, dtype=np.int32)
