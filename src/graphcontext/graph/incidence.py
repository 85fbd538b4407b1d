"""The graph in which two passages are joined that hold a common key: a keyword, an entity, a title."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphcontext.data.records import Graph
from graphcontext.graph.health import health


def graph_of_shared(corpus_id: str, n: int, rows: np.ndarray, keys: np.ndarray, facts: dict[str, Any]) -> Graph:
    r"""Return the undirected graph with an edge where two passages hold a common key.

    .. math:: A = [B B^\top > 0] - I, \quad B_{ik} = 1 \text{ where passage } i \text{ holds key } k

    One sparse product; no self-loop, each edge once, weight 1.

    Args:
        corpus_id: of the corpus whose passages are the nodes.
        n: passages.
        rows: passage of each (passage, key) pair; a pair may come several times.
        keys: key of each pair, ≥ 0.
        facts: what the builder reports; the health of the graph is added.
    """
    from scipy.sparse import csr_array

    shared = np.bincount(keys) > 1  # a key of one passage joins nothing
    kept = shared[keys]
    rows, keys = rows[kept], (np.cumsum(shared) - 1)[keys[kept]]
    incidence = csr_array((np.ones(len(rows), bool), (rows, keys)), shape=(n, max(1, int(shared.sum()))))
    product = incidence @ incidence.T
    product.sort_indices()
    at = np.repeat(np.arange(n), np.diff(product.indptr))
    off = at != product.indices
    indptr = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(at[off], minlength=n), out=indptr[1:])
    indices = product.indices[off].astype(np.int32)
    facts = {**facts, **health(indptr, indices)}
    return Graph(corpus_id, indptr, indices, np.ones(len(indices), np.float32), directed=False, facts=facts)
