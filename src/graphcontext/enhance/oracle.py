"""A control: triples of the gold answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from graphcontext.data.records import Context, Corpus, Passage, Question, Ranking, content_id
from graphcontext.enhance.none import passages_context, ranked_passages
from graphcontext.enhance.triples import Knowledge, add_sentences, initial_knowledge


class Oracle:
    r"""Enhances a context by the triples of the gold answers: an upper bound of GraphContextGen §4.3, ours.

    .. math:: S = \{\text{"h r t."} : (h, r, t) \in \tau_{init}(\text{references})\}

    It leaks the answer by design: no number made with it is a result. It says what an enhancer could add at most, if
    it found just the triples that the answer is made of. A question without references keeps C as it is; counted in
    ``reason`` (``no reference``).

    Args:
        extractor: as in :class:`graphcontext.enhance.triples.Triples`.
        show_passages: whether C itself is shown.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()
    source: ClassVar[str] = "oracle"

    def __init__(self, extractor: Any, show_passages: bool = True) -> None:
        self.extractor, self.show_passages = extractor, show_passages

    def enhance(
        self, questions: Sequence[Question], rankings: Sequence[Ranking], corpora: dict[str, Corpus]
    ) -> list[Context]:
        """Return one context per question: its passages best first, then the sentences of its gold answers."""
        found = ranked_passages(questions, rankings, corpora)
        gold = initial_knowledge([_as_passages(q) for q in questions], self.extractor)
        return [
            add_sentences(passages_context(ranking, passages), self._named(question, knowledge), self.show_passages)
            for question, ranking, passages, knowledge in zip(questions, rankings, found, gold, strict=True)
        ]

    def _named(self, question: Question, knowledge: Knowledge) -> Knowledge:
        if not question.references:
            return Knowledge(reasons=("no reference",))
        return replace(knowledge, triples=tuple((triple, self.source) for triple, _ in knowledge.triples))


def _as_passages(question: Question) -> list[Passage]:
    texts = dict.fromkeys(question.references)
    return [Passage(content_id("reference", text), question.title, "", text) for text in texts]
