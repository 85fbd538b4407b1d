"""Dense retrieval by exact cosine or dot product (GraphContextGen's TextGen rows; KGP's DPR)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from graphcontext.data.records import Corpus, Graph, Question, Ranking
from graphcontext.errors import InputError, did_you_mean
from graphcontext.graph.cosine import nearest, unit_rows
from graphcontext.retrieve.by_corpus import by_corpus, checked_count, empty, encode_pool, matchable, scored
from graphcontext.retrieve.mdr import nearest_by_product

SIMILARITIES = ("cosine", "dot")


class Dense:
    """Ranks passages by the cosine or dot product of their embedding with the question's (GraphContextGen §5,
    "TextGen"; KGP §4.2, "DPR").

    Exact, in blocks of one matrix product; no index and no faiss. Equal ones by lower passage index. A passage with
    blank ``match_text`` (a page node) is never retrieved.

    Args:
        encoder: gives the embeddings of ``match_text`` and of the question's text.
        top_k: passages per question, ≥ 1; GraphContextGen takes 2, KGP 30.
        similarity: ``cosine`` or ``dot``; of unit vectors they are one.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()
    neutral: ClassVar[dict[str, Any]] = {"similarity": "cosine"}
    needs_graph: ClassVar[bool] = False

    def __init__(self, encoder: Any, top_k: int, similarity: str = "cosine"):
        if similarity not in SIMILARITIES:
            raise InputError(f"retriever.similarity={similarity}{did_you_mean(str(similarity), SIMILARITIES)}")
        self.encoder, self.similarity = encoder, similarity
        self.top_k = checked_count("top_k", top_k)

    def retrieve(
        self, questions: Sequence[Question], corpora: dict[str, Corpus], graphs: dict[str, Graph]
    ) -> list[Ranking]:
        rankings = [empty(question) for question in questions]
        if not questions:
            return rankings
        encode_pool(self.encoder, corpora)
        find = nearest if self.similarity == "cosine" else nearest_by_product
        asked_vectors = self._rows([q.text for q in questions], "query")
        for corpus, positions, asked in by_corpus(questions, corpora):
            kept = matchable(corpus)
            if not len(kept):
                continue
            pool = self._rows([corpus.passages[i].match_text for i in kept], "passage")
            indices, found = find(asked_vectors[positions], pool, self.top_k)
            for row, (position, question) in enumerate(zip(positions, asked, strict=True)):
                rankings[position] = Ranking(question.id, scored(corpus, kept[indices[row]], found[row]))
        return rankings

    def _rows(self, texts: list[str], kind: str) -> np.ndarray:
        """Return the vectors of texts (n_texts, dim), of length 1 for cosines."""
        vectors = self.encoder.encode(texts, kind=kind)
        return unit_rows(vectors) if self.similarity == "cosine" else vectors
