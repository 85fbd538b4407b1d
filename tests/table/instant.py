"""Components of the tests' tables: a model that answers at once, and what goes wrong in the field."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from graphcontext.data.records import Context, Corpus, Graph, Prediction, Question, Ranking, Scored
from graphcontext.errors import RunError
from graphcontext.generate.chat import ChatRequest, ChatResponse, Check, answer


class InstantLLM:
    """Answers with the first words of its context.

    Args:
        model: a name that has no weights here, or null for none needed.
        n_words: of an answer.
        refuses: raise as a server does that refuses its key.
        plan: speeds, as in a model's YAML.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset({"plan"})
    workers: ClassVar[int] = 1
    batch_size: ClassVar[int] = 4
    asked: ClassVar[list[str]] = []  # items, in order, by every instance

    def __init__(self, model: str | None, n_words: int, refuses: bool, plan: dict[str, Any]) -> None:
        self.model, self.n_words, self.refuses, self.plan = model, n_words, refuses, plan
        self.workspace: Any = None

    def bind(self, workspace: Any) -> None:
        self.workspace = workspace

    def settings(self) -> dict[str, Any]:
        return {"backend": ["InstantLLM", self.version], "n_words": self.n_words}

    def draws_random(self) -> bool:
        return False

    def length(self, request: ChatRequest) -> int:
        return sum(len(m["content"]) for m in request.messages)

    def chat(
        self, requests: Sequence[ChatRequest], role: str, max_new_tokens: int, check: Check | None = None
    ) -> list[ChatResponse]:
        return answer(self, requests, role, max_new_tokens, check)

    def complete(
        self, requests: Sequence[ChatRequest], seeds: Sequence[int], max_new_tokens: int
    ) -> list[ChatResponse]:
        if self.refuses:
            raise RunError("the server refused the key (401)")
        InstantLLM.asked += [r.item for r in requests]
        return [ChatResponse(r.item, self._text(r), "stop", n_tokens=self.n_words) for r in requests]

    def _text(self, request: ChatRequest) -> str:
        words = request.messages[-1]["content"].split()
        return " ".join(words[9 : 9 + self.n_words])  # 9: "Here are answered questions and facts that may help:"


class Buggy:
    """A generator with a bug: it raises for every ``every``-th question."""

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, every: int) -> None:
        self.every = every

    def generate(self, questions: Sequence[Question], contexts: Sequence[Context]) -> list[Prediction]:
        if any(int(q.id) % self.every == 0 for q in questions):
            raise ValueError("list index out of range")
        return [Prediction(q.id, q.text, "the kernel", q.references) for q in questions]


class Fallen:
    """A retriever that takes a fall-back for all questions but the first of each call.

    Args:
        top_k: passages of a ranking.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()
    needs_graph: ClassVar[bool] = False

    def __init__(self, top_k: int) -> None:
        self.top_k = top_k

    def retrieve(
        self, questions: Sequence[Question], corpora: dict[str, Corpus], graphs: dict[str, Graph]
    ) -> list[Ranking]:
        rankings = []
        for number, question in enumerate(questions):
            passages = corpora[question.corpus_id].passages[: self.top_k]
            scored = tuple(Scored(p.id, 1.0 / (1 + i)) for i, p in enumerate(passages))
            rankings.append(Ranking(question.id, scored, fallback="cosine" if number else None))
        return rankings
