"""A control: as many triples as the context has, but of other passages."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, ClassVar

from graphcontext.data.records import Context, Corpus, Passage, Question, Ranking
from graphcontext.enhance.none import passages_context, ranked_passages
from graphcontext.enhance.triples import Knowledge, Triple, add_sentences, initial_knowledge, sentence
from graphcontext.errors import InputError


class Shuffled:
    r"""Enhances a context by sentences of other passages: a control for ``triples`` (GraphContextGen §4.3), ours.

    If an enhanced context helps as much with knowledge that belongs to other questions, then its length or form
    helped, and not its knowledge.

    .. math:: S = \text{the first } |S_{own}| \text{ sentences of } \tau_{init}(p_1), \tau_{init}(p_2), \dots
        \text{ that are not in } S_{own}

    where p_1, p_2, … are drawn without replacement from the question's corpus, its ranked passages left out, by seed
    and question id alone: neither other questions nor their order matter. C itself stays as it is.

    The numbers of sentences are equal but where the drawn passages say less than the own; counted in ``reason``
    (``fewer triples than its own``). Tokens may differ: sentences are not equally long.

    Args:
        extractor: as in :class:`graphcontext.enhance.triples.Triples`.
        most_passages: drawn for one question, at most (1 and more); each is one extraction.
        show_passages: whether C itself is shown.

    Raises:
        InputError: ``most_passages`` below 1.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()
    source: ClassVar[str] = "shuffled"

    def __init__(self, extractor: Any, most_passages: int = 16, show_passages: bool = True) -> None:
        if most_passages < 1:
            raise InputError(f"enhancer.most_passages={most_passages}; allowed: 1 and more")
        self.extractor, self.most_passages, self.show_passages = extractor, most_passages, show_passages
        self._seeds = (0, 0)

    @classmethod
    def draws(cls, config: dict[str, Any]) -> bool:
        """Return that it draws random numbers: seeds enter the key."""
        return True

    def bind(self, workspace: Any) -> None:
        """Use the run's seeds."""
        self._seeds = (workspace.seed, workspace.sample_index)

    def enhance(
        self, questions: Sequence[Question], rankings: Sequence[Ranking], corpora: dict[str, Corpus]
    ) -> list[Context]:
        """Return one context per question: its passages best first, then sentences of others."""
        found = ranked_passages(questions, rankings, corpora)
        own = initial_knowledge(found, self.extractor)
        drawn = [self._draw(q, passages, corpora[q.corpus_id]) for q, passages in zip(questions, found, strict=True)]
        others = self._extract(own, drawn)
        return [
            add_sentences(passages_context(ranking, passages), knowledge, self.show_passages)
            for ranking, passages, knowledge in zip(rankings, found, others, strict=True)
        ]

    def _draw(self, question: Question, ranked: Sequence[Passage], corpus: Corpus) -> list[Passage]:
        left_out = {p.id for p in ranked}
        by_id = {p.id: p for p in corpus.passages if p.id not in left_out}
        seed = "/".join(map(str, (*self._seeds, question.id)))
        chosen = random.Random(seed).sample(sorted(by_id), min(self.most_passages, len(by_id)))
        return [by_id[i] for i in chosen]

    def _extract(self, own: Sequence[Knowledge], drawn: Sequence[Sequence[Passage]]) -> list[Knowledge]:
        """Extract from drawn passages, one more for each question that still lacks sentences, until none does."""
        mine = [{sentence(t) for t, _ in knowledge.triples} for knowledge in own]
        others: list[dict[str, Triple]] = [{} for _ in own]
        retry = [knowledge.retry for knowledge in own]
        for turn in range(self.most_passages):
            lacking = [i for i in range(len(own)) if len(others[i]) < len(mine[i]) and turn < len(drawn[i])]
            if not lacking:
                break
            told = initial_knowledge([[drawn[i][turn]] for i in lacking], self.extractor)
            for i, knowledge in zip(lacking, told, strict=True):
                retry[i] |= knowledge.retry
                for triple, _ in knowledge.triples:
                    if sentence(triple) not in mine[i] and len(others[i]) < len(mine[i]):
                        others[i].setdefault(sentence(triple), triple)
        return [
            Knowledge(
                tuple((triple, self.source) for triple in other.values()),
                (*knowledge.reasons, *(["fewer triples than its own"] if len(other) < len(needed) else [])),
                again,
            )
            for knowledge, other, needed, again in zip(own, others, mine, retry, strict=True)
        ]
