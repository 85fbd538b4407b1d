"""The nearest-neighbour graphs KNN-ST and KNN-MDR of KGP (§2.2 and the official code)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from graphcontext.data.records import Corpus, Graph, Passage
from graphcontext.errors import InputError, did_you_mean
from graphcontext.graph.cosine import exact_cosine, margin, unit_rows
from graphcontext.graph.health import health
from graphcontext.graph.keywords import checked_number, checked_text
from graphcontext.retrieve.by_corpus import encode_pool
from graphcontext.retrieve.encoder import warn_untrained

SIMILARITIES = ("cosine", "dot")
_PRODUCTS = 1 << 24  # float32 products that are held at once


class KNNGraph:
    r"""Leads from each passage to the ``k`` passages most similar to it (KGP §2.2).

    .. math:: E = \{(i, j) : j \in \mathrm{top}_k \{ s(e_i, e_j') : j' \neq i \}\}

    Directed, weight 1. Exact, equal similarities by lower index; ``k`` is cut to n − 1.

    Args:
        encoder: gives the embeddings. KNN-ST: a sentence encoder, the paper's ``multi-qa-MiniLM-L6-cos-v1``;
            KNN-MDR: the trained encoder of ``retriever=mdr``.
        nouns: gives the nouns of a text (:class:`graphcontext.graph.noun_text.NounText`).
        k: neighbours of a passage, ≥ 1; the code's 10.
        similarity: ``cosine`` (KNN-ST) or ``dot`` (KNN-MDR).
        text: what is embedded: ``noun``, the passage's nouns (KNN-ST), or ``raw``, the passage (KNN-MDR).

    Raises:
        InputError: a value out of range; embeddings that are not finite.

    Differs from the paper:
        The code sorts and drops the first hit as the passage itself, which another passage may be under the dot
        product, and shifts its edge list where there are no more than ``k`` passages: ours masks the diagonal. A
        passage of which nothing is left to embed (no text, no noun) has no edge either way; ``n_blank`` counts them.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, encoder: Any, nouns: Any, k: int = 10, similarity: str = "cosine", text: str = "noun") -> None:
        if similarity not in SIMILARITIES:
            allowed = f"allowed: {', '.join(SIMILARITIES)}{did_you_mean(str(similarity), SIMILARITIES)}"
            raise InputError(f"graph.similarity={similarity}; {allowed}")
        self.encoder, self.nouns = encoder, nouns
        self.k, self.similarity, self.text = checked_number("k", k), similarity, checked_text(text)

    def begin(self, corpora: dict[str, Corpus]) -> None:
        """Tag and encode the passages of all corpora, each text once."""
        if self.text == "noun":
            self.nouns.begin(corpora)
        if self.similarity == "dot":
            warn_untrained(self.encoder, "graph=knn_mdr")
        encode_pool(self.encoder, corpora, self._text_of)

    def build(self, corpus: Corpus) -> Graph:
        """Return the directed graph over the corpus' passages."""
        n = len(corpus.passages)
        texts = [self._text_of(p) for p in corpus.passages]
        at = np.array([i for i, text in enumerate(texts) if text.strip()], np.int64)
        rows, columns = self._nearest([texts[i] for i in at])
        indptr = np.zeros(n + 1, np.int64)
        np.cumsum(np.bincount(at[rows], minlength=n), out=indptr[1:])
        indices = at[columns].astype(np.int32)
        facts = {
            **{"k": self.k, "similarity": self.similarity, "text": self.text, "n_blank": n - len(at)},
            **health(indptr, indices, directed=True),
        }
        return Graph(corpus.id, indptr, indices, np.ones(len(indices), np.float32), directed=True, facts=facts)

    def _text_of(self, passage: Passage) -> str:
        return self.nouns.of(passage) if self.text == "noun" else passage.match_text

    def _nearest(self, texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
        if len(texts) < 2:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        vectors = np.asarray(self.encoder.encode(texts, kind="passage"), dtype=np.float32)
        scaled = unit_rows(vectors)  # refuses what is not finite
        return nearest_others(scaled if self.similarity == "cosine" else vectors, self.k)


def nearest_others(vectors: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (row, other row) pairs: for each row the ``k`` others of highest product, ties by index, ascending.

    The float32 product of a tile only proposes: where more rows than fit lie within its rounding of the last place,
    they are computed again in float64, each pair by itself.

    Args:
        vectors: (n, dim) float32, n ≥ 2.
        k: others of each row, cut to n − 1.
    """
    n = len(vectors)
    k = min(k, n - 1)
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
    slack = 2 * margin(vectors.shape[1]) * lengths * lengths.max()
    step = max(1, _PRODUCTS // n)
    found = []
    for start in range(0, n, step):
        products = vectors[start : start + step] @ vectors.T
        own = np.arange(len(products))
        products[own, own + start] = -np.inf
        last = np.partition(products, n - k, axis=1)[:, n - k]
        is_near = products >= (last - slack[start : start + step])[:, None]
        for row in np.flatnonzero(is_near.sum(axis=1) > k):
            near = np.flatnonzero(is_near[row])
            exact = exact_cosine(vectors, np.full(len(near), row + start), vectors, near)
            is_near[row, near[np.argsort(-exact, kind="stable")[k:]]] = False
        rows, columns = np.nonzero(is_near)
        found.append((rows + start, columns))
    return np.concatenate([rows for rows, _ in found]), np.concatenate([columns for _, columns in found])
