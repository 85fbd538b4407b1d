"""FactSumm: how many of the generated answer's comparable facts the gold answer states too."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar

from graphcontext.enhance.triples import Triple
from graphcontext.evaluate.extracted import ExtractedMetric


def comparable(source: Collection[Triple], summary: Collection[Triple]) -> tuple[set[Triple], set[Triple]]:
    """Return the facts of each side whose (subject, relation) the other side has a fact of too."""
    in_source = {fact[:2] for fact in source}
    in_summary = {fact[:2] for fact in summary}
    return {f for f in source if f[:2] in in_summary}, {f for f in summary if f[:2] in in_source}


def fact_scores(source: Collection[Triple], summary: Collection[Triple]) -> tuple[float, float, float]:
    """Return (fact score, F1, 1) over the comparable facts; all 0 where there is none.

    >>> gold = [("ss", "lists", "sockets"), ("ss", "lists", "ports"), ("apt", "installs", "ss")]
    >>> fact_scores(gold, [("ss", "lists", "sockets"), ("ss", "lists", "files"), ("ss", "is", "old")])
    (0.5, 0.5, 1.0)
    """
    kept_source, kept_summary = comparable(source, summary)
    if not kept_summary:
        return 0.0, 0.0, 0.0
    n_common = len(kept_source & kept_summary)
    return n_common / len(kept_summary), 2 * n_common / (len(kept_source) + len(kept_summary)), 1.0


class FactSumm(ExtractedMetric):
    r"""FactSumm's fact score of generated against gold answer (GraphContextGen Table 3), in [0, 1].

    With S the facts (subject, relation, object) of the gold answer (FactSumm's source), A those of the
    generated one (its summary), and S', A' those whose (subject, relation) the other side has too:

    .. math:: \text{factsumm} = |S' \cap A'| \,/\, |A'|, \qquad \text{factsumm\_f1} = 2|S' \cap A'| \,/\, (|S'| + |A'|)

    0 where no fact is comparable, so for a failed or empty answer too. Facts are equal where all three parts
    are, letter for letter as the extractor gives them. With several references the best fact score counts.

    Emits ``factsumm``, the package's definition (factsumm 0.1.5) and the table's value, ``factsumm_f1``, and
    ``factsumm_comparable``: 1 where a fact is comparable, else 0, so that zeros of both kinds can be told apart.

    Differs from the paper: it calls the score macro-F1, the package gives a ratio that is a precision over
    comparable facts; ``factsumm_f1`` is ours, beside it. The score is of the extractor as much as of the
    answers: ``signature`` names it, and scores of different extractors are not comparable.

    Args:
        extractor: has ``facts(texts) -> list[tuple[Triple, ...]]``, and ``signature`` where it has weights.
    """

    version: ClassVar[int] = 1
    names: ClassVar[tuple[str, ...]] = ("factsumm", "factsumm_f1", "factsumm_comparable")
    formula: ClassVar[str] = "factsumm|factsumm 0.1.5"

    def compare(self, prediction: Any, reference: Any) -> tuple[float, ...]:
        """Return fact score, F1, and whether a fact is comparable; the gold answer is FactSumm's source."""
        return fact_scores(reference, prediction)
