"""Conjugate gradients against a dense solve and against power iteration, on graphs small enough for both."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from graphcontext.data.records import Graph
from graphcontext.graph import conjugate_gradients, pagerank
from graphcontext.graph.conjugate_gradients import solve, undirected
from graphcontext.graph.pagerank import PowerIteration, pagerank_blocks, personalised_pagerank


def graph_of(dense, directed=False):
    matrix = csr_array(np.asarray(dense, dtype=float))
    indptr, indices = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)
    return Graph("c", indptr, indices, matrix.data.astype(np.float32), directed)


def random_graph(n, rng, density=0.2):
    """Undirected, weighted, with isolated nodes and self-loops."""
    weights = rng.uniform(0.25, 2, (n, n)).astype(np.float32)  # whose sums float32 cannot hold
    dense = np.triu((rng.random((n, n)) < density) * weights.astype(np.float64))
    dense[:, rng.random(n) < 0.2] = 0
    dense[rng.random(n) < 0.2] = 0
    return np.maximum(dense, dense.T)


def random_queries(m, n, rng, density=0.3):
    return (rng.random((m, n)) < density) * rng.integers(1, 8, (m, n)) / 4


def dense_solve(dense, w, damping):
    """(1 − d)(I − d Pᵀ)⁻¹ e_q without q's own entry; no node that q reaches is dangling."""
    n = len(w)
    if not w.any():
        return np.zeros(n)
    whole = np.zeros((n + 1, n + 1))
    whole[:n, :n], whole[n, :n], whole[:n, n] = dense, w, w
    outflow = whole.sum(axis=1, keepdims=True)
    p = whole / np.where(outflow > 0, outflow, 1)
    start = np.eye(n + 1)[n]
    return (1 - damping) * np.linalg.solve(np.eye(n + 1) - damping * p.T, start)[:n]


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 40),
    m=st.integers(1, 12),
    seed=st.integers(0, 10_000),
    damping=st.sampled_from([0.0, 0.3, 0.85, 0.99]),
    tol=st.sampled_from([1e-3, 1e-6, 1e-11]),
)
def test_within_tol_of_a_dense_solve(n, m, seed, damping, tol):
    rng = np.random.default_rng(seed)
    dense, queries = random_graph(n, rng), random_queries(m, n, rng)
    scores, is_within = solve(undirected(graph_of(dense)), csr_array(queries).tocoo(), damping, 5000, tol)
    expected = np.stack([dense_solve(dense, w, damping) for w in queries])
    assert is_within.all()
    assert (np.abs(scores - expected).sum(axis=1) < tol).all()
    assert (scores >= 0).all() and not scores[expected == 0].any()


def test_by_hand_on_a_path():
    # q–1–2: b = .85 (a + c), c = .425 b, a + b + c = 1, as a, b, c are the scores of q, 1, 2.
    b_per_a = 0.85 / (1 - 0.85 * 0.425)
    a = 1 / (1 + 1.425 * b_per_a)
    scores, _ = solve(undirected(graph_of([[0, 1], [1, 0]])), csr_array([[1.0, 0.0]]).tocoo(), 0.85, 100, 1e-10)
    np.testing.assert_allclose(scores, [[a * b_per_a, 0.425 * a * b_per_a]], atol=1e-10)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), size=st.integers(1, 30))
def test_a_query_does_not_depend_on_the_others_in_one_bit(seed, size):
    rng = np.random.default_rng(seed)
    dense = np.kron(np.eye(3), np.ones((20, 20))) * random_graph(60, rng, 0.3)  # three components and more
    queries = csr_array(random_queries(30, 60, rng, 0.03))
    matrix = undirected(graph_of(dense))
    together, _ = solve(matrix, queries.tocoo(), 0.85, 100, 1e-6)
    parts = [solve(matrix, queries[at : at + size].tocoo(), 0.85, 100, 1e-6)[0] for at in range(0, 30, size)]
    np.testing.assert_array_equal(together, np.concatenate(parts))


def test_a_graph_that_is_not_symmetric_is_left_to_power_iteration(monkeypatch):
    monkeypatch.setattr(pagerank, "LARGE", 0)
    dense = np.array([[0.0, 1, 0], [1, 0, 1], [1, 0, 0]])
    assert undirected(graph_of(dense)) is None
    queries = csr_array([[1.0, 0, 0]])
    as_told = personalised_pagerank(graph_of(dense, directed=True), queries)
    np.testing.assert_array_equal(personalised_pagerank(graph_of(dense), queries), as_told)


def test_stored_zeros_and_repeated_edges_make_no_difference():
    indices, weights = np.array([1, 1, 2, 0], np.int32), np.array([0.5, 0.5, 0, 1], np.float32)
    stored = Graph("c", np.array([0, 3, 4, 4]), indices, weights)
    queries = csr_array([[1.0, 0, 0]]).tocoo()
    plain = solve(undirected(graph_of([[0, 1, 0], [1, 0, 0], [0, 0, 0]])), queries, 0.85, 100, 1e-8)[0]
    np.testing.assert_array_equal(solve(undirected(stored), queries, 0.85, 100, 1e-8)[0], plain)


@pytest.mark.parametrize("n_queries", [1, 64, 70])
def test_large_graphs_take_this_way_and_agree_with_power_iteration(monkeypatch, n_queries):
    rng = np.random.default_rng(5)
    graph, queries = graph_of(random_graph(200, rng, 0.03)), csr_array(random_queries(n_queries, 200, rng, 0.02))
    power = personalised_pagerank(graph, queries, tol=1e-9, max_iter=300)
    monkeypatch.setattr(pagerank, "LARGE", len(graph.indices))
    called = []
    monkeypatch.setattr(conjugate_gradients, "solve", lambda *a: called.append(1) or solve(*a))
    gradients = personalised_pagerank(graph, queries)
    assert len(called) == -(-n_queries // conjugate_gradients.LANES)
    assert np.abs(gradients - power).sum(axis=1).max() < 1e-6 + 1e-9
    personalised_pagerank(graph, queries, convergence="networkx")
    assert len(called) == -(-n_queries // conjugate_gradients.LANES)


@pytest.mark.parametrize("max_iter", [1, 2, 5])
def test_stopping_at_max_iter_is_told(monkeypatch, max_iter):
    monkeypatch.setattr(pagerank, "LARGE", 0)
    graph = graph_of(random_graph(50, np.random.default_rng(2)))
    queries = csr_array(np.stack([np.ones(50), np.zeros(50)]))
    [block] = pagerank_blocks(graph, queries, PowerIteration(max_iter=max_iter))
    assert block.has_converged.tolist() == [False, True]
    assert np.isfinite(block.scores).all() and block.scores[0].any() and not block.scores[1].any()
