"""TechSumBot: sentences of the answers to similar questions, useful, central and not redundant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from graphcontext.data.records import Context, Corpus, Prediction, Question
from graphcontext.errors import InputError
from graphcontext.generate.extractive import (
    Pool,
    Pools,
    sentences,
    similarities,
    summaries,
    thread_answers,
    words,
)


class TechSumBot:
    r"""Summarises the answers of retrieved threads (Yang et al. 2022, 2023; GraphContextGen A.2.3, T3).

    1. Usefulness: the ``n_useful`` sentences most similar to the query.
    2. Centrality: TextRank over them, by power iteration,
       c_i = (1 - d)/n + d · Σ_j c_j · sim(j, i) / Σ_k sim(j, k), with d = 0.85 and sim = max(0, cos).
    3. Redundancy: by falling centrality, a sentence is left out when its cosine to one already taken is
       above ``redundancy``; ``n_sentences`` are taken.

    Differs from the paper: its usefulness ranker is a trained transformer and its sentence vectors are
    tuned on Stack Overflow by contrastive learning; both are the cosine of ``encoder`` or of TF-IDF vectors
    here. All parameters but the five sentences are ours.

    Args:
        encoder: has ``encode(texts, kind)``; null uses TF-IDF over the pool.
        n_useful: sentences that the first step keeps.
        n_sentences: sentences of the summary.
        redundancy: cosine above which two sentences say the same, in [0, 1].
        damping: d, in [0, 1).
        min_words: shorter sentences are no candidates, in content words.

    Raises:
        InputError: a value that is not allowed.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()
    needs_corpora: ClassVar[bool] = True

    def __init__(
        self,
        encoder: Any = None,
        n_useful: int = 20,
        n_sentences: int = 5,
        redundancy: float = 0.8,
        damping: float = 0.85,
        min_words: int = 3,
    ) -> None:
        if not 1 <= n_sentences <= n_useful:
            got = f"n_sentences={n_sentences}, n_useful={n_useful}"
            raise InputError(f"generator: {got}; allowed: 1 ≤ n_sentences ≤ n_useful")
        if not 0 <= redundancy <= 1 or not 0 <= damping < 1:
            got = f"redundancy={redundancy}, damping={damping}"
            raise InputError(f"generator: {got}; allowed: redundancy 0 to 1, damping from 0 to below 1")
        self.encoder, self.n_useful, self.n_sentences = encoder, n_useful, n_sentences
        self.redundancy, self.damping, self.min_words = redundancy, damping, min_words
        self._pools = Pools()

    def generate(
        self, questions: Sequence[Question], contexts: Sequence[Context], corpora: dict[str, Corpus]
    ) -> list[Prediction]:
        """Return one summary per question; ``empty`` where no thread with an answer was retrieved."""
        pools = self._pools.of_each(questions, corpora)
        return summaries(questions, contexts, pools, self._summarise, "\n")

    def _summarise(self, question: Question, context: Context, pool: Pool) -> list[str]:
        every = dict.fromkeys(s for answer in thread_answers(context, pool) for s in sentences(answer.text))
        texts = [s for s in every if len(words(s)) >= self.min_words] or list(every)
        if not texts:
            return []
        usefulness, between = similarities(question.text, texts, pool, self.encoder)
        useful = sorted(range(len(texts)), key=lambda i: (-usefulness[i], i))[: self.n_useful]
        near = between[np.ix_(useful, useful)]
        central = centrality(near, self.damping)
        taken: list[int] = []
        for i in sorted(range(len(useful)), key=lambda i: (-round(central[i], 12), i)):
            if len(taken) < self.n_sentences and all(near[i, j] <= self.redundancy for j in taken):
                taken.append(i)
        return [texts[useful[i]] for i in taken]


def centrality(similarity: np.ndarray, damping: float, tolerance: float = 1e-10) -> np.ndarray:
    """Return TextRank scores (n,) that sum to 1, of a similarity matrix (n, n) without its diagonal.

    A sentence that resembles no other gives its weight to all alike.
    """
    n = len(similarity)
    weights = np.maximum(similarity, 0)
    np.fill_diagonal(weights, 0)
    sums = weights.sum(axis=1, keepdims=True)
    transition = np.where(sums > 0, weights / np.where(sums > 0, sums, 1), 1 / n)  # rows sum to 1
    scores = np.full(n, 1 / n)
    change = 1.0
    while change > tolerance:
        following = (1 - damping) / n + damping * scores @ transition
        change = float(np.abs(following - scores).sum())
        scores = following
    return scores
