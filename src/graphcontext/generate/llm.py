"""Answers by a language model, from its context."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from graphcontext.data.records import Context, Prediction, Question
from graphcontext.enhance.packing import SEPARATOR
from graphcontext.errors import InputError
from graphcontext.generate.chat import ChatRequest
from graphcontext.generate.prompt import Prompt


class LLMGenerator:
    """Asks a language model each question, with its context where there is one (GraphContextGen §4.4).

    The units of a context are joined by blank lines. A question whose context failed is a failed prediction;
    one without any context is asked without (zero-shot).

    Args:
        llm: has ``chat(requests, role, max_new_tokens)``.
        prompt: turns question and context into messages; its ``user`` holds ``{question}``.
        max_new_tokens: most tokens of one answer.
        numbered: put "1. ", "2. " … before the units, as KGP's reader sees them.

    Raises:
        InputError: ``max_new_tokens`` below 1, or a prompt that does not show the question.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()
    neutral: ClassVar[dict[str, Any]] = {"numbered": False}

    def __init__(self, llm: Any, prompt: Prompt, max_new_tokens: int, numbered: bool = False) -> None:
        if max_new_tokens < 1:
            raise InputError(f"generator.max_new_tokens={max_new_tokens}; allowed: 1 and more")
        prompt.require("question", "an answer")
        self.llm, self.prompt, self.max_new_tokens, self.numbered = llm, prompt, max_new_tokens, numbered

    def generate(self, questions: Sequence[Question], contexts: Sequence[Context]) -> list[Prediction]:
        """Return one prediction per question, by index."""
        pairs = list(zip(questions, contexts, strict=True))
        asked = [i for i, (_, context) in enumerate(pairs) if context.status != "failed"]
        requests = [self.request(*pairs[i]) for i in asked]
        responses = dict(zip(asked, self.llm.chat(requests, "answer", self.max_new_tokens), strict=True))
        predictions = []
        for i, (question, context) in enumerate(pairs):
            if i not in responses:
                predictions.append(failed(question, f"context: {context.reason}"))
                continue
            r = responses[i]
            predictions.append(
                Prediction(
                    question.id,
                    question.text,
                    r.text,
                    question.references,
                    n_tokens=r.n_tokens,
                    status=r.status,
                    reason=r.reason,
                    finish=r.finish,
                )
            )
        return predictions

    def request(self, question: Question, context: Context) -> ChatRequest:
        """Return what the model is asked; a training learns the answer to the very same."""
        texts = [f"{n}. {u.text}" if self.numbered else u.text for n, u in enumerate(context.units, 1)]
        return ChatRequest(question.id, self.prompt.render(question.text, SEPARATOR.join(texts)))


def failed(question: Question, reason: str) -> Prediction:
    """Return a failed prediction with its reason."""
    return Prediction(question.id, question.text, "", question.references, status="failed", reason=reason)
