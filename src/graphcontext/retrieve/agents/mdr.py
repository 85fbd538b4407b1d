"""The multi-hop dense retriever as agent (KGP Table 1, "KGP-MDR")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from graphcontext.data.records import Corpus
from graphcontext.retrieve.agents.state import Evidence, State
from graphcontext.retrieve.by_corpus import encode_pool
from graphcontext.retrieve.encoder import warn_untrained


class MDRAgent:
    r"""Scores neighbours by the dot product with the question followed by the path (KGP Table 1, "KGP-MDR").

    .. math:: \mathrm{score}(v) = f(q \,\|\, v_1 \,\|\, \dots \,\|\, v_j) \cdot f(v)

    with f the encoder trained on two hops (Xiong et al. 2021).

    Args:
        encoder: has ``encode(texts, kind)``; its own ``max_length`` cuts the query.
        joiner: between the question and the passages' ``match_text``; as the encoder was trained with.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()
    repeatable: ClassVar[bool] = True

    def __init__(self, encoder: Any, joiner: str = " ") -> None:
        self.encoder, self.joiner = encoder, joiner
        self._vectors: dict[str, np.ndarray] = {}

    def begin(self, corpora: dict[str, Corpus]) -> None:
        """Encode the passages of all corpora, each text once."""
        warn_untrained(self.encoder, "agent=mdr")
        encode_pool(self.encoder, corpora)
        self._vectors = {corpus_id: vectors for corpus_id, vectors in self._vectors.items() if corpus_id in corpora}

    def evidence(self, states: Sequence[State]) -> list[Evidence]:
        """Return the text that is encoded as query."""
        return [Evidence(self.joiner.join([s.question.text, *(p.match_text for p in s.passages)])) for s in states]

    def scores(
        self, states: Sequence[State], evidences: Sequence[Evidence], candidates: Sequence[np.ndarray]
    ) -> list[np.ndarray]:
        """Return the dot product with each candidate of each state, float64."""
        if not states:
            return []
        queries = self.encoder.encode([evidence.text for evidence in evidences], kind="query")
        found = zip(states, queries, candidates, strict=True)
        return [(self._pool(s.corpus)[some].astype(np.float64) @ query.astype(np.float64)) for s, query, some in found]

    def _pool(self, corpus: Corpus) -> np.ndarray:
        if corpus.id not in self._vectors:
            texts = [passage.match_text for passage in corpus.passages]
            self._vectors[corpus.id] = self.encoder.encode(texts, kind="passage")
        return self._vectors[corpus.id]
