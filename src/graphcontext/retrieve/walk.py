"""One question's way through a passage graph: its queue of paths, its budget and its steps."""

from __future__ import annotations

import itertools
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from graphcontext.data.records import Corpus, Graph, Question, Ranking, Scored, Step
from graphcontext.retrieve.agents.state import Evidence
from graphcontext.retrieve.by_corpus import empty
from graphcontext.retrieve.lexical import NO_MATCH
from graphcontext.retrieve.subset_tfidf import SubsetTfidf, order

Path = tuple[int, ...]

FAILED = "agent failed"
NO_NEIGHBOUR = "no neighbour"
NO_NEW = "no new neighbour"
NO_WORD = "no neighbour has a word"
BY_INDEX = "no neighbour has a word of the evidence"  # all score 0: taken by index


@dataclass(frozen=True)
class Budget:
    """How far a traversal goes.

    Args:
        top_k: K.
        branching: b, neighbours chosen per step.
        n_seeds: paths at the start.
        max_hops: passages on a path at most, None without limit.
        count_pairs: K counts pairs of a seed and a neighbour (and seeds alone) rather than passages put on paths.
        revisit: a passage that was found on another path may be chosen again.
    """

    top_k: int
    branching: int
    n_seeds: int
    max_hops: int | None
    count_pairs: bool
    revisit: bool = True


class Pool:
    """A corpus as a traversal sees it.

    Args:
        corpus: the passages.
        index: TF-IDF over their texts.
        graph: None: each passage is every other's neighbour.
    """

    def __init__(self, corpus: Corpus, index: SubsetTfidf, graph: Graph | None) -> None:
        self.corpus, self.index, self.graph = corpus, index, graph
        wordless = np.flatnonzero(index.counts.n_words == 0)
        self._text_of = index.counts.texts.copy()
        self._text_of[[i for i in wordless if not corpus.passages[i].match_text.strip()]] = -1
        self._candidates: dict[Path, np.ndarray] = {}

    def neighbours(self, passage: int) -> np.ndarray:
        """Return the neighbours of a passage that have text, ascending."""
        if self.graph is None:
            found = np.arange(len(self._text_of))
        else:
            found = np.unique(self.graph.indices[self.graph.indptr[passage] : self.graph.indptr[passage + 1]])
        return found[self._text_of[found] >= 0]

    def is_new(self, passages: np.ndarray, seen: Sequence[int]) -> np.ndarray:
        """Tell of each passage whether its text is not that of one seen."""
        return ~np.isin(self._text_of[passages], self._text_of[list(seen)])

    def unseen(self, passage: int, seen: Sequence[int]) -> np.ndarray:
        """Return those neighbours of a passage whose text is not that of one seen."""
        found = self.neighbours(passage)
        return found[self.is_new(found, seen)]

    def candidates(self, path: Path) -> np.ndarray:
        """Return where a path can go on: neighbours of its last passage with a text that is not yet on it."""
        if path not in self._candidates:
            self._candidates[path] = self.unseen(path[-1], path)
        return self._candidates[path]


class Walk:
    """The paths of one question, breadth first.

    Args:
        question: what is asked.
        pool: its corpus.
        budget: where it ends.
    """

    def __init__(self, question: Question, pool: Pool, budget: Budget) -> None:
        self.question, self.pool, self.budget = question, pool, budget
        scores = pool.index.scores(question.text)
        best = order(scores, budget.n_seeds)
        self.seeds: list[int] = best[scores[best] > 0].tolist()
        seeds = Step((), question.text, self._ids(self.seeds), len(pool.corpus.passages))
        self.steps: list[Step] = [seeds]
        self._found: list[int] = []  # in the order of their appearance, repeats included
        self._queue = deque((seed,) for seed in self.seeds) if budget.max_hops != 1 else deque()
        self._left = budget.top_k - (0 if budget.count_pairs else len(self.seeds))
        self._odd: Counter[str] = Counter()  # why paths end, and what was chosen without a reason
        self._n_asked = self._n_failed = 0
        self._failure: str | None = None  # the first one

    def due(self) -> list[Path]:
        """Return the paths at the front that are certain to be needed, whatever an agent says about them.

        A path takes as much of the budget as it has candidates, at most b: none is asked about in vain.
        """
        front, left = [], self._left
        for path in self._queue:
            if left <= 0:
                break
            front.append(path)
            left -= min(self.budget.branching, len(self.pool.candidates(path))) or int(self.budget.count_pairs)
        return front

    def step(self, path: Path, evidence: Evidence, own: np.ndarray | None = None) -> None:
        """Let the first path of the queue go on to the candidates that fit an evidence best.

        Args:
            path: one of :meth:`due`; in their order.
            evidence: of the agent; what a path without candidates is given, is not looked at.
            own: the agent's own scores of the path's candidates, None where TF-IDF ranks them.
        """
        self._queue.popleft()
        candidates = self.pool.candidates(path)
        chosen, reason = candidates[:0], NO_NEIGHBOUR
        if len(candidates):
            self._n_asked += 1
            if evidence.status == "failed":
                self._n_failed += 1
                self._failure = self._failure or evidence.reason
            if not self.budget.revisit:
                fresh = self.pool.is_new(candidates, [*self.seeds, *self._found])
                candidates, own = candidates[fresh], None if own is None else own[fresh]
            chosen, reason = self._choose(candidates, evidence, own)
        taken = chosen[: self._left].tolist()
        self.steps.append(Step(self._ids(path), evidence.text, self._ids(taken), len(candidates), reason))
        self._odd.update([FAILED if evidence.status == "failed" else reason] if reason else [])
        self._found += [*path, *taken]
        self._left -= len(taken) or int(self.budget.count_pairs)
        if self.budget.max_hops is None or len(path) + 1 < self.budget.max_hops:
            self._queue.extend((*path, passage) for passage in taken)

    def _choose(
        self, candidates: np.ndarray, evidence: Evidence, own: np.ndarray | None
    ) -> tuple[np.ndarray, str | None]:
        """Return the best candidates, and what is odd about them."""
        if evidence.status != "ok":
            return candidates[:0], evidence.reason or evidence.status
        if not len(candidates):
            return candidates, NO_NEW
        if own is not None:
            return candidates[order(own, self.budget.branching)], None
        if not self.pool.index.counts.n_words[candidates].any():
            return candidates[:0], NO_WORD
        scores = self.pool.index.scores(evidence.text, candidates)
        return candidates[order(scores, self.budget.branching)], None if scores.any() else BY_INDEX

    def hops(self, sizes: Sequence[int]) -> None:
        """Go hop by hop instead, the question as evidence: of all the last hop's neighbours the best so many.

        A step is noted for each passage that others were reached from, the first one where several lead there.

        Args:
            sizes: of the hops, that of the seeds first, the last one again and again.
        """
        self._queue.clear()
        paths = {seed: (seed,) for seed in self.seeds}
        hop, self._found = list(self.seeds), list(self.seeds)
        size = iter((*sizes[1:], *itertools.repeat(sizes[-1], self.budget.top_k)))
        while hop and len(self._found) < self.budget.top_k:
            wanted = min(next(size), self.budget.top_k - len(self._found))
            lead = {passage: self.pool.unseen(passage, self._found) for passage in hop}
            candidates = np.unique(np.concatenate(list(lead.values())))
            scores = self.pool.index.scores(self.question.text, candidates)
            chosen = candidates[order(scores, wanted)].tolist()
            reason = None if scores.any() or not chosen else BY_INDEX
            origin = {passage: next(p for p in hop if passage in lead[p]) for passage in chosen}
            for last in hop:
                reached = [passage for passage in chosen if origin[passage] == last]
                if reached:
                    path, ids = self._ids(paths[last]), self._ids(reached)
                    self.steps.append(Step(path, self.question.text, ids, len(candidates), reason))
                    self._odd.update([reason] if reason else [])
            paths |= {passage: (*paths[last], passage) for passage, last in origin.items()}
            self._found += chosen
            hop = chosen

    def ranking(self, repeatable: bool) -> Ranking:
        """Return the passages found, each once, with 1 / rank as score.

        Args:
            repeatable: whether a call that failed would fail again; else the next run asks again.
        """
        if not self.seeds:
            return empty(self.question, NO_MATCH)
        if self._n_failed and self._n_failed == self._n_asked:
            return Ranking(self.question.id, (), "failed", self._failure, steps=tuple(self.steps))
        found = [*self._found, *([] if self.budget.count_pairs else self.seeds)]
        ids = self._ids(list(dict.fromkeys(found)))
        passages = tuple(Scored(passage, 1 / rank) for rank, passage in enumerate(ids, 1))
        n = len(self.steps) - 1
        odd = "; ".join(f"{what} for {count} of {n} passages" for what, count in sorted(self._odd.items()))
        retry = True if self._n_failed and not repeatable else None
        return Ranking(self.question.id, passages, reason=odd or None, steps=tuple(self.steps), retry=retry)

    def _ids(self, indices: Sequence[int]) -> tuple[str, ...]:
        return tuple(self.pool.corpus.passages[i].id for i in indices)
