"""The health report."""

import numpy as np
from scipy.sparse import csr_array

from graphcontext.graph.health import health


def test_two_components_and_an_isolated_node():
    # 0 — 1 — 2, 3 — 4, 5 alone: 3 edges among 6 nodes, 15 possible.
    dense = np.zeros((6, 6))
    for i, j in [(0, 1), (1, 2), (3, 4)]:
        dense[i, j] = dense[j, i] = 1
    matrix = csr_array(dense)
    report = health(matrix.indptr, matrix.indices)
    assert report == {
        "n_nodes": 6,
        "n_edges": 3,
        "mean_degree": 1.0,
        "density": 3 / 15,
        "isolated": 1,
        "components": 3,
        "largest_component_share": 0.5,
    }


def test_directed_edges_count_once_and_touch_both_ends():
    report = health(np.array([0, 1, 1]), np.array([1]), directed=True)
    assert (report["n_edges"], report["isolated"], report["components"]) == (1, 0, 1)


def test_t30_graphs_without_edges_or_nodes():
    assert health(np.zeros(4, int), np.zeros(0, int))["components"] == 3
    assert health(np.zeros(2, int), np.zeros(0, int))["density"] == 0.0
    assert health(np.zeros(1, int), np.zeros(0, int))["largest_component_share"] == 0.0
