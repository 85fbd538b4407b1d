"""What metrics share that compare what an extractor reads in generated and gold answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from graphcontext.data.records import Context, Prediction, Question, Ranking
from graphcontext.evaluate.pairs import answer_pairs, best_reference, distinct_texts


class ExtractedMetric:
    """Reads each distinct answer once, compares what was read, and keeps the best of several references.

    A metric says what its extractor is asked (:meth:`read`), how two readings compare (:meth:`compare`), and in
    ``names`` what the values are called; the first decides which reference counts.

    Args:
        extractor: what reads an answer; it has ``signature`` where it has weights.
    """

    execution: ClassVar[frozenset[str]] = frozenset()
    names: ClassVar[tuple[str, ...]]
    formula: ClassVar[str]  # what the signature begins with

    def __init__(self, extractor: Any) -> None:
        self.extractor = extractor

    @property
    def signature(self) -> str:
        """Metric and extractor with its weights, as ``triple_overlap|SpacyFacts spacy_en@e94cbf6c2424``."""
        return f"{self.formula}|{getattr(self.extractor, 'signature', type(self.extractor).__name__)}"

    def read(self, texts: Sequence[str]) -> list[Any]:
        """Return what the extractor reads in each text: its facts."""
        return list(self.extractor.facts(texts))

    def compare(self, prediction: Any, reference: Any) -> tuple[float, ...]:
        """Return one value per name for two readings."""
        raise NotImplementedError

    def score(
        self,
        questions: Sequence[Question],
        predictions: Sequence[Prediction],
        rankings: Sequence[Ranking],
        contexts: Sequence[Context],
    ) -> list[dict[str, float]]:
        """Score each prediction against its question's references; each distinct text is read once."""
        pairs = answer_pairs(questions, predictions)
        texts = distinct_texts(pairs)
        found = dict(zip(texts, self.read(texts), strict=True))
        return [best_reference(p, self.names, lambda a, r: self.compare(found[a], found.get(r, ()))) for p in pairs]
