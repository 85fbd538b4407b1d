"""What a graph looks like before anything is retrieved from it: degree, density, components."""

from __future__ import annotations

from typing import Any

import numpy as np


def health(indptr: np.ndarray, indices: np.ndarray, directed: bool = False) -> dict[str, Any]:
    """Return the health report of a graph in CSR form, JSON types only.

    ``mean_degree`` is 2E/n (E/n out-edges where directed), ``density`` E over the number of possible edges
    (of the simple graph), ``isolated`` counts nodes without any edge, components are weakly connected.

    Args:
        indptr: row pointers (n_nodes + 1,).
        indices: neighbours (n_edge_slots,); an undirected edge fills two slots.
        directed: whether an edge fills one slot.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    n, slots = len(indptr) - 1, len(indices)
    if n == 0:
        return {
            **{"n_nodes": 0, "n_edges": 0, "mean_degree": 0.0, "density": 0.0},
            **{"isolated": 0, "components": 0, "largest_component_share": 0.0},
        }
    matrix = csr_array((np.ones(slots, dtype=np.int8), indices, indptr), shape=(n, n))
    components, labels = connected_components(matrix, directed=directed, connection="weak")
    touched = np.diff(indptr) > 0
    touched[indices] = True
    return {
        "n_nodes": n,
        "n_edges": slots if directed else slots // 2,
        "mean_degree": slots / n,
        "density": slots / (n * (n - 1)) if n > 1 else 0.0,
        "isolated": int(n - touched.sum()),
        "components": int(components),
        "largest_component_share": float(np.bincount(labels).max() / n),
    }
