"""Answers that end a chain of thought (IRCoT's reader; Trivedi et al. 2023)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from graphcontext.data.records import Context, Prediction, Question
from graphcontext.generate.llm import LLMGenerator
from graphcontext.generate.prompt import Prompt

_ANSWER = re.compile(r".*\banswer is\b:?\s*([^\n]*)", re.IGNORECASE | re.DOTALL)  # the last one
_INITIALS = re.compile(r"(?:\b\w\.){2,}$")  # whose full stop is their own
UNMARKED = "no 'answer is': the last line"


class IRCoT:
    """Asks for a chain of thought over the context, and takes what follows "answer is" for the answer.

    The reader of IRCoT (Trivedi et al. 2023), beside ``retriever=ircot``, which finds the passages; it reads any other
    context as well. A text without "answer is" is answered by its last line, counted in ``reason``. The whole text is
    in ``calls.jsonl``.

    Differs from KGP, whose IRCoT row is read as its others are (``generator=short_answer``).

    Args:
        llm: has ``chat(requests, role, max_new_tokens)``.
        prompt: asks for the chain of thought; the one of ``retriever=ircot``.
        max_new_tokens: most tokens of the chain.

    Raises:
        InputError: ``max_new_tokens`` below 1, or a prompt that does not show the question.
    """

    version: ClassVar[int] = 2
    execution: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, llm: Any, prompt: Prompt, max_new_tokens: int) -> None:
        self.reader = LLMGenerator(llm, prompt, max_new_tokens)

    def generate(self, questions: Sequence[Question], contexts: Sequence[Context]) -> list[Prediction]:
        """Return one prediction per question, by index."""
        return [_answered(prediction) for prediction in self.reader.generate(questions, contexts)]


def _answered(prediction: Prediction) -> Prediction:
    """Return a prediction whose chain of thought is cut to the answer."""
    if prediction.status != "ok":
        return prediction
    answer, is_marked = answer_of(prediction.prediction)
    reason = prediction.reason if is_marked else "; ".join(filter(None, [prediction.reason, UNMARKED]))
    return replace(prediction, prediction=answer, status="ok" if answer else "empty", reason=reason)


def answer_of(text: str) -> tuple[str, bool]:
    """Return the answer that a chain of thought ends in, and whether it says so.

    >>> answer_of("Lis flows to Ems. So the answer is: the Ems."), answer_of("Lis flows to Ems.")
    (('the Ems', True), ('Lis flows to Ems.', False))
    >>> answer_of("The answer is\\nthe U.S.")
    ('the U.S.', True)
    """
    found = _ANSWER.match(text)
    if found:
        answer = found[1].strip()
        return (answer if _INITIALS.search(answer) else answer.rstrip(".")).strip(" \"'"), True
    return (text.strip().splitlines() or [""])[-1].strip(), False
