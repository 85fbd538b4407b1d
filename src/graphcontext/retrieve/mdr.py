"""Two-hop dense retrieval (KGP Table 1 "MDR")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from graphcontext.data.records import Corpus, Graph, Question, Ranking, Scored, Step
from graphcontext.errors import InputError, did_you_mean
from graphcontext.graph.cosine import exact_cosine, margin
from graphcontext.retrieve.by_corpus import by_corpus, checked_count, empty, encode_pool, matchable
from graphcontext.retrieve.encoder import warn_untrained

RANKS = ("product", "generation")
_PRODUCTS = 1 << 24  # of one block


@dataclass(frozen=True)
class Hop:
    """What one corpus' questions found in the first hop.

    Args:
        corpus: theirs.
        kept: passage index of each row of ``pool`` (n_kept,).
        pool: vectors (n_kept, dim).
        rows: rows of ``pool`` by question (n_questions, n_first), best first.
        scores: their scores, likewise.
    """

    corpus: Corpus
    kept: np.ndarray
    pool: np.ndarray
    rows: np.ndarray
    scores: np.ndarray


@dataclass(frozen=True)
class Pair:
    """A first passage and a second one (None where the corpus holds no other), as rows of the pool."""

    first: int
    second: int | None
    score: float


class MDR:
    r"""Retrieves pairs of passages by dense two-hop search (KGP §4.2, Table 1 "MDR"; Xiong et al. 2021).

    .. math:: \mathrm{score}(p_1, p_2) = \langle e_q, e_{p_1} \rangle_+ \, \langle e_{q \Vert p_1}, e_{p_2} \rangle_+

    The ``n_first`` best passages for the question; for each the ``n_second`` best for the question followed by it,
    other than itself: 45 pairs. Of the ``top_k`` best pairs the ranking holds each passage once, in the order of the
    pairs, first before second, and at most ``top_k`` of them; a passage's score is that of the first pair that holds
    it. ``steps`` hold these pairs, best first. Exact: equal dot products by lower passage index, equal pairs by the
    order they were found in. A passage with blank ``match_text`` (a page node) is never retrieved.

    Args:
        encoder: gives the embeddings of the question, of question and first passage (both as a query), and of the
            passages' ``match_text``.
        top_k: pairs that are kept, and passages of the ranking at most, ≥ 1; KGP takes 30.
        n_first: passages of the first hop, ≥ 1; KGP takes 15.
        n_second: passages of the second hop for each, ≥ 1; KGP takes 3.
        rank: ``product``: pairs by their score (the paper); ``generation``: in the order they were found (KGP's code).
        joiner: between the question and the first passage's ``match_text``; as the encoder was trained with.

    Raises:
        InputError: a count below 1, an unknown ``rank``.

    Differs from the paper: a negative dot product counts as 0, or two of them would make a good pair. The paper shows
    the model 30 pairs, in which passages occur several times; ``enhancer=pairs`` does so.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()
    records_steps: ClassVar[bool] = True
    needs_graph: ClassVar[bool] = False

    def __init__(
        self,
        encoder: Any,
        top_k: int = 30,
        n_first: int = 15,
        n_second: int = 3,
        rank: str = "product",
        joiner: str = "\n",
    ):
        if rank not in RANKS:
            raise InputError(f"retriever.rank={rank}{did_you_mean(str(rank), RANKS)}")
        self.encoder, self.rank, self.joiner = encoder, rank, joiner
        self.top_k = checked_count("top_k", top_k)
        self.n_first, self.n_second = checked_count("n_first", n_first), checked_count("n_second", n_second)

    def retrieve(
        self, questions: Sequence[Question], corpora: dict[str, Corpus], graphs: dict[str, Graph]
    ) -> list[Ranking]:
        """Return one ranking per question, by index; the second hops of all questions are encoded at once."""
        rankings = [empty(question) for question in questions]
        if not questions:
            return rankings
        warn_untrained(self.encoder, "retriever=mdr")
        encode_pool(self.encoder, corpora)
        asked_vectors = self.encoder.encode([q.text for q in questions], kind="query")
        hops: dict[int, tuple[Hop, int]] = {}  # position of a question → its first hop and its row there
        texts: list[str] = []
        starts: dict[int, int] = {}
        for corpus, positions, asked in by_corpus(questions, corpora):
            kept = matchable(corpus)
            if not len(kept):
                continue
            pool = self.encoder.encode([corpus.passages[i].match_text for i in kept], kind="passage")
            hop = Hop(corpus, kept, pool, *nearest_by_product(asked_vectors[positions], pool, self.n_first))
            for row, (position, question) in enumerate(zip(positions, asked, strict=True)):
                hops[position], starts[position] = (hop, row), len(texts)
                texts += [self._joined(question, hop, first) for first in hop.rows[row]]
        vectors = self.encoder.encode(texts, kind="query") if texts else None
        for position, (hop, row) in hops.items():
            start = starts[position]
            pairs = self._pairs(hop, row, vectors[start : start + hop.rows.shape[1]])
            rankings[position] = self._ranking(questions[position], hop, row, pairs)
        return rankings

    def _joined(self, question: Question, hop: Hop, first: int) -> str:
        """Return the query of the second hop."""
        return question.text + self.joiner + hop.corpus.passages[hop.kept[first]].match_text

    def _pairs(self, hop: Hop, row: int, vectors: np.ndarray) -> list[Pair]:
        """Return the best ``top_k`` pairs of one question, in their order."""
        seconds, scores = nearest_by_product(vectors, hop.pool, self.n_second, without=hop.rows[row])
        pairs = []
        for n, (first, score) in enumerate(zip(hop.rows[row].tolist(), hop.scores[row].tolist(), strict=True)):
            if not seconds.shape[1]:
                pairs.append(Pair(first, None, score))
            for second, more in zip(seconds[n].tolist(), scores[n].tolist(), strict=True):
                pairs.append(Pair(first, second, max(score, 0.0) * max(more, 0.0)))
        if self.rank == "product":
            pairs.sort(key=lambda pair: -pair.score)  # stable
        return pairs[: self.top_k]

    def _ranking(self, question: Question, hop: Hop, row: int, pairs: Sequence[Pair]) -> Ranking:
        """Return the passages of the pairs, each once, and the pairs as steps."""
        passages = [hop.corpus.passages[i].id for i in hop.kept]
        best: dict[int, float] = {}
        led: dict[int, None] = {}
        steps: list[Step] = []
        for pair in pairs:
            for at in (pair.first, pair.second):
                if at is not None:
                    best.setdefault(at, pair.score)
            led.setdefault(pair.first)
            if pair.second is None:
                continue
            path, chosen = (passages[pair.first],), (passages[pair.second],)
            if steps and steps[-1].path == path:
                chosen = (*steps.pop().chosen, *chosen)
            steps.append(Step(path, self._joined(question, hop, pair.first), chosen, len(passages) - 1))
        seeds = tuple(passages[first] for first in hop.rows[row].tolist() if first in led)
        steps.insert(0, Step((), question.text, seeds, len(passages)))
        found = tuple(Scored(passages[at], score) for at, score in list(best.items())[: self.top_k])
        return Ranking(question.id, found, steps=tuple(steps))


def nearest_by_product(
    queries: np.ndarray, pool: np.ndarray, k: int, without: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ``k`` pool rows of highest dot product for each query, equal ones by lower index.

    The float32 product proposes, one float64 sum per pair decides, whatever the shapes
    (:mod:`graphcontext.graph.cosine`).

    Args:
        queries: (m, dim) of any length.
        pool: (n, dim) of any length.
        k: rows per query, cut to n, or to n − 1 with ``without``.
        without: a row of the pool that each query leaves out (m,).

    Returns:
        Indices (m, k) int64 and dot products (m, k) float64, best first.
    """
    k = min(k, len(pool) - (without is not None))
    indices, products = np.zeros((len(queries), max(k, 0)), np.int64), np.zeros((len(queries), max(k, 0)))
    if k <= 0 or not len(queries):
        return indices, products
    longest = float(np.linalg.norm(pool, axis=1).max())
    slack = 2 * margin(pool.shape[1]) * longest * np.linalg.norm(queries, axis=1)  # (m,)
    block = max(1, _PRODUCTS // len(pool))
    for start in range(0, len(queries), block):
        for q, row in enumerate(queries[start : start + block] @ pool.T, start):
            if without is not None:
                row[without[q]] = -np.inf
            last = np.partition(row, len(row) - k)[len(row) - k]
            near = np.flatnonzero(row >= last - slack[q])
            exact = exact_cosine(queries, np.full(len(near), q), pool, near)
            order = np.argsort(-exact, kind="stable")[:k]
            indices[q], products[q] = near[order], exact[order]
    return indices, products
