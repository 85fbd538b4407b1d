"""Triple overlap: how many of the facts of two answers they share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from graphcontext.enhance.triples import Triple
from graphcontext.evaluate.entities import normalise_entity
from graphcontext.evaluate.extracted import ExtractedMetric


def triple_jaccard(a: Iterable[Triple], b: Iterable[Triple]) -> float:
    """Return |a ∩ b| / |a ∪ b| of two collections of triples, each part normalised; 0 where both are empty.

    >>> triple_jaccard([("SS", "lists", "sockets.")], [("ss", "lists", "sockets"), ("ss", "lists", "ports")])
    0.5
    """
    left, right = ({tuple(normalise_entity(part) for part in triple) for triple in side} for side in (a, b))
    union = left | right
    return len(left & right) / len(union) if union else 0.0


class TripleOverlap(ExtractedMetric):
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
    names: ClassVar[tuple[str, ...]] = ("triple_overlap",)
    formula: ClassVar[str] = "triple_overlap"

    def compare(self, prediction: Any, reference: Any) -> tuple[float, ...]:
        """Return the Jaccard index of two answers' triples."""
        return (triple_jaccard(prediction, reference),)
