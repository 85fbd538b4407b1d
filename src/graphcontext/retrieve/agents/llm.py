"""A language model as agent (KGP §4.2): it writes what evidence is needed next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from graphcontext.errors import InputError
from graphcontext.generate.chat import ChatRequest, ChatResponse
from graphcontext.generate.prompt import Prompt
from graphcontext.retrieve.agents.state import Evidence, State

SEPARATOR = "\n"
NO_EVIDENCE = "no evidence"


class LLMAgent:
    r"""Asks a language model for the evidence that is missing to answer the question (KGP §4.2, equation 2).

    .. math:: \hat{s} = \arg\max_v \phi(g(v), f(\|_{k} X_k)), \quad X = (q, v_1, \dots, v_j)

    f is the model: it is shown the question and the texts of the passages on the path, joined by newlines. One call
    per path, all paths of all questions in one call of ``llm.chat``, so that they fill batches. The evidence is the
    first line of the answer: what small models add is mostly another example. Encoder–decoders, causal and chat models
    differ in their prompt alone.

    Differs from the paper: decoding is the model's own setting, greedy unless it says otherwise (the released code
    draws at temperature .8 with LLaMA).

    Args:
        llm: has ``chat(requests, role, max_new_tokens)``.
        prompt: its ``{question}`` is the question, its ``{context}`` the passages on the path.
        max_new_tokens: most tokens of one evidence, ≥ 1.

    Raises:
        InputError: ``max_new_tokens`` below 1, or a prompt that shows not both.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()
    calls_per_step: ClassVar[int] = 1

    def __init__(self, llm: Any, prompt: Prompt, max_new_tokens: int) -> None:
        if max_new_tokens < 1:
            raise InputError(f"agent.max_new_tokens={max_new_tokens}; allowed: 1 and more")
        for field in ("question", "context"):
            prompt.require(field, "the next evidence")
        self.llm, self.prompt, self.max_new_tokens = llm, prompt, max_new_tokens

    @property
    def repeatable(self) -> bool:
        """Whether a failure would repeat itself: greedy decoding on this machine."""
        return bool(getattr(self.llm, "repeatable", False))

    def evidence(self, states: Sequence[State]) -> list[Evidence]:
        """Return what the model writes for each state, by index; a failed call is a failed evidence."""
        requests = [self.request(s.id, s.question.text, [p.match_text for p in s.passages]) for s in states]
        return [_evidence(response) for response in self.llm.chat(requests, "agent", self.max_new_tokens)]

    def request(self, item: str, question: str, path: Sequence[str]) -> ChatRequest:
        """Return what the model is asked; a training learns the answer to the very same."""
        return ChatRequest(item, self.prompt.render(question, SEPARATOR.join(path)))


def _evidence(response: ChatResponse) -> Evidence:
    text = response.text.strip().partition("\n")[0].strip()
    if response.status == "failed":
        return Evidence(text, "failed", f"agent: {response.reason or 'failed'}")
    return Evidence(text) if text else Evidence("", "empty", NO_EVIDENCE)
