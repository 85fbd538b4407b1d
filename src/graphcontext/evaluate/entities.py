"""Entity Jaccard: how many of the named entities two answers share."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from graphcontext.evaluate.extracted import ExtractedMetric


def normalise_entity(name: str) -> str:
    """Return the name as compared: NFKC, case folded, one blank between words, no punctuation around it.

    >>> normalise_entity(" The\\tUbuntu Forums. ")
    'the ubuntu forums'
    >>> normalise_entity("C++"), normalise_entity("C#")
    ('c++', 'c#')
    """
    words = unicodedata.normalize("NFKC", name).casefold().split()
    return " ".join(words).strip(" .,;:!?\"'`()[]{}“”‘’")


def jaccard(a: Iterable[str], b: Iterable[str]) -> float:
    """Return |a ∩ b| / |a ∪ b| of two collections of names, 0 where both are empty."""
    left = {normalise_entity(name) for name in a} - {""}
    right = {normalise_entity(name) for name in b} - {""}
    union = left | right
    return len(left & right) / len(union) if union else 0.0


class EntityJaccard(ExtractedMetric):
    """Jaccard index of the entities of generated and gold answer (GraphContextGen Fig 2A), in [0, 1].

    J = |E(prediction) ∩ E(reference)| / |E(prediction) ∪ E(reference)| over normalised entity names, per
    question; the paper averages over questions. With several references the best one counts. Where neither
    side names an entity the pair scores 0: there is no shared entity to reward.

    Differs from the paper: it extracts with UniversalNER; ours takes the extractor it is given and names it
    in ``signature``. Scores of different extractors are not comparable.

    Args:
        extractor: has ``entities(text) -> list[str]``, and ``signature`` where it has weights.
    """

    version: ClassVar[int] = 1
    names: ClassVar[tuple[str, ...]] = ("entity_jaccard",)
    formula: ClassVar[str] = "entity_jaccard"

    def read(self, texts: Sequence[str]) -> list[Any]:
        """Return the entities of each text."""
        return [self.extractor.entities(text) for text in texts]

    def compare(self, prediction: Any, reference: Any) -> tuple[float, ...]:
        """Return the Jaccard index of two answers' entities."""
        return (jaccard(prediction, reference),)
