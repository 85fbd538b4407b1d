"""What every retriever shares: its questions grouped by corpus, and exact top k from scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from graphcontext.data.records import Corpus, Passage, Question, Ranking, Scored
from graphcontext.errors import InputError

NO_PASSAGE = "the corpus has no passage"


def by_corpus(
    questions: Sequence[Question], corpora: dict[str, Corpus]
) -> Iterator[tuple[Corpus, list[int], list[Question]]]:
    """Yield each corpus with the positions of its questions and the questions, in order of first appearance.

    Raises:
        InputError: a question names a corpus that is not there.
    """
    positions: dict[str, list[int]] = {}
    for position, question in enumerate(questions):
        if question.corpus_id not in corpora:
            raise InputError(f"question {question.id}: there is no corpus {question.corpus_id}")
        positions.setdefault(question.corpus_id, []).append(position)
    for corpus_id, at in positions.items():
        yield corpora[corpus_id], at, [questions[p] for p in at]


def encode_pool(
    encoder: Any, corpora: dict[str, Corpus], text_of: Callable[[Passage], str] = lambda passage: passage.match_text
) -> None:
    """Let an encoder that has ``pool`` encode the passages of several corpora at once, each text once.

    Corpora of single questions hold many passages of one pool: encoded corpus by corpus, a passage would be encoded
    again for every question that it was dealt to.

    Args:
        encoder: has ``encode(texts, kind)``.
        corpora: all that a stage reads.
        text_of: what is encoded of a passage.
    """
    if len(corpora) > 1 and hasattr(encoder, "pool"):
        encoder.pool(sorted({text_of(passage) for corpus in corpora.values() for passage in corpus.passages}))


def matchable(corpus: Corpus) -> np.ndarray:
    """Return the indices of the passages that are retrieved on a text, ascending: a page node has none."""
    return np.array([i for i, p in enumerate(corpus.passages) if p.match_text.strip()], np.int64)


def empty(question: Question, reason: str = NO_PASSAGE) -> Ranking:
    """Return the ranking of a question for which there is nothing to retrieve."""
    return Ranking(question.id, (), status="empty", reason=reason)


def scored(corpus: Corpus, indices: np.ndarray, scores: np.ndarray) -> tuple[Scored, ...]:
    """Return passages and scores as records, in the order given."""
    return tuple(Scored(corpus.passages[i].id, float(s)) for i, s in zip(indices, scores, strict=True))


def best(scores: np.ndarray, k: int, indices: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the ``k`` best of the positive scores: passage indices and scores, ties by lower index.

    Args:
        scores: (n,) float.
        k: how many at most.
        indices: ascending passage index of each score (n,); default 0 … n − 1.
    """
    at = np.flatnonzero(scores > 0)
    if len(at) > k:
        values = scores[at]
        last = np.partition(values, len(values) - k)[len(values) - k]
        at = at[values >= last]
    at = at[np.argsort(-scores[at], kind="stable")[:k]]
    return (at if indices is None else indices[at]), scores[at]


def checked_count(key: str, value: int) -> int:
    """Return ``value`` if it is a whole number ≥ 1; ``key`` names it in the error."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"retriever.{key}={value}: allowed is a whole number of at least 1")
    return value
