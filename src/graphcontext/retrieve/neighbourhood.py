"""What lies near the best passages: seeds and all within a few hops of them in the passage graph (KGP, Fig 5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from graphcontext.data.records import Corpus, Graph, Question, Ranking, Scored
from graphcontext.errors import InputError
from graphcontext.retrieve.by_corpus import by_corpus, checked_count
from graphcontext.retrieve.tfidf import TFIDF


class Neighbourhood:
    r"""Returns the whole neighbourhood of the best passages (KGP Fig 5, 6, 9 and 10: the quality of a graph).

    With S the ``n_seeds`` best passages by TF-IDF and N(v) the passages that an edge leads to from v:

    .. math:: V_0 = S, \qquad V_h = V_{h-1} \cup \bigcup_{v \in V_{h-1}} N(v), \qquad V = V_{hops}

    The ranking is the set V: seeds as TF-IDF ranks them and with its scores, then hop by hop, by passage index within
    a hop, with the hop's negative as score. It is to be judged whole (``metric.sf_em.k=null``). A seed is in its own
    neighbourhood. Of a directed graph, edges are followed forwards. A question without a seed has an empty ranking.

    Args:
        n_seeds: seed passages, ≥ 1; the paper takes 5.
        hops: how far to go, ≥ 0; the paper shows 1 and 2. 0 is TF-IDF itself.

    Raises:
        InputError: a value out of range; a graph with other nodes than the corpus.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()
    needs_graph: ClassVar[bool] = True

    def __init__(self, n_seeds: int = 5, hops: int = 1):
        if isinstance(hops, bool) or not isinstance(hops, int) or hops < 0:
            raise InputError(f"retriever.hops={hops}: allowed is a whole number of at least 0")
        self.n_seeds, self.hops = checked_count("n_seeds", n_seeds), hops
        self._seeds = TFIDF(top_k=n_seeds)

    def retrieve(
        self, questions: Sequence[Question], corpora: dict[str, Corpus], graphs: dict[str, Graph]
    ) -> list[Ranking]:
        """Return the neighbourhood of each question's seeds, by index."""
        rankings = self._seeds.retrieve(questions, corpora, graphs)
        for corpus, positions, _ in by_corpus(questions, corpora):
            graph = _graph_of(corpus, graphs)
            ids = np.array([p.id for p in corpus.passages], dtype=object)
            place = {passage: i for i, passage in enumerate(ids)}
            for at in positions:
                seeds = rankings[at]
                if not seeds.passages:
                    continue
                shells = neighbourhood(graph, np.array([place[hit.id] for hit in seeds.passages]), self.hops)
                near = [Scored(i, -float(hop)) for hop, shell in enumerate(shells[1:], 1) for i in ids[shell]]
                rankings[at] = Ranking(seeds.id, (*seeds.passages, *near))
        return rankings


def neighbourhood(graph: Graph, seeds: np.ndarray, hops: int) -> list[np.ndarray]:
    """Return the passages first met at each hop: the seeds as given, then each shell ascending.

    Args:
        graph: CSR.
        seeds: passage indices (n_seeds,).
        hops: shells after the seeds; an empty one ends the list.
    """
    seen = np.zeros(graph.n_nodes, dtype=bool)
    seen[seeds] = True
    shells = [seeds]
    for _ in range(hops):
        fresh = np.zeros_like(seen)
        fresh[_targets(graph, shells[-1])] = True
        fresh &= ~seen
        seen |= fresh
        shells.append(np.flatnonzero(fresh))
        if not len(shells[-1]):
            break
    return shells


def _targets(graph: Graph, rows: np.ndarray) -> np.ndarray:
    """Return where the edges of these rows lead, one entry per edge slot."""
    starts, lengths = graph.indptr[rows], graph.indptr[rows + 1] - graph.indptr[rows]
    within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return graph.indices[np.repeat(starts, lengths) + within]


def _graph_of(corpus: Corpus, graphs: dict[str, Graph]) -> Graph:
    graph = graphs.get(corpus.id)
    if graph is None:
        raise InputError(f"retriever=neighbourhood needs a graph of corpus {corpus.id}: choose one with graph=")
    n = len(corpus.passages)
    if graph.n_nodes != n:
        raise InputError(f"the graph of corpus {corpus.id} has {graph.n_nodes} nodes for {n} passages")
    return graph
