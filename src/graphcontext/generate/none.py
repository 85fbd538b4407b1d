"""No generation: retrieval metrics only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from graphcontext.data.records import Context, Prediction, Question


class NoGeneration:
    """Answers nothing: one ``empty`` prediction per question, for runs that measure retrieval alone."""

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()
    answers: ClassVar[bool] = False  # metrics that need an answer are not scored

    def generate(self, questions: Sequence[Question], contexts: Sequence[Context]) -> list[Prediction]:
        """Return an empty prediction per question; a failed one where retrieval or enhancement failed."""
        return [
            Prediction(q.id, q.text, "", q.references, status="failed", reason=f"context: {context.reason}")
            if context.status == "failed"
            else Prediction(q.id, q.text, "", q.references, status="empty", reason="generator=none")
            for q, context in zip(questions, contexts, strict=True)
        ]
