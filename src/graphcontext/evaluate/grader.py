"""Accuracy of short answers by a language model that grades each as right or wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from graphcontext.data.records import Context, Prediction, Question, Ranking
from graphcontext.errors import InputError, did_you_mean
from graphcontext.evaluate.answers import ANSWERED
from graphcontext.evaluate.pairs import answer_pairs
from graphcontext.generate.chat import ChatRequest, ChatResponse
from graphcontext.generate.prompt import Prompt

GRADES = {"1": 1.0, "0": 0.0}
BETWEEN = " / "  # references of one question


def strict(reply: str) -> float | None:
    """Return the grade that a reply is: ``1`` or ``0`` and, blanks apart, nothing else; None where it is neither.

    >>> strict(" 1\\n"), strict("0"), strict("The answer is 1 of them."), strict("10")
    (1.0, 0.0, None, None)
    """
    return GRADES.get(reply.strip())


def contains_1(reply: str) -> float | None:
    """Return 1 where a ``1`` stands anywhere in a reply, else 0: KGP's code."""
    return float("1" in reply)


PARSERS: dict[str | None, Callable[[str], float | None]] = {None: strict, "contains_1": contains_1}


class Grader:
    """Accuracy as a language model grades it: one call per answer, 1 for right and 0 for wrong (KGP Table 1, "Acc").

    The model is shown question, references (all of them, `` / `` between) and answer. A failed or blank answer, and
    one to a question without references, scores 0 without a call.

    A reply that is not exactly ``1`` or ``0`` is no grade: the item is failed, with the reply as its reason, counted,
    and 0 in the mean. So is a call that failed. The next run asks both again, but not a model that would repeat itself.

    Emits ``acc``, over all items, and ``acc_answered`` over those that did not fail: neither their answer nor their
    grade.

    Differs from the paper: its code takes every reply that holds the character 1 for right, which ``compat`` gives
    back ("The answer is 1 of the two named" would be right, and "0, since it is 10 years off"). The prompt is our own
    wording.

    Args:
        llm: has ``chat(requests, role, max_new_tokens, check)``.
        prompt: its ``{question}``, ``{reference}`` and ``{prediction}`` are filled.
        max_new_tokens: most tokens of one reply.
        compat: null, or ``contains_1``.

    Raises:
        InputError: a limit below 1, an unknown ``compat``, or a prompt that does not show what is to be graded.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()
    asks: ClassVar[bool] = True
    columns: ClassVar[dict[str, str]] = {"acc_answered": ANSWERED}

    def __init__(self, llm: Any, prompt: Prompt, max_new_tokens: int = 4, compat: str | None = None) -> None:
        if max_new_tokens < 1:
            raise InputError(f"metric.acc.max_new_tokens={max_new_tokens}; allowed: 1 and more")
        if compat not in PARSERS:
            raise InputError(f"metric.acc.compat={compat}{did_you_mean(str(compat), ['contains_1'])}, or null")
        for field in ("reference", "prediction"):
            prompt.require(field, "a grade")
        self.llm, self.prompt, self.max_new_tokens, self.compat = llm, prompt, max_new_tokens, compat

    @property
    def repeatable(self) -> bool:
        """Whether a reply that is no grade would come again: greedy decoding on this machine."""
        return bool(getattr(self.llm, "repeatable", False))

    @property
    def signature(self) -> str:
        """Grader and what counts as right, as ``acc|smollm2|reply is 1 or 0``."""
        rule = "reply is 1 or 0" if self.compat is None else "1 anywhere in the reply"
        return f"acc|{getattr(self.llm, 'model', type(self.llm).__name__)}|{rule}"

    def score(
        self,
        questions: Sequence[Question],
        predictions: Sequence[Prediction],
        rankings: Sequence[Ranking],
        contexts: Sequence[Context],
    ) -> list[dict[str, Any]]:
        """Grade each prediction; an item without a grade has the value None and the reason."""
        pairs = answer_pairs(questions, predictions)
        asked = [i for i, pair in enumerate(pairs) if pair.prediction.strip() and pair.references]
        requests = []
        for i in asked:
            filled = {"reference": BETWEEN.join(pairs[i].references), "prediction": pairs[i].prediction.strip()}
            requests.append(ChatRequest(questions[i].id, self.prompt.render(questions[i].text, **filled)))
        responses = self.llm.chat(requests, "grader", self.max_new_tokens, check=self._fault) if requests else []
        graded = dict(zip(asked, responses, strict=True))
        rows = []
        for i, prediction in enumerate(predictions):
            if i in graded:
                rows.append(self._row(graded[i]))
            else:
                rows.append({"acc": 0.0, "acc_answered": None if prediction.status == "failed" else 0.0})
        return rows

    def _row(self, response: ChatResponse) -> dict[str, Any]:
        grade = None if response.status == "failed" else PARSERS[self.compat](response.text)
        row: dict[str, Any] = {"acc": grade, "acc_answered": grade}
        return row if grade is not None else row | {"reason": response.reason or self._fault(response)}

    def _fault(self, response: ChatResponse) -> str | None:
        """Return why a reply is no grade."""
        if PARSERS[self.compat](response.text) is not None:
            return None
        return f'parse: the grade is 1 or 0, not "{" ".join(response.text.split())[:60]}"'
