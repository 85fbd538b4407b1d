"""No retrieval: the model answers from what it knows (GraphContextGen Table 2, KGP Table 1 "None")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from graphcontext.data.records import Corpus, Graph, Question, Ranking


class NoRetrieval:
    """Returns a ranking without passages for every question; its status is ``ok``, nothing was sought."""

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()
    needs_graph: ClassVar[bool] = False

    def retrieve(
        self, questions: Sequence[Question], corpora: dict[str, Corpus], graphs: dict[str, Graph]
    ) -> list[Ranking]:
        return [Ranking(question.id, ()) for question in questions]
