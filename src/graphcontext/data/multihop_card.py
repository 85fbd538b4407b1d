"""What the card of a multi-hop data set counts: KGP's statistics (Table 3) of its questions, by type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from graphcontext.data.plain_text import lengths
from graphcontext.data.records import Corpus

SHORT, BEYOND = "questions short of", "questions beyond"  # what their corpora were to hold


@dataclass(frozen=True, slots=True)
class Sizes:
    """The type of a question, and how much its corpus holds."""

    kind: str
    n_documents: int
    n_passages: int
    n_words: int
    n_supports: int


class Asked(Protocol):
    """What is counted of a question."""

    text: str
    answers: tuple[str, ...]
    gold: tuple[tuple[int, int], ...]
    lost: int


def lacking(chosen: Sequence[Asked]) -> dict[str, int]:
    """Count what scored questions lack."""
    return {
        "scored questions without answers": sum(not item.answers for item in chosen),
        "scored questions without supports": sum(not item.gold for item in chosen),
        "supports that are not in the context, left out": sum(item.lost for item in chosen),
        "scored questions with such supports": sum(item.lost > 0 for item in chosen),
    }


def card_of(
    chosen: Sequence[Asked], sizes: Sequence[Sizes], corpora: Mapping[str, Corpus], counts: Mapping[str, int]
) -> dict[str, Any]:
    """Return the part of the card that is counted.

    Args:
        chosen: all scored candidates.
        sizes: of their corpora.
        corpora: by id.
        counts: what is known already.
    """
    pool = {passage.context_text for corpus in corpora.values() for passage in corpus.passages}
    kinds = sorted({size.kind for size in sizes})
    return {
        "counts": dict(counts),
        "per_question": means(sizes),
        "types": {kind: means([size for size in sizes if size.kind == kind]) for kind in kinds},
        "kept": len(chosen),
        "pool": len(pool),
        "scored_candidates": len(chosen),
        "answers_in_pool": 0,
        "words": {
            "pool passages": lengths(sorted(pool)),
            "scored questions": lengths([item.text for item in chosen]),
            "scored answers": lengths([answer for item in chosen for answer in item.answers]),
        },
    }


def means(sizes: Sequence[Sizes]) -> dict[str, float]:
    """Return the means over questions; the length of a passage is a mean over all passages, in words."""
    n_passages = sum(size.n_passages for size in sizes)

    def mean(values: list[int]) -> float:
        return round(sum(values) / len(values), 2)

    return {
        "questions": len(sizes),
        "documents": mean([size.n_documents for size in sizes]),
        "passages": mean([size.n_passages for size in sizes]),
        "words per passage": round(sum(size.n_words for size in sizes) / max(1, n_passages), 2),
        "supports": mean([size.n_supports for size in sizes]),
    }
