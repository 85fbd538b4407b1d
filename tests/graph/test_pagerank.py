"""Personalised PageRank against hand values, a dense solve and networkx."""

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from graphcontext.data.records import Graph
from graphcontext.errors import InputError
from graphcontext.graph.pagerank import PowerIteration, pagerank, pagerank_blocks, personalised_pagerank

EXACT = PowerIteration(max_iter=500, tol=1e-12)


def csr(dense):
    matrix = csr_array(np.asarray(dense, dtype=float))
    return matrix.indptr, matrix.indices, matrix.data


def graph_of(dense):
    indptr, indices, weights = csr(dense)
    return Graph("c", indptr.astype(np.int64), indices.astype(np.int32), weights.astype(np.float32))


def dense_solve(dense, s, damping=0.85):
    """(1 − d)(I − d Pᵀ)⁻¹ s with each dangling row of P set to s."""
    dense, s = np.asarray(dense, float), np.asarray(s, float) / np.sum(s)
    outflow = dense.sum(axis=1, keepdims=True)
    p = np.where(outflow > 0, dense / np.where(outflow > 0, outflow, 1), s)
    return (1 - damping) * np.linalg.solve(np.eye(len(s)) - damping * p.T, s)


def random_graph(n, seed, density=0.25):
    """An undirected weighted graph with isolated nodes, and a query's edge weights (0 = no edge)."""
    rng = np.random.default_rng(seed)
    dense = np.triu((rng.random((n, n)) < density) * rng.integers(1, 8, (n, n)) / 4, 1)
    dense[:, rng.random(n) < 0.2] = 0
    return dense + dense.T, (rng.random(n) < 0.4) * rng.integers(1, 8, n) / 4


def with_query(dense, w):
    """The graph with the query as its last node."""
    n = len(w)
    whole = np.zeros((n + 1, n + 1))
    whole[:n, :n], whole[n, :n], whole[:n, n] = dense, w, w
    return whole


def test_t27_mass_on_a_dangling_node_returns_to_the_seed():
    # x1 = .15 + .85 x2, x2 = .85 x1: x1 = 1/1.85 = .5405, x2 = .4595.
    x = pagerank(*csr([[0, 1], [0, 0]]), {0: 1.0}, EXACT)
    np.testing.assert_allclose(x, [1 / 1.85, 0.85 / 1.85], atol=1e-10)
    np.testing.assert_allclose(x, [0.5405, 0.4595], atol=5e-5)


def test_t27_a_path_with_an_isolated_node():
    dense = [[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]]
    for seeds in ([1, 0, 0, 0], [0, 0, 0, 1], [1, 2, 0, 1]):
        x = pagerank(*csr(dense), np.array(seeds), EXACT)
        np.testing.assert_allclose(x, dense_solve(dense, seeds), atol=1e-8)
        assert x.sum() == pytest.approx(1)


def test_t27_an_edge_of_weight_zero_is_no_edge():
    stored = (np.array([0, 2, 3, 3]), np.array([1, 2, 0]), np.array([1.0, 0.0, 1.0]))
    np.testing.assert_array_equal(
        pagerank(*stored, {0: 1.0}), pagerank(*csr([[0, 1, 0], [1, 0, 0], [0, 0, 0]]), {0: 1.0})
    )


@settings(max_examples=60, deadline=None)
@given(n=st.integers(1, 15), seed=st.integers(0, 10_000), damping=st.sampled_from([0.0, 0.5, 0.85]))
def test_t27_equals_a_dense_solve_on_directed_graphs(n, seed, damping):
    rng = np.random.default_rng(seed)
    dense = (rng.random((n, n)) < 0.3) * rng.random((n, n))
    s = rng.random(n)
    x = pagerank(*csr(dense), s, PowerIteration(damping, 500, 1e-12))
    np.testing.assert_allclose(x, dense_solve(dense, s, damping), atol=1e-8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ([0, 1, 1], [1], [1.0], {"not in graph": 1.0}),
            "seed 'not in graph' is not in the graph of 2 nodes",
        ),
        (([0, 1, 1], [1], [1.0], {7: 1.0}), "seed 7 is not in the graph"),
        (([0, 1, 1], [1], [1.0], {}), "no seed"),
        (([0, 1, 1], [1], [1.0], []), "no seed"),
        (([0, 1, 1], [1], [1.0], [0.0, 0.0]), "no seed"),
        (([0, 1, 1], [1], [1.0], [np.nan, 1.0]), "seed weight"),
        (([0, 1, 1], [1], [np.nan], {0: 1.0}), "edge 0 has weight nan"),
        (([0, 1, 1], [1], [-1.0], {0: 1.0}), "edge 0 has weight -1"),
        (([0, 1, 1], [2], [1.0], {0: 1.0}), "leads to node 2"),
        (([0], [], [], {0: 1.0}), "no node"),
    ],
)
def test_t28_bad_input_is_named(arguments, message):
    indptr, indices, weights, seeds = arguments
    arrays = np.array(indptr), np.array(indices, dtype=int), np.array(weights)
    with pytest.raises(InputError, match=message):
        pagerank(*arrays, seeds if isinstance(seeds, dict) else np.array(seeds))


@settings(max_examples=60, deadline=None)
@given(n=st.integers(1, 20), seed=st.integers(0, 10_000))
def test_a_virtual_query_equals_the_query_as_a_node(n, seed):
    dense, w = random_graph(n, seed)
    x = personalised_pagerank(graph_of(dense), csr_array(w[None]), max_iter=500, tol=1e-12)[0]
    expected = dense_solve(with_query(dense, w), [0] * n + [1])[:-1] if w.any() else np.zeros(n)
    np.testing.assert_allclose(x, expected, atol=1e-8)


@settings(max_examples=60, deadline=None)
@given(n=st.integers(1, 20), seed=st.integers(0, 10_000))
def test_networkx_convergence_equals_networkx(n, seed):
    dense, w = random_graph(n, seed)
    if not w.any():
        w[0] = 1
    whole = networkx.from_numpy_array(with_query(dense, w))
    expected = networkx.pagerank(whole, alpha=0.85, personalization={n: 1}, max_iter=100, tol=1e-6)
    x = personalised_pagerank(graph_of(dense), csr_array(w[None]), convergence="networkx")[0]
    np.testing.assert_allclose(x, [expected[i] for i in range(n)], atol=1e-10)


def test_the_default_is_within_tol_of_the_solution():
    dense, w = random_graph(60, seed=3)
    solution = dense_solve(with_query(dense, w), [0] * 60 + [1])[:-1]
    x = personalised_pagerank(graph_of(dense), csr_array(w[None]))[0]
    assert np.abs(x - solution).sum() < 1e-6
    loose = personalised_pagerank(graph_of(dense), csr_array(w[None]), convergence="networkx")[0]
    assert np.abs(loose - solution).sum() > 1e-6  # networkx stops at N·tol


@pytest.mark.parametrize("convergence", ["true", "networkx"])
def test_a_query_does_not_depend_on_the_others(convergence):
    dense, _ = random_graph(50, seed=1)
    edges = csr_array(np.stack([random_graph(50, seed)[1] * (seed % 7 != 0) for seed in range(70)]))
    together = personalised_pagerank(graph_of(dense), edges, convergence=convergence)
    alone = [personalised_pagerank(graph_of(dense), edges[[q]], convergence=convergence)[0] for q in range(70)]
    np.testing.assert_array_equal(together, np.stack(alone))
    assert not together[0].any()  # no edge: no mass on any passage


def test_stopping_at_max_iter_is_told():
    dense, w = random_graph(20, seed=2)
    block = next(pagerank_blocks(graph_of(dense), csr_array(w[None]), PowerIteration(max_iter=2)))
    assert block.has_converged.tolist() == [False]
    assert np.isfinite(block.scores).all() and block.scores.any()


def test_query_edges_are_checked():
    dense, _ = random_graph(5, seed=2)
    with pytest.raises(InputError, match="query edges reach 4 nodes, the graph has 5"):
        personalised_pagerank(graph_of(dense), csr_array((1, 4)))
    with pytest.raises(InputError, match="weight -1"):
        personalised_pagerank(graph_of(dense), csr_array([[-1.0, 0, 0, 0, 0]]))
    assert personalised_pagerank(graph_of(dense), csr_array((0, 5))).shape == (0, 5)


@pytest.mark.parametrize("wrong", [{"damping": 1.0}, {"max_iter": 0}, {"tol": 0}, {"convergence": "tru"}])
def test_values_out_of_range_are_refused(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        PowerIteration(**wrong)
