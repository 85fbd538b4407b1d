"""Retrieval metrics: how many of a question's gold passages its ranking holds, and how high."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from graphcontext.data.records import Context, Prediction, Question, Ranking
from graphcontext.errors import InputError, did_you_mean

Gold = Mapping[str, int]  # gold passage → grade, from 1


def recall(ranked: Sequence[str], gold: Gold, k: int | None) -> float:
    """Return |gold ∩ top k| / |gold|.

    >>> recall(["a", "b", "c"], {"a": 1, "c": 1, "d": 1}, 2)
    0.3333333333333333
    """
    return len(gold.keys() & set(ranked[:k])) / len(gold) if gold else 0.0


def precision(ranked: Sequence[str], gold: Gold, k: int | None) -> float:
    """Return |gold ∩ top k| / k: a place that the ranking leaves empty counts against it.

    >>> precision(["a", "b"], {"a": 1, "c": 1}, 4)
    0.25
    """
    places = len(ranked) if k is None else k
    return len(gold.keys() & set(ranked[:k])) / places if places else 0.0


def ndcg(ranked: Sequence[str], gold: Gold, k: int | None) -> float:
    """Return DCG / ideal DCG of the top k, with DCG = Σ grade_i / log2(i + 1) over ranks i from 1.

    >>> round(ndcg(["b", "a"], {"a": 2, "b": 1}, 2), 3)  # (1 + 2 / log2(3)) / (2 + 1 / log2(3))
    0.86
    """
    ideal = _dcg(sorted(gold.values(), reverse=True)[:k])
    return _dcg([gold.get(passage, 0) for passage in ranked[:k]]) / ideal if ideal else 0.0


def _dcg(grades: Sequence[int]) -> float:
    return math.fsum(grade / math.log2(i + 1) for i, grade in enumerate(grades, 1))


def reciprocal_rank(ranked: Sequence[str], gold: Gold, k: int | None) -> float:
    """Return 1 / rank of the first gold passage of the top k, 0 where there is none.

    >>> reciprocal_rank(["a", "b", "c"], {"c": 1, "b": 1}, None)
    0.5
    """
    return next((1 / i for i, passage in enumerate(ranked[:k], 1) if passage in gold), 0.0)


def support_em(ranked: Sequence[str], gold: Gold, k: int | None) -> float:
    """Return 1 where every gold passage is among the top k, else 0 (KGP's SF-EM, Fig 5).

    >>> support_em(["a", "b", "c"], {"c": 1, "a": 1}, 2), support_em(["a", "b", "c"], {"c": 1, "a": 1}, None)
    (0.0, 1.0)
    """
    return float(bool(gold) and gold.keys() <= set(ranked[:k]))


MEASURES: dict[str, Callable[[Sequence[str], Gold, int | None], float]] = {
    "recall": recall,
    "precision": precision,
    "ndcg": ndcg,
    "mrr": reciprocal_rank,
    "sf_em": support_em,
}
WITHOUT_K = ("mrr", "sf_em")  # named without @k


class RetrievalMetric:
    """Scores a ranking by the question's gold passages (``supports``), which nDCG weighs by their ``grades``.

    Recall and precision at k, nDCG at k (Järvelin and Kekäläinen 2002; the gain is the grade, discounted by log2), and
    the reciprocal rank, as trec_eval defines them over one question; support exact match (KGP, Fig 5): 1 where all
    gold passages are found. The order is the ranking's own, its ties too.

    Emits the value at ``k`` under the metric's name (``recall@k``, ``mrr``, ``sf_em``) and one per further cut-off
    (``recall@5``, ``mrr@5``), each in [0, 1]. Needs no answers: ``generator=none`` scores it.

    A question without supports scores 0, stays in the mean and is counted under the run's numbers. A data set
    none of whose scored questions has any is refused before anything is retrieved.

    Differs from trec_eval: it leaves questions without relevant passages out of its mean, and orders ties by id.
    Differs from BEIR's evaluator: a passage with the question's own id counts, unless ``ignore_identical_ids``.

    Args:
        measure: ``recall``, ``precision``, ``ndcg``, ``mrr`` or ``sf_em``.
        k: cut-off of the metric's own value, at least 1; null: the whole ranking, of precision the share of it.
        ks: further cut-offs, each at least 1.
        ignore_identical_ids: take the passage that has the question's id out of the ranking first, as BEIR does
            (the query is a document in ArguAna and Quora). The TREC files keep it.

    Raises:
        InputError: an unknown measure, or a cut-off below 1.
    """

    version: ClassVar[int] = 2
    execution: ClassVar[frozenset[str]] = frozenset()
    needs_answers: ClassVar[bool] = False
    needs_supports: ClassVar[bool] = True

    def __init__(self, measure: str, k: int | None, ks: Sequence[int] = (), ignore_identical_ids: bool = False) -> None:
        if measure not in MEASURES:
            raise InputError(f"metric measure {measure!r} is unknown{did_you_mean(str(measure), MEASURES)}")
        for value in (*ks, *([] if k is None else [k])):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InputError(f"metric {measure}: the cut-off {value!r}; allowed: whole numbers of at least 1")
        self.measure, self.k, self.ks, self.ignore_identical_ids = measure, k, tuple(ks), ignore_identical_ids

    @property
    def name(self) -> str:
        """The metric's own name."""
        return self.measure if self.measure in WITHOUT_K else f"{self.measure}@k"

    @property
    def columns(self) -> dict[str, str]:
        """The values at the further cut-offs, which a table can name: ``recall@5``."""
        return {f"{self.measure}@{k}": f"k={k}" for k in self.ks}

    @property
    def signature(self) -> str:
        """Name, cut-off and relevance, as ``recall@k|k=10|supports, binary``."""
        gain = "gain = grade" if self.measure == "ndcg" else "binary"
        own = "|identical ids ignored" if self.ignore_identical_ids else ""
        return f"{self.name}|k={'all' if self.k is None else self.k}|supports, {gain}{own}"

    @property
    def depth(self) -> int:
        """The number of passages that must be retrieved for each cut-off to be what it says."""
        return max([self.k or 0, *self.ks]) + self.ignore_identical_ids

    @property
    def deepest(self) -> str:
        """The argument that asks for ``depth`` passages, as it is typed."""
        asks = f"k={self.k}" if (self.k or 0) >= max(self.ks, default=0) else f"ks={list(self.ks)}"
        return asks + (" beside the identical id" if self.ignore_identical_ids else "")

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
            own = question.id if self.ignore_identical_ids else None
            ranked = [hit.id for hit in ranking.passages if hit.id != own]
            rows.append({name: MEASURES[self.measure](ranked, question.gold, k) for name, k in cuts.items()})
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


def check_cut_offs(metrics: dict[str, object], top_k: int | None, n_passages: int) -> None:
    """Check that no cut-off lies beyond the rankings' end: recall@10 of two passages would be recall@2.

    Args:
        metrics: metric by name; those of other classes are not looked at.
        top_k: passages that are retrieved per question, None where the retriever has no such number.
        n_passages: size of the largest corpus; one that is retrieved whole is never too short.

    Raises:
        InputError: naming each metric, and what to set.
    """
    if top_k is None or n_passages <= top_k:
        return
    deep = {name: m for name, m in metrics.items() if isinstance(m, RetrievalMetric) and m.depth > top_k}
    if deep:
        named = [f"metric.{name}.{m.deepest}" for name, m in deep.items()]
        least = min(max(metric.depth for metric in deep.values()), n_passages)
        mend = f"set retriever.top_k={least} or lower cut-offs"
        raise InputError(f"{', '.join(named)}, retriever.top_k={top_k}: the rankings end before the cut-off; {mend}")
