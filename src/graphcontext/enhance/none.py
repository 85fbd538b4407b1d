"""No enhancement: the retrieved passages are the context."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from graphcontext.data.records import Context, Corpus, Passage, Question, Ranking, Unit
from graphcontext.errors import RunError


class NoEnhancement:
    """Shows the retrieved passages as they are, best first: C (GraphContextGen §4.2, few-shot pairs)."""

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()

    def enhance(
        self, questions: Sequence[Question], rankings: Sequence[Ranking], corpora: dict[str, Corpus]
    ) -> list[Context]:
        """Return one context per question: a unit per ranked passage, its ``context_text``."""
        found = ranked_passages(questions, rankings, corpora)
        return [passages_context(r, passages) for r, passages in zip(rankings, found, strict=True)]


def ranked_passages(
    questions: Sequence[Question], rankings: Sequence[Ranking], corpora: dict[str, Corpus]
) -> list[list[Passage]]:
    """Return the passages of each ranking, best first.

    Raises:
        RunError: a ranking names a passage that its corpus does not hold.
    """
    by_id = {q.corpus_id: {} for q in questions}
    for corpus_id, passages in by_id.items():
        passages.update({p.id: p for p in corpora[corpus_id].passages})
    found = []
    for question, ranking in zip(questions, rankings, strict=True):
        passages = by_id[question.corpus_id]
        unknown = [s.id for s in ranking.passages if s.id not in passages]
        if unknown:
            raise RunError(f"question {question.id}: corpus {question.corpus_id} has no passage {unknown[0]}")
        found.append([passages[s.id] for s in ranking.passages])
    return found


def passages_context(ranking: Ranking, passages: Sequence[Passage]) -> Context:
    """Return the context of a ranking; a failed ranking gives a failed context with its reason."""
    if ranking.status == "failed":
        return Context(ranking.id, (), status="failed", reason=f"ranking: {ranking.reason}")
    units = tuple(Unit(p.id, p.context_text, p.id) for p in passages)
    return Context(ranking.id, units, status=ranking.status, reason=ranking.reason)
