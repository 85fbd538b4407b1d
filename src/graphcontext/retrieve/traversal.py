"""Traversal of a passage graph, guided by an agent (KGP §4.2, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from graphcontext.data.records import Corpus, Graph, Question, Ranking
from graphcontext.errors import InputError, did_you_mean
from graphcontext.retrieve.agents.state import Evidence, State
from graphcontext.retrieve.by_corpus import by_corpus, checked_count, empty
from graphcontext.retrieve.subset_tfidf import SubsetTfidf, Vocabulary, check_fit
from graphcontext.retrieve.walk import Budget, Path, Pool, Walk

MODES = ("code", "paper")
UNSCHEDULED = {"branching": 3, "n_seeds": None, "max_hops": 2, "mode": "code", "revisit": True}  # without effect there
NOTHING = Evidence("", "empty")  # of a path that leads nowhere


class Traversal:
    r"""Walks from seed passages to those neighbours that fit the evidence an agent asks for (KGP §4.2, Algorithm 1).

    Seeds are the passages nearest to the question by TF-IDF. Of a path (s, …, v) the agent is shown the question and
    the passages on it, names the next evidence e, and the path goes on to the best of v's neighbours:

    .. math:: V' = \mathrm{top}_b \{g(u, e) : u \in N(v)\}

    with g the TF-IDF cosine among these neighbours, or the agent's own score. All calls to a model that can be made at
    one time, over all questions, are one batch.

    ``mode=code`` is what the released code does and the paper's numbers come from: exactly two hops. Each pair of a
    seed and one of its b neighbours is one of ``top_k`` contexts; a seed that leads nowhere is one alone.
    ``mode=paper`` is Algorithm 1: paths go on breadth first, every passage that is put on one counts, and K end it.

    The ranking holds each passage once, in the order of its first appearance: a seed, what was chosen from there, the
    next seed, and so on. It is a set with an order, so the score of a passage is 1 / its rank and says no more. In
    ``code`` these are all passages of the ``top_k`` pairs: up to ``n_seeds`` · (1 + b), 40 with the defaults, of which
    a metric at 30 reads the first 30. In ``paper`` they are at most ``top_k``; fewer where paths meet.

    Differs from the paper: passages without text, and those with the very text of one on the path, are no candidates.
    Differs from the released code: it joins each pair to one context, so that a seed's text is repeated, and its
    metrics at 30 read the first 30 of these texts, repeated ones included: at most 20 different passages. A seed shares
    a word with the question, a passage without neighbour is not asked about, and ties go to the lower index.

    Args:
        agent: has ``evidence(states)``, and ``scores(states, evidences, candidates)`` where it scores them itself.
        top_k: K, ≥ 1: pairs in ``code``, passages in ``paper``; 30 in the paper.
        branching: b, neighbours chosen per step, ≥ 1.
        n_seeds: from 1 to ``top_k``; null: ``top_k // branching``, at least 1.
        max_hops: passages on a path at most, ≥ 1; null: no limit (``paper`` only). ``code`` has 2.
        mode: ``code`` or ``paper``.
        use_graph: False: the neighbours of a passage are all others (the rows without a graph).
        fit: passages that TF-IDF is fitted on: the ``candidates`` of a step, or the whole ``corpus``.
        revisit: neighbours that another path found already may be chosen again, as in the released code and in
            Algorithm 1; False: each step finds new ones, so that the budget buys more passages.

    Raises:
        InputError: a value out of range, or one without effect on an agent with a schedule; a graph that is not there,
            or with other nodes than the corpus.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()
    records_steps: ClassVar[bool] = True

    def __init__(
        self,
        agent: Any,
        top_k: int = 30,
        branching: int = 3,
        n_seeds: int | None = None,
        max_hops: int | None = 2,
        mode: str = "code",
        use_graph: bool = True,
        fit: str = "candidates",
        revisit: bool = True,
    ):
        self.agent, self.use_graph, self.fit = agent, use_graph, check_fit(fit)
        self.top_k = checked_count("top_k", top_k)
        if mode not in MODES:
            raise InputError(f"retriever.mode={mode}{did_you_mean(str(mode), MODES)}")
        checked_count("branching", branching)
        if n_seeds is not None and checked_count("n_seeds", n_seeds) > top_k:
            raise InputError(f"retriever.n_seeds={n_seeds}: allowed is at most top_k={top_k}, or null")
        if max_hops is not None:
            checked_count("max_hops", max_hops)
        if mode == "code" and max_hops != 2:
            raise InputError(f"retriever.max_hops={max_hops}: mode=code has exactly 2 hops; mode=paper takes others")
        schedule = getattr(agent, "schedule", None)
        n_first = n_seeds or max(1, top_k // branching)
        if schedule is not None:
            given = {"branching": branching, "n_seeds": n_seeds, "max_hops": max_hops, "mode": mode, "revisit": revisit}
            for name, value in given.items():
                if value != UNSCHEDULED[name]:
                    why = "this agent takes the passages of each hop from agent.schedule, whatever it is"
                    raise InputError(f"retriever.{name}={value}: {why}; agent.schedule=null")
            n_first = min(schedule[0], top_k)
        self.budget = Budget(top_k, branching, n_first, max_hops, mode == "code", revisit)
        self._vocabulary = Vocabulary()
        self._indexes: dict[str, SubsetTfidf] = {}

    @staticmethod
    def needs_graph(config: dict[str, Any]) -> bool:
        """Tell whether a config of it is given a graph."""
        return bool(config.get("use_graph", True))

    @staticmethod
    def calls(config: dict[str, Any]) -> int:
        """Return how many calls to a language model a question takes at most, for ``plan``."""
        if "llm" not in config["agent"]:
            return 0
        top_k, branching = config.get("top_k", 30), config.get("branching", 3)
        n_seeds = config.get("n_seeds") or max(1, top_k // branching)
        if config.get("mode", "code") == "paper" and n_seeds >= top_k:
            return 0  # nothing of the budget is left
        return min(n_seeds, top_k) if config.get("max_hops", 2) == 2 else top_k  # a path is asked about once

    def retrieve(
        self, questions: Sequence[Question], corpora: dict[str, Corpus], graphs: dict[str, Graph]
    ) -> list[Ranking]:
        """Return each question's passages, and the steps that led to them."""
        rankings = [empty(question) for question in questions]
        if hasattr(self.agent, "begin"):
            self.agent.begin(corpora)
        kept, self._indexes = self._indexes, {}
        walks: dict[int, Walk] = {}
        for corpus, positions, asked in by_corpus(questions, corpora):
            if not corpus.passages:
                continue
            texts = [passage.match_text for passage in corpus.passages]
            index = kept.get(corpus.id) or SubsetTfidf(self._vocabulary, texts, self.fit)
            self._indexes[corpus.id] = index
            pool = Pool(corpus, index, _graph_of(corpus, graphs) if self.use_graph else None)
            walks |= {at: Walk(question, pool, self.budget) for at, question in zip(positions, asked, strict=True)}
        self._walk(list(walks.values()))
        repeatable = getattr(self.agent, "repeatable", False)
        for position, walk in walks.items():
            rankings[position] = walk.ranking(repeatable)
        return rankings

    def _walk(self, walks: list[Walk]) -> None:
        """Take the steps of all walks: each round asks about every path that is certain to be needed."""
        schedule = getattr(self.agent, "schedule", None)
        if schedule is not None:
            for walk in walks:
                walk.hops(schedule)
            return
        while due := [(walk, path) for walk in walks for path in walk.due()]:
            asked = [(walk, path) for walk, path in due if len(walk.pool.candidates(path))]
            answers = iter(self._ask(asked))
            for walk, path in due:
                walk.step(path, *(next(answers) if len(walk.pool.candidates(path)) else (NOTHING,)))

    def _ask(self, asked: list[tuple[Walk, Path]]) -> list[tuple[Evidence, np.ndarray | None]]:
        """Return the next evidence of each path, and the agent's own scores of its candidates, None for TF-IDF."""
        states = [State(walk.question, walk.pool.corpus, path) for walk, path in asked]
        evidences = self.agent.evidence(states) if states else []
        if not states or not hasattr(self.agent, "scores"):
            return [(evidence, None) for evidence in evidences]
        scores = self.agent.scores(states, evidences, [walk.pool.candidates(path) for walk, path in asked])
        return list(zip(evidences, scores, strict=True))


def _graph_of(corpus: Corpus, graphs: dict[str, Graph]) -> Graph:
    """Return the corpus' graph after checking that it has the corpus' passages as nodes."""
    graph = graphs.get(corpus.id)
    if graph is None:
        raise InputError(f"retriever=traversal needs a graph of corpus {corpus.id}: choose one with graph=")
    if graph.n_nodes != len(corpus.passages):
        n = len(corpus.passages)
        raise InputError(f"the graph of corpus {corpus.id} has {graph.n_nodes} nodes for {n} passages")
    return graph
