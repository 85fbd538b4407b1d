"""AnswerBot: paragraphs of the answers to similar questions, by seven features, made diverse by MMR."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from graphcontext.data.records import Answer, Context, Corpus, Prediction, Question
from graphcontext.errors import InputError
from graphcontext.generate.extractive import (
    Pool,
    Pools,
    paragraphs,
    similarities,
    summaries,
    thread_answers,
    words,
)

_ADVICE = re.compile(
    r"\b(?:please|pls) (?:check|try|use|see)|\byou (?:should|can|could|need to|have to|must)\b|\bcheck out\b"
    r"|\bin short\b|\bin summary\b|\bthe most important\b|\bkeep in mind\b"
    r"|\bi(?:'d| would)? (?:recommend|suggest)\b"
    r"|\btry (?:to|using|this|it)\b|\bthe (?:best|easiest|simplest) way\b",
    re.IGNORECASE,
)
_MARKED = re.compile(r"`[^`]+`|\*\*[^*]+\*\*|^(?: {4}|\t|\$ |# |sudo )|^\s*(?:[-*]|\d+\.) ", re.MULTILINE)
_SMOOTH = 1e-4  # keeps a feature of 0 from cancelling the other six (Xu et al. 2017)


class AnswerBot:
    r"""Summarises the answers of retrieved threads (Xu et al. 2017, §III; GraphContextGen A.2.1, T3).

    Each answer paragraph p gets seven features: relevance to the query, entity overlap, information entropy
    (the sum of its words' IDF), semantic pattern (it advises), format pattern (it marks code or lists),
    position (1/i for the i-th of its answer, 0 after the third) and the answer's votes. Then

    .. math:: s(p) = \prod_{f=1}^{7} (\hat x_f(p) + 10^{-4}), \qquad
              p^* = \arg\max_p \lambda \hat s(p) - (1 - \lambda) \max_{p' \in S} \cos(p, p')

    with features min-max scaled over the candidates. The best ``n_candidates`` by s go into maximal marginal
    relevance, which picks ``n_paragraphs``; they are shown in the order picked.

    Differs from the paper: retrieval is the run's retriever, so the relevance of questions is not part of
    it; relevance is the cosine of TF-IDF vectors or of ``encoder`` instead of IDF-weighted word2vec; entities
    are the content words of the question's title, since the paper's are a site's tags; patterns are our own
    list. ``mmr_lambda`` and the position cut are ours; 10 candidates and 5 paragraphs are the original's.

    Args:
        encoder: has ``encode(texts, kind)``; null uses TF-IDF over the pool.
        n_candidates: paragraphs that enter MMR.
        n_paragraphs: paragraphs of the summary.
        mmr_lambda: weight of the score against redundancy, in [0, 1].
        max_words: most words of the summary, cut between paragraphs, the first whole; null is no limit.

    Raises:
        InputError: a value that is not allowed.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()
    needs_corpora: ClassVar[bool] = True

    def __init__(
        self,
        encoder: Any = None,
        n_candidates: int = 10,
        n_paragraphs: int = 5,
        mmr_lambda: float = 0.5,
        max_words: int | None = None,
    ) -> None:
        if not 1 <= n_paragraphs <= n_candidates:
            got = f"n_paragraphs={n_paragraphs}, n_candidates={n_candidates}"
            raise InputError(f"generator: {got}; allowed: 1 ≤ n_paragraphs ≤ n_candidates")
        if not 0 <= mmr_lambda <= 1:
            raise InputError(f"generator.mmr_lambda={mmr_lambda}; allowed: 0 to 1")
        if max_words is not None and max_words < 1:
            raise InputError(f"generator.max_words={max_words}; allowed: 1 and more, or null")
        self.encoder, self.n_candidates, self.n_paragraphs = encoder, n_candidates, n_paragraphs
        self.mmr_lambda, self.max_words = mmr_lambda, max_words
        self._pools = Pools()

    def generate(
        self, questions: Sequence[Question], contexts: Sequence[Context], corpora: dict[str, Corpus]
    ) -> list[Prediction]:
        """Return one summary per question; ``empty`` where no thread with an answer was retrieved."""
        pools = self._pools.of_each(questions, corpora)
        return summaries(questions, contexts, pools, self._summarise, "\n\n")

    def _summarise(self, question: Question, context: Context, pool: Pool) -> list[str]:
        candidates = candidate_paragraphs(thread_answers(context, pool))
        if not candidates:
            return []
        texts = [c.text for c in candidates]
        relevance, between = similarities(question.text, texts, pool, self.encoder)
        title = question.title or question.text.partition("\n")[0]
        scores = overall(features(title, candidates, relevance, pool))
        best = sorted(range(len(texts)), key=lambda i: (-scores[i], i))[: self.n_candidates]
        scaled = min_max(scores[best])
        picked = mmr(scaled, between[np.ix_(best, best)], self.n_paragraphs, self.mmr_lambda)
        return within([texts[best[i]] for i in picked], self.max_words)


@dataclass(frozen=True)
class Paragraph:
    """A paragraph of an answer; ``position`` counts from 1."""

    text: str
    position: int
    votes: int


def candidate_paragraphs(answers: Sequence[Answer]) -> list[Paragraph]:
    """Return the paragraphs of the answers, equal texts once."""
    found: dict[str, Paragraph] = {}
    for answer in answers:
        for position, text in enumerate(paragraphs(answer.text), start=1):
            found.setdefault(text, Paragraph(text, position, answer.votes))
    return list(found.values())


def features(title: str, candidates: Sequence[Paragraph], relevance: np.ndarray, pool: Pool) -> np.ndarray:
    """Return the seven features of each paragraph, shape (n_paragraphs, 7)."""
    entities = set(words(title))
    rows = []
    for paragraph, relevant in zip(candidates, relevance, strict=True):
        own = words(paragraph.text)
        rows.append(
            (
                relevant,
                len(entities & set(own)) / max(1, len(entities)),
                sum(pool.idf(word) for word in own),
                float(_ADVICE.search(paragraph.text) is not None),
                float(_MARKED.search(paragraph.text) is not None),
                1 / paragraph.position if paragraph.position <= 3 else 0.0,
                paragraph.votes,
            )
        )
    return np.array(rows, dtype=np.float64)


def overall(values: np.ndarray) -> np.ndarray:
    """Return the product over features (n, f) scaled to [1e-4, 1 + 1e-4] each, shape (n,)."""
    return np.prod(min_max(values) + _SMOOTH, axis=1)


def min_max(values: np.ndarray) -> np.ndarray:
    """Return values scaled to [0, 1] along the first axis; 1 where all are equal."""
    low, high = values.min(axis=0), values.max(axis=0)
    span = high - low
    return np.where(span > 0, (values - low) / np.where(span > 0, span, 1), 1.0)


def mmr(scores: np.ndarray, between: np.ndarray, n: int, weight: float) -> list[int]:
    """Return up to n indices by maximal marginal relevance; ties go to the lower index."""
    picked: list[int] = []
    left = list(range(len(scores)))
    while left and len(picked) < n:
        redundancy = {i: max((between[i, j] for j in picked), default=0.0) for i in left}
        best = max(left, key=lambda i: (weight * scores[i] - (1 - weight) * redundancy[i], -i))
        picked.append(best)
        left.remove(best)
    return picked


def within(texts: Sequence[str], max_words: int | None) -> list[str]:
    """Return the first texts that together have at most ``max_words`` words; the first one always."""
    if max_words is None:
        return list(texts)
    kept: list[str] = []
    used = 0
    for text in texts:
        used += len(text.split())
        if kept and used > max_words:
            break
        kept.append(text)
    return kept
