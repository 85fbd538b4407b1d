"""What a data set yields for one split: the questions, the corpora they are answered from, its card."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from graphcontext.data.records import Corpus, Question


@dataclass(frozen=True)
class Loaded:
    """One side of a data set, read and filtered.

    Args:
        questions: every scored candidate of the split, in id order, before ``dataset.limit`` selects some.
        corpora: corpus by id; ``Question.corpus_id`` names one of them.
        card: the data set's facts and counts, JSON types only (:func:`graphcontext.data.card.card_markdown`).
    """

    questions: tuple[Question, ...]
    corpora: dict[str, Corpus]
    card: dict[str, Any] = field(default_factory=dict)
