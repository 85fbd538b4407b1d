"""Triple overlap: how many of the facts of two answers they share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from graphcontext.data.records import Context, Prediction, Question, Ranking
from graphcontext.enhance.triples import Triple
from graphcontext.evaluate.entities import normalise_entity
from graphcontext.evaluate.pairs import answer_pairs, best_reference, distinct_texts

NAMES = ("triple_overlap",)


def triple_jaccard(a: Iterable[Triple], b: Iterable[Triple]) -> float:
    """Return |a ∩ b| / |a ∪ b| of two collections of triples, each part normalised; 0 where both are empty.

    >>> triple_jaccard([("SS", "lists", "sockets.")], [("ss", "lists", "sockets"), ("ss", "lists", "ports")])
    0.5
    """
    left, right = ({tuple(normalise_entity(part) for part in triple) for triple in side} for side in (a, b))
    union = left | right
    return len(left & right) / len(union) if union else 0.0


class TripleOverlap:
    """Jaccard index of the triples of generated and gold answer (GraphContextGen Fig 2B), in [0, 1].

    J = |T(prediction) ∩ T(reference)| / |T(prediction) ∪ T(reference)| over triples whose three parts are
    normalised as entity names are, per question; the paper shows a histogram of it over questions. With several
    references the best one counts. Where neither side states a triple the pair scores 0: nothing is shared.

    Differs from the paper: what it extracts triples with is not said; ours takes the extractor it is given and
    names it in ``signature``. Scores of different extractors are not comparable.

    Args:
        extractor: has ``facts(texts) -> list[tuple[Triple, ...]]``, and ``signature`` where it has weights.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, extractor: Any) -> None:
        self.extractor = extractor

    @property
    def signature(self) -> str:
        """Metric and extractor with its weights, as ``triple_overlap|SpacyFacts spacy_en@e94cbf6c2424``."""
        return f"triple_overlap|{getattr(self.extractor, 'signature', type(self.extractor).__name__)}"

    def score(
        self,
        questions: Sequence[Question],
        predictions: Sequence[Prediction],
        rankings: Sequence[Ranking],
        contexts: Sequence[Context],
    ) -> list[dict[str, float]]:
        """Score each prediction against its question's references; each distinct text is extracted once."""
        pairs = answer_pairs(questions, predictions)
        texts = distinct_texts(pairs)
        facts = dict(zip(texts, self.extractor.facts(texts), strict=True))
        return [best_reference(p, NAMES, lambda a, r: (triple_jaccard(facts[a], facts.get(r, ())),)) for p in pairs]
