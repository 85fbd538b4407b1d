"""Personalised PageRank over the question graph (GraphContextGen §4.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from graphcontext.data.records import Corpus, Graph, Question, Ranking
from graphcontext.errors import InputError
from graphcontext.graph.cosine import nearest, query_edges, unit_rows
from graphcontext.graph.pagerank import PowerIteration, pagerank_blocks
from graphcontext.retrieve.by_corpus import best, by_corpus, checked_count, empty, encode_pool, matchable, scored

_DECIMALS = 12  # equal scores of symmetric nodes differ in the last bits; below this they tie


class PPR:
    r"""Ranks the pool by personalised PageRank from the question as a node (GraphContextGen §4.2).

    .. math:: x = \alpha P'^\top x + (1 - \alpha) e_q

    on the graph G' = G plus the question q, joined to every passage whose cosine is above the graph's
    threshold.

    Args:
        encoder: the encoder the graph was built with.
        top_k: passages per question, ≥ 1; the paper takes 2 (§5).
        damping: α in [0, 1); the paper's .85.
        max_iter: iterations at most; the paper's 100.
        tol: the paper's 1e-6.
        convergence: ``true`` (within tol of the solution) or ``networkx`` (its stopping rule).

    Raises:
        InputError: a value out of range; a graph without a threshold or with other nodes than the corpus.

    Differs from the paper:
        Two cases that the paper leaves undefined. A question without a neighbour has PageRank 0 everywhere:
        it gets the cosine ranking, ``fallback="cosine"``. Where fewer than ``top_k`` passages can be
        reached, the rest are the nearest by cosine with their PageRank score, 0, and
        ``fallback="cosine_fill"``. Where ``max_iter`` steps do not reach ``tol``, the last scores are taken and
        ``reason`` says so. On large graphs (see :data:`graphcontext.graph.pagerank.LARGE`) scores
        that differ by less than ``tol`` are not told apart. A passage with blank ``match_text`` (a page node)
        passes mass on as any node of the graph, but is joined to no question and never retrieved.
    """

    version: ClassVar[int] = 2  # 2: conjugate gradients on large graphs
    execution: ClassVar[frozenset[str]] = frozenset()
    needs_graph: ClassVar[bool] = True

    def __init__(
        self,
        encoder: Any,
        top_k: int = 2,
        damping: float = 0.85,
        max_iter: int = 100,
        tol: float = 1e-6,
        convergence: str = "true",
    ):
        self.encoder = encoder
        self.top_k = checked_count("top_k", top_k)
        self.iteration = PowerIteration(damping, max_iter, tol, convergence)

    def retrieve(
        self, questions: Sequence[Question], corpora: dict[str, Corpus], graphs: dict[str, Graph]
    ) -> list[Ranking]:
        rankings = [empty(question) for question in questions]
        if not questions:
            return rankings
        encode_pool(self.encoder, corpora)
        asked_vectors = unit_rows(self.encoder.encode([q.text for q in questions], kind="query"))
        for corpus, positions, asked in by_corpus(questions, corpora):
            if not len(matchable(corpus)):
                continue
            graph = _graph_of(corpus, graphs)
            found = self._rank(corpus, graph, asked, asked_vectors[positions])
            for position, ranking in zip(positions, found, strict=True):
                rankings[position] = ranking
        return rankings

    def _rank(self, corpus: Corpus, graph: Graph, questions: Sequence[Question], vectors: np.ndarray) -> list[Ranking]:
        """Rank one corpus for all its questions at once."""
        kept = matchable(corpus)
        pool = unit_rows(self.encoder.encode([corpus.passages[i].match_text for i in kept], kind="passage"))
        edges = query_edges(vectors, pool, graph.facts["threshold"], graph.facts.get("weighted", False))
        edges = _to_nodes(edges, kept, graph.n_nodes)
        top: list[tuple[np.ndarray, np.ndarray]] = []
        is_open: list[bool] = []
        for block in pagerank_blocks(graph, edges, self.iteration):
            top.extend(best(np.round(scores[kept], _DECIMALS), self.top_k, kept) for scores in block.scores)
            is_open.extend(~block.has_converged)
        wanted = min(self.top_k, len(pool))
        short = [row for row, (indices, _) in enumerate(top) if len(indices) < wanted]
        # of 2k nearest at most k are ranked already, so k are left to fill with
        near, cosines = nearest(vectors[short], pool, 2 * wanted)
        neighbours = dict(zip(short, zip(kept[near], cosines, strict=True), strict=True))
        found = [
            self._complete(corpus, question, top[row], neighbours.get(row), wanted)
            for row, question in enumerate(questions)
        ]
        reason = f"PageRank stopped at max_iter={self.iteration.max_iter}"
        return [replace(r, reason=reason) if stopped else r for r, stopped in zip(found, is_open, strict=True)]

    def _complete(
        self,
        corpus: Corpus,
        question: Question,
        ranked: tuple[np.ndarray, np.ndarray],
        neighbours: tuple[np.ndarray, np.ndarray] | None,
        wanted: int,
    ) -> Ranking:
        """Return the ranking, filled up from the nearest by cosine where PageRank reached too few."""
        indices, scores = ranked
        if neighbours is None:
            return Ranking(question.id, scored(corpus, indices, scores))
        if not len(indices):
            near, cosines = neighbours
            return Ranking(question.id, scored(corpus, near[:wanted], cosines[:wanted]), fallback="cosine")
        fill = neighbours[0][~np.isin(neighbours[0], indices)][: wanted - len(indices)]
        passages = scored(corpus, np.concatenate([indices, fill]), np.concatenate([scores, np.zeros(len(fill))]))
        return Ranking(question.id, passages, fallback="cosine_fill")


def _to_nodes(edges: Any, kept: np.ndarray, n_nodes: int) -> Any:
    """Return the edges into the ``kept`` passages (m, n_kept) as edges into the graph's nodes (m, n_nodes)."""
    from scipy.sparse import csr_array

    if len(kept) == n_nodes:
        return edges
    return csr_array((edges.data, kept[edges.indices], edges.indptr), shape=(edges.shape[0], n_nodes))


def _graph_of(corpus: Corpus, graphs: dict[str, Graph]) -> Graph:
    """Return the corpus' graph after checking that PageRank can run on it."""
    graph = graphs.get(corpus.id)
    if graph is None:
        raise InputError(f"retriever=ppr needs a graph of corpus {corpus.id}: choose one with graph=")
    if graph.n_nodes != len(corpus.passages):
        raise InputError(
            f"the graph of corpus {corpus.id} has {graph.n_nodes} nodes for {len(corpus.passages)} passages"
        )
    if "threshold" not in graph.facts:
        raise InputError(
            f"the graph of corpus {corpus.id} has no similarity threshold to join questions by: "
            "retriever=ppr needs graph=question_similarity"
        )
    return graph
