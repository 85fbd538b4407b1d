"""Pairs of passages as they were found: KGP's contexts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from graphcontext.data.records import Context, Corpus, Passage, Question, Ranking, Unit, content_id
from graphcontext.enhance.none import passages_context, ranked_passages

NEWLINE = "\n"


class Pairs:
    """Shows each reasoning path as one context, its passages' texts joined by newlines (KGP §4.2, official code).

    A traversal of two hops gives its pairs, "seed newline neighbour", in the order of its steps: the seed's text stands
    before each of its neighbours', and a passage that two seeds lead to is shown twice. A path that leads nowhere is
    shown alone, and so is one whose next passage has the very text of its last; a path that goes on is shown only with
    what it goes on to. A ranking without steps gives a unit per passage, as ``enhancer=none`` does.

    The unit's source is the last passage of its path. Which passages were found is the ranking's matter: retrieval
    metrics are those of ``enhancer=none``.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()

    def enhance(
        self, questions: Sequence[Question], rankings: Sequence[Ranking], corpora: dict[str, Corpus]
    ) -> list[Context]:
        """Return one context per question: a unit per path.

        Raises:
            RunError: a ranking names a passage that its corpus does not hold.
        """
        ranked = ranked_passages(questions, rankings, corpora)
        held = {i: {p.id: p for p in corpora[i].passages} for i in {question.corpus_id for question in questions}}
        contexts = []
        for question, ranking, passages in zip(questions, rankings, ranked, strict=True):
            context = passages_context(ranking, passages)
            if context.status != "failed" and ranking.steps:
                own = held[question.corpus_id]
                context = replace(context, units=tuple(_unit(path, own) for path in paths(ranking, own)))
            contexts.append(context)
        return contexts


def paths(ranking: Ranking, held: dict[str, Passage]) -> list[tuple[str, ...]]:
    """Return the paths of a ranking's steps that go no further, in the order in which they ended."""
    steps = ranking.steps or ()
    taken = {step.path for step in steps}
    found: list[tuple[str, ...]] = []
    for step in steps:
        said = held[step.path[-1]].context_text if step.path else None
        onward = [(*step.path, i) for i in step.chosen if held[i].context_text != said]
        found += [path for path in onward if path not in taken]
        if step.path and not onward:
            found.append(step.path)
    return found


def _unit(path: tuple[str, ...], held: dict[str, Passage]) -> Unit:
    text = NEWLINE.join(held[i].context_text for i in path)
    return Unit(path[0] if len(path) == 1 else content_id("path", *path), text, path[-1])
