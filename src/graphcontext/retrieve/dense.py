"""Dense retrieval by exact cosine (GraphContextGen's TextGen rows)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from graphcontext.data.records import Corpus, Graph, Question, Ranking
from graphcontext.graph.cosine import nearest, unit_rows
from graphcontext.retrieve.by_corpus import by_corpus, checked_count, empty, encode_pool, matchable, scored


class Dense:
    """Ranks passages by the cosine of their embedding with the question's (GraphContextGen §5, "TextGen").

    Exact, in blocks of one matrix product; no index and no faiss. Equal cosines by lower passage index. A passage with
    blank ``match_text`` (a page node) is never retrieved.

    Args:
        encoder: gives the embeddings of ``match_text`` and of the question's text.
        top_k: passages per question, ≥ 1; the paper takes 2.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()
    needs_graph: ClassVar[bool] = False

    def __init__(self, encoder: Any, top_k: int):
        self.encoder = encoder
        self.top_k = checked_count("top_k", top_k)

    def retrieve(
        self, questions: Sequence[Question], corpora: dict[str, Corpus], graphs: dict[str, Graph]
    ) -> list[Ranking]:
        rankings = [empty(question) for question in questions]
        if not questions:
            return rankings
        encode_pool(self.encoder, corpora)
        asked_vectors = unit_rows(self.encoder.encode([q.text for q in questions], kind="query"))
        for corpus, positions, asked in by_corpus(questions, corpora):
            kept = matchable(corpus)
            if not len(kept):
                continue
            pool = unit_rows(self.encoder.encode([corpus.passages[i].match_text for i in kept], kind="passage"))
            indices, cosines = nearest(asked_vectors[positions], pool, self.top_k)
            for row, (position, question) in enumerate(zip(positions, asked, strict=True)):
                rankings[position] = Ranking(question.id, scored(corpus, kept[indices[row]], cosines[row]))
        return rankings
