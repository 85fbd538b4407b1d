"""The gold passages as the ranking (KGP Table 1 "Golden"): what retrieval can reach at most."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from graphcontext.data.records import Corpus, Graph, Question, Ranking, Scored
from graphcontext.retrieve.by_corpus import by_corpus, empty

NO_SUPPORT = "the question has no supports"


class Golden:
    """Returns a question's supports in their order, the n-th with score 1/n (KGP §4.2, Table 1 "Golden").

    The scores only say the order: 1, ½, ⅓ … An upper bound, never a method: it reads the gold passages. A question
    without supports is ``empty``. A support that the corpus does not hold is left out and named in ``reason``; a
    question that has no other is ``empty``.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()
    needs_graph: ClassVar[bool] = False

    def retrieve(
        self, questions: Sequence[Question], corpora: dict[str, Corpus], graphs: dict[str, Graph]
    ) -> list[Ranking]:
        """Return one ranking per question, by index."""
        rankings = [empty(question, NO_SUPPORT) for question in questions]
        for corpus, positions, asked in by_corpus(questions, corpora):
            held = {passage.id for passage in corpus.passages}
            for position, question in zip(positions, asked, strict=True):
                if question.supports:
                    rankings[position] = _ranking(question, held)
        return rankings


def _ranking(question: Question, held: set[str]) -> Ranking:
    supports = list(dict.fromkeys(question.supports))
    found = [support for support in supports if support in held]
    reason = "; ".join(f"support {support} is not in the corpus" for support in supports if support not in held)
    if not found:
        return empty(question, reason)
    return Ranking(question.id, tuple(Scored(s, 1 / n) for n, s in enumerate(found, 1)), reason=reason or None)
