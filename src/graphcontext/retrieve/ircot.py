"""Retrieval interleaved with a chain of thought (KGP Table 1 "IRCoT")."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from graphcontext.component import needs_graph
from graphcontext.data.records import Corpus, Graph, Passage, Question, Ranking, Scored, Step
from graphcontext.data.sentences import sentences
from graphcontext.enhance.packing import SEPARATOR
from graphcontext.errors import InputError
from graphcontext.generate.chat import ChatRequest, ChatResponse
from graphcontext.generate.prompt import Prompt
from graphcontext.retrieve.by_corpus import NO_PASSAGE, checked_count, empty
from graphcontext.retrieve.lexical import NO_MATCH

ANSWERED = re.compile(r"\banswer is\b", re.IGNORECASE)
FAILED = "chain of thought failed"
_MARK = re.compile(r"^\s*(?:\d+[.)]|[-*•])(?:\s+|$)")  # of a list, before a sentence


@dataclass
class Chain:
    """What is known of one question so far.

    Args:
        question: what is asked.
        passages: of the question's corpus.
        query: what is retrieved by next: the question, then the last sentence.
        found: ids of retrieved passages → passage, in order.
        sentences: of the chain of thought.
        reasons: what else is said of the ranking.
    """

    question: Question
    passages: dict[str, Passage]
    query: str
    found: dict[str, Passage] = field(default_factory=dict)
    sentences: list[str] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    fallback: str | None = None
    has_failed: bool = False
    is_done: bool = False


class IRCoT:
    r"""Retrieves by the question, then by each sentence of a chain of thought (KGP §4.2; Trivedi et al. 2023).

    .. math:: R_0 = r(q), \quad R_i = r(t_i), \quad
              t_i = \mathrm{first\ sentence\ of\ } M(q, R_0 \cup \dots \cup R_{i-1}, t_1 \dots t_{i-1})

    Each step adds the ``n_per_step`` best passages that were not retrieved before; after it the model writes one more
    sentence. It ends with ``top_k`` passages, ``max_steps`` sentences, or a sentence that says "answer is". The
    ranking holds the passages in the order they came, the n-th with score 1/n, since scores of different queries do
    not compare; ``steps`` hold the sentences. All questions take a step together, so that their calls fill batches.

    A loop of retrieval and not a generator: its passages are a ranking like any other's, so the retrieval metrics see
    them, and any generator answers from them: the one of the other rows (KGP's comparison), or ``generator=ircot``,
    which reads by a chain of thought as Trivedi et al. do.

    A call that fails ends the chain there: the ranking is ``failed`` where no sentence was written, else ``reason``
    counts it and, unless it would fail again, the next run asks again.

    Differs from Trivedi et al.: passages retrieved before make room for others; theirs add nothing to a step.

    Args:
        retriever: finds passages by the question and by a sentence; ranks at least ``top_k``.
        llm: has ``chat(requests, role, max_new_tokens)``.
        prompt: its ``{question}`` and ``{context}``; what it renders ends where the chain of thought begins.
        top_k: passages per question at most, ≥ 1; KGP takes 30.
        n_per_step: passages added in a step, ≥ 1; KGP takes 5.
        max_steps: sentences at most, ≥ 1; 5 sentences and the question fill KGP's 30.
        max_new_tokens: most tokens of one sentence, ≥ 1; what follows the first one is dropped.

    Raises:
        InputError: a count below 1, a prompt without one of its fields, a retriever that ranks fewer than ``top_k``.
    """

    version: ClassVar[int] = 2
    execution: ClassVar[frozenset[str]] = frozenset()
    records_steps: ClassVar[bool] = True

    def __init__(
        self,
        retriever: Any,
        llm: Any,
        prompt: Prompt,
        top_k: int = 30,
        n_per_step: int = 5,
        max_steps: int = 5,
        max_new_tokens: int = 48,
    ):
        self.top_k, self.n_per_step = checked_count("top_k", top_k), checked_count("n_per_step", n_per_step)
        self.max_steps = checked_count("max_steps", max_steps)
        self.max_new_tokens = checked_count("max_new_tokens", max_new_tokens)
        depth = getattr(retriever, "top_k", None)
        if depth is not None and depth < top_k:
            raise InputError(f"retriever.retriever.top_k={depth}: allowed is at least top_k={top_k}")
        for name in ("question", "context"):
            prompt.require(name, "a chain of thought")
        self.retriever, self.llm, self.prompt = retriever, llm, prompt

    @staticmethod
    def needs_graph(config: dict[str, Any]) -> bool:
        """Tell whether the retriever inside is given a graph."""
        return needs_graph(config["retriever"])

    @staticmethod
    def calls(config: dict[str, Any]) -> int:
        """Return how many calls to a language model a question takes where each step is full, for ``plan``."""
        return min(config["max_steps"], -(-config["top_k"] // config["n_per_step"]) - 1)

    @staticmethod
    def passages_per_call(config: dict[str, Any]) -> float:
        """Return how many passages a call shows on average, for ``plan``."""
        return config["n_per_step"] * (IRCoT.calls(config) + 1) / 2

    def retrieve(
        self, questions: Sequence[Question], corpora: dict[str, Corpus], graphs: dict[str, Graph]
    ) -> list[Ranking]:
        """Return one ranking per question, by index, with the sentences as steps."""
        held = {i: {p.id: p for p in corpora[i].passages} for i in {q.corpus_id for q in questions} & corpora.keys()}
        chains = [Chain(question, held.get(question.corpus_id, {}), question.text) for question in questions]
        active = chains
        while active:
            asked = [replace(chain.question, text=chain.query) for chain in active]
            for chain, ranking in zip(active, self.retriever.retrieve(asked, corpora, graphs), strict=True):
                self._add(chain, ranking)
            active = [chain for chain in active if not chain.is_done]
            requests = [self.request(chain) for chain in active]
            responses = self.llm.chat(requests, "agent", self.max_new_tokens) if requests else []
            for chain, response in zip(active, responses, strict=True):
                _think(chain, response)
            active = [chain for chain in active if not chain.is_done]
        repeatable = getattr(self.llm, "repeatable", False)
        return [_ranking(chain, repeatable) for chain in chains]

    def _add(self, chain: Chain, ranking: Ranking) -> None:
        """Add the best passages that are new."""
        room = min(self.n_per_step, self.top_k - len(chain.found))
        chosen = [hit.id for hit in ranking.passages if hit.id not in chain.found][:room]
        chain.found.update((i, chain.passages[i]) for i in chosen)
        chain.steps.append(Step((), chain.query, tuple(chosen), len(chain.passages)))
        chain.fallback = chain.fallback or ranking.fallback
        if ranking.status == "failed":
            chain.reasons.append(f"retriever: {ranking.reason}")
            chain.has_failed = True
        elif ranking.status == "ok" and ranking.reason and ranking.reason not in chain.reasons:
            chain.reasons.append(ranking.reason)
        full = len(chain.found) >= min(self.top_k, len(chain.passages))
        chain.is_done = full or chain.has_failed or len(chain.sentences) >= self.max_steps

    def request(self, chain: Chain) -> ChatRequest:
        """Return what the model is asked: question and passages, and the sentences so far, which it goes on from."""
        shown = SEPARATOR.join(passage.context_text for passage in chain.found.values())
        *before, last = self.prompt.render(chain.question.text, shown)
        content = " ".join([last["content"], *chain.sentences])
        return ChatRequest(chain.question.id, (*before, last | {"content": content}))


def _think(chain: Chain, response: ChatResponse) -> None:
    """Add the first sentence of an answer to the chain; the next step retrieves by it."""
    lines = [] if response.status == "failed" else response.text.strip().splitlines()
    written = sentences(_MARK.sub("", lines[0]))[:1] if lines else []
    if not written:
        chain.is_done, chain.has_failed = True, response.status == "failed"
        if chain.has_failed:
            chain.reasons.append(FAILED if chain.sentences else f"{FAILED}: {response.reason}")
        return
    chain.sentences += written
    chain.query = written[0]
    if ANSWERED.search(chain.query):
        chain.is_done = True
        chain.steps.append(Step((), chain.query, (), 0, "answered"))


def _ranking(chain: Chain, repeatable: bool) -> Ranking:
    reason, steps = "; ".join(chain.reasons) or None, tuple(chain.steps)
    if chain.has_failed and not chain.sentences:
        return Ranking(chain.question.id, (), "failed", reason, steps=steps)
    if not chain.found:
        return empty(chain.question, reason or (NO_MATCH if chain.passages else NO_PASSAGE))
    passages = tuple(Scored(i, 1 / n) for n, i in enumerate(chain.found, 1))
    retry = True if chain.has_failed and not repeatable else None
    return Ranking(chain.question.id, passages, reason=reason, fallback=chain.fallback, steps=steps, retry=retry)
