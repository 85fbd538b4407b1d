"""Entity Jaccard: how many of the named entities two answers share."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from graphcontext.data.records import Context, Prediction, Question, Ranking
from graphcontext.evaluate.pairs import answer_pairs, best_reference, distinct_texts


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


class EntityJaccard:
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
    execution: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, extractor: Any) -> None:
        self.extractor = extractor

    @property
    def signature(self) -> str:
        """Metric and extractor with its weights, as ``entity_jaccard|SpacyEntities spacy_en@e94cbf6c2424``."""
        return f"entity_jaccard|{getattr(self.extractor, 'signature', type(self.extractor).__name__)}"

    def score(
        self,
        questions: Sequence[Question],
        predictions: Sequence[Prediction],
        rankings: Sequence[Ranking],
        contexts: Sequence[Context],
    ) -> list[dict[str, float]]:
        """Score each prediction against its question's references; each distinct text is extracted once."""
        pairs = answer_pairs(questions, predictions)
        entities = {text: self.extractor.entities(text) for text in distinct_texts(pairs)}
        return [
            best_reference(p, ("entity_jaccard",), lambda a, r: (jaccard(entities[a], entities.get(r, ())),))
            for p in pairs
        ]
