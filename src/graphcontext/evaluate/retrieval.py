"""Retrieval metrics: how many of a question's gold passages its ranking holds, and how high."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import ClassVar

from graphcontext.data.records import Context, Prediction, Question, Ranking
from graphcontext.errors import InputError, did_you_mean


def recall(ranked: Sequence[str], gold: set[str], k: int | None) -> float:
    """Return |gold ∩ top k| / |gold|.

    >>> recall(["a", "b", "c"], {"a", "c", "d"}, 2)
    0.3333333333333333
    """
    return len(gold & set(ranked[:k])) / len(gold) if gold else 0.0


def precision(ranked: Sequence[str], gold: set[str], k: int | None) -> float:
    """Return |gold ∩ top k| / k: a place that the ranking leaves empty counts against it.

    >>> precision(["a", "b"], {"a", "c"}, 4)
    0.25
    """
    places = len(ranked) if k is None else k
    return len(gold & set(ranked[:k])) / places if places else 0.0


def ndcg(ranked: Sequence[str], gold: set[str], k: int | None) -> float:
    """Return DCG / ideal DCG of the top k, with DCG = Σ rel_i / log2(i + 1) over ranks i from 1 and rel in {0, 1}.

    >>> ndcg(["a", "b", "c"], {"b"}, 3) == 1 / math.log2(3)
    True
    """
    gain = math.fsum(1 / math.log2(i + 1) for i, passage in enumerate(ranked[:k], 1) if passage in gold)
    ideal = math.fsum(1 / math.log2(i + 1) for i in range(1, min(len(gold), k or len(gold)) + 1))
    return gain / ideal if ideal else 0.0


def reciprocal_rank(ranked: Sequence[str], gold: set[str], k: int | None) -> float:
    """Return 1 / rank of the first gold passage of the top k, 0 where there is none.

    >>> reciprocal_rank(["a", "b", "c"], {"c", "b"}, None)
    0.5
    """
    return next((1 / i for i, passage in enumerate(ranked[:k], 1) if passage in gold), 0.0)


MEASURES: dict[str, Callable[[Sequence[str], set[str], int | None], float]] = {
    "recall": recall,
    "precision": precision,
    "ndcg": ndcg,
    "mrr": reciprocal_rank,
}


class RetrievalMetric:
    """Scores a ranking by the question's gold passages (``supports``), each as relevant as any other.

    Recall and precision at k, nDCG at k (Järvelin and Kekäläinen 2002, gains discounted by log2), and the
    reciprocal rank, as trec_eval defines them over one question. The order is the ranking's own, its ties too.

    Emits the value at ``k`` under the metric's name (``recall@k``, ``mrr``) and one per further cut-off
    (``recall@5``, ``mrr@5``), each in [0, 1]. Needs no answers: ``generator=none`` scores it.

    A question without supports scores 0, stays in the mean and is counted under the run's numbers. A data set
    none of whose scored questions has any is refused before anything is retrieved.

    Differs from trec_eval: it leaves questions without relevant passages out of its mean, and orders ties by id.

    Args:
        measure: ``recall``, ``precision``, ``ndcg`` or ``mrr``.
        k: cut-off of the metric's own value, at least 1; null: the whole ranking.
        ks: further cut-offs, each at least 1.

    Raises:
        InputError: an unknown measure, or a cut-off below 1.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()
    needs_answers: ClassVar[bool] = False
    needs_supports: ClassVar[bool] = True

    def __init__(self, measure: str, k: int | None, ks: Sequence[int] = ()) -> None:
        if measure not in MEASURES:
            raise InputError(f"metric measure {measure!r} is unknown{did_you_mean(str(measure), MEASURES)}")
        for value in (*ks, *([] if k is None else [k])):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InputError(f"metric {measure}: the cut-off {value!r}; allowed: whole numbers of at least 1")
        self.measure, self.k, self.ks = measure, k, tuple(ks)

    @property
    def name(self) -> str:
        """The metric's own name."""
        return self.measure if self.measure == "mrr" else f"{self.measure}@k"

    @property
    def signature(self) -> str:
        """Name, cut-off and relevance, as ``recall@k|k=10|supports, binary``."""
        return f"{self.name}|k={'all' if self.k is None else self.k}|supports, binary"

    def score(
        self,
        questions: Sequence[Question],
        predictions: Sequence[Prediction],
        rankings: Sequence[Ranking],
        contexts: Sequence[Context],
    ) -> list[dict[str, float]]:
        """Score each ranking against its question's supports; a failed or empty one scores 0.

        Raises:
            InputError: the rankings are not those of the questions.
        """
        if [q.id for q in questions] != [r.id for r in rankings]:
            got = f"{len(rankings)} rankings that are not of these {len(questions)} questions"
            raise InputError(f"metric {self.name}: {got}")
        cuts = {self.name: self.k} | {f"{self.measure}@{k}": k for k in self.ks}
        rows = []
        for question, ranking in zip(questions, rankings, strict=True):
            ranked, gold = [hit.id for hit in ranking.passages], set(question.supports)
            rows.append({name: MEASURES[self.measure](ranked, gold, k) for name, k in cuts.items()})
        return rows


def check_supports(metrics: dict[str, object], questions: Sequence[Question], dataset: str) -> None:
    """Check that the questions have gold passages where a metric needs them.

    Raises:
        InputError: naming the metric and the data set.
    """
    if any(question.supports for question in questions):
        return
    for name, metric in metrics.items():
        if getattr(metric, "needs_supports", False):
            needs = "needs questions with supports (gold passages)"
            raise InputError(f"metric {name} {needs}; data set {dataset} has none")
