"""The question–question similarity graph of GraphContextGen (§4.2)."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import numpy as np

from graphcontext.data.records import Corpus, Graph
from graphcontext.errors import InputError
from graphcontext.graph.calibration import mean_degree_pairs
from graphcontext.graph.cosine import exact_cosine, to_csr, unit_rows
from graphcontext.graph.health import health
from graphcontext.graph.pairs import pairs_above
from graphcontext.retrieve.by_corpus import encode_pool

_RULE = re.compile(r"mean_degree:(\d+(?:\.\d+)?)")


class QuestionSimilarity:
    r"""Joins every two questions of the pool whose embeddings have a cosine above τ (GraphContextGen §4.2).

    .. math:: E = \{\{i, j\} : \cos(e_i, e_j) > \tau\}, \quad w_{ij} = 1

    Exact, in memory linear in the edges. The paper's τ is 0.8 under bge-large-en.

    Args:
        encoder: gives the embeddings of the passages' ``match_text``.
        threshold: τ in (−1, 1), or ``mean_degree:X``: the least τ at which the pool's graph has a mean
            degree of at most X, calibrated on the pool alone.
        weighted: the weight of an edge is its cosine instead of 1; edges of negative cosine are left out
            then.
        tile_rows: rows of one product (execution).
        tile_columns: columns of one product (execution).

    Raises:
        InputError: a threshold of another form, a tile size below 1.

    Differs from the paper:
        A calibrated threshold for other encoders; ``weighted`` is ours.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset({"tile_rows", "tile_columns"})

    def __init__(
        self,
        encoder: Any,
        threshold: float | str,
        weighted: bool = False,
        tile_rows: int = 1024,
        tile_columns: int = 4096,
    ):
        self.encoder = encoder
        self.threshold = _checked(threshold)
        self.weighted = weighted
        if min(tile_rows, tile_columns) < 1:
            raise InputError(f"tile_rows={tile_rows}, tile_columns={tile_columns}: both must be at least 1")
        self.tile = (tile_rows, tile_columns)

    def begin(self, corpora: dict[str, Corpus]) -> None:
        """Encode the passages of all corpora at once."""
        encode_pool(self.encoder, corpora)

    def build(self, corpus: Corpus) -> Graph:
        """Return the graph over the corpus' passages; ``facts["threshold"]`` is the τ that was used."""
        n = len(corpus.passages)
        texts = [p.match_text for p in corpus.passages]
        vectors = unit_rows(self.encoder.encode(texts, kind="passage")) if n else np.zeros((0, 1), np.float32)
        threshold, rows, columns = self._pairs(vectors)
        weights = exact_cosine(vectors, rows, vectors, columns) if self.weighted else np.ones(len(rows))
        both = np.concatenate([weights, weights]).astype(np.float32)
        matrix = to_csr(np.concatenate([rows, columns]), np.concatenate([columns, rows]), both, (n, n))
        indptr, indices = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)
        facts = {
            "threshold": threshold,
            "threshold_rule": self.threshold if isinstance(self.threshold, str) else "fixed",
            "weighted": self.weighted,
            **health(indptr, indices),
        }
        return Graph(corpus.id, indptr, indices, matrix.data, directed=False, facts=facts)

    def _pairs(self, vectors: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Return τ and the pairs above it."""
        if isinstance(self.threshold, float):
            threshold = max(self.threshold, 0.0) if self.weighted else self.threshold
            return threshold, *pairs_above(vectors, threshold, self.tile)
        mean_degree = float(self.threshold.removeprefix("mean_degree:"))
        threshold, rows, columns = mean_degree_pairs(vectors, mean_degree, self.tile)
        if self.weighted and threshold < 0:
            return 0.0, *pairs_above(vectors, 0.0, self.tile)
        return threshold, rows, columns


def _checked(threshold: Any) -> float | str:
    allowed = "allowed: a number above -1 and below 1, or mean_degree:X such as mean_degree:8"
    if isinstance(threshold, str) and _RULE.fullmatch(threshold):
        return threshold
    if isinstance(threshold, bool) or not isinstance(threshold, (int, float)) or not -1 < threshold < 1:
        raise InputError(f"graph.threshold={threshold}: {allowed}")
    return float(threshold)
