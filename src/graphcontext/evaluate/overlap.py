"""ROUGE: n-gram and longest-common-subsequence overlap of the generated with the gold answer."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, ClassVar

from graphcontext.data.records import Context, Prediction, Question, Ranking
from graphcontext.errors import InputError, did_you_mean
from graphcontext.evaluate.pairs import answer_pairs, best_reference

VARIANTS = ("rouge1", "rouge2", "rougeL")
REFERENCE = "rouge-score 0.1.2"


class Rouge:
    """ROUGE F-measure per question (Lin 2004; GraphContextGen Table 3), equal to Google's rouge-score 0.1.2.

    With P and R the shares of the prediction's and of the reference's units (n-grams, or tokens of the
    longest common subsequence) that the other side holds too, F = 2PR / (P + R). Several references:
    the one with the highest F counts, and P and R are of that same one. An empty side scores 0.

    Emits ``rouge1`` (F), ``rouge1_p`` and ``rouge1_r`` per question, likewise for the other variants,
    each in [0, 1].

    Args:
        variant: ``rouge1``, ``rouge2`` or ``rougeL``.
        stemmer: strip English suffixes (Porter) from words of more than three letters before matching. The
            papers use HF ``evaluate`` with its default, False.

    Raises:
        InputError: the variant is unknown.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, variant: str, stemmer: bool = False) -> None:
        if variant not in VARIANTS:
            raise InputError(f"metric variant {variant!r} is unknown{did_you_mean(str(variant), VARIANTS)}")
        self.variant = variant
        self.stemmer = stemmer

    @property
    def signature(self) -> str:
        """What gives the same number again, such as ``rouge1|f|no-stemmer|rouge-score 0.1.2``."""
        return f"{self.variant}|f|{'stemmer' if self.stemmer else 'no-stemmer'}|{REFERENCE}"

    def score(
        self,
        questions: Sequence[Question],
        predictions: Sequence[Prediction],
        rankings: Sequence[Ranking],
        contexts: Sequence[Context],
    ) -> list[dict[str, float]]:
        """Score each prediction against its question's references; a failed or empty one scores 0."""

        def compare(prediction: str, reference: str) -> tuple[float, float, float]:
            return _all_variants(prediction, reference, self.stemmer)[self.variant]

        names = (self.variant, f"{self.variant}_p", f"{self.variant}_r")
        return [best_reference(pair, names, compare) for pair in answer_pairs(questions, predictions)]


@functools.lru_cache(maxsize=10_000)  # a run scores the same pairs by each variant: texts are split and stemmed once
def _all_variants(prediction: str, reference: str, stemmer: bool) -> dict[str, tuple[float, float, float]]:
    """Return F, P and R of each variant."""
    found = _scorer(stemmer).score(reference, prediction)
    return {name: (float(s.fmeasure), float(s.precision), float(s.recall)) for name, s in found.items()}


@functools.cache
def _scorer(stemmer: bool) -> Any:
    from rouge_score_rs import RougeScorer

    return RougeScorer(list(VARIANTS), use_stemmer=stemmer)
