"""Exact cosine decisions: thresholds, query edges, nearest neighbours."""

import numpy as np
import pytest

from graphcontext.errors import InputError
from graphcontext.graph.cosine import exact_cosine, nearest, query_edges, unit_rows
from graphcontext.graph.pairs import pairs_above


def unit_vectors(n, dim=16, seed=0):
    vectors = np.random.default_rng(seed).normal(size=(n, dim))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def test_a_query_equal_to_a_passage_has_that_passages_edges():
    pool = unit_vectors(30, seed=2)
    at = float(exact_cosine(pool, np.array([4]), pool, np.array([9]))[0])  # the pair 4, 9 ties: no edge
    rows, columns = pairs_above(pool, at)
    edges = query_edges(pool[4:5], pool, at, tile=(1, 3))
    of_node = sorted([*columns[rows == 4], *rows[columns == 4], 4])  # and the passage itself, cosine 1
    assert edges.indices.tolist() == of_node


def test_exact_cosine_is_symmetric_and_independent_of_its_batch():
    a, b = unit_vectors(6, 384), unit_vectors(6, 384, seed=5)
    together = exact_cosine(a, np.arange(6), b, np.arange(6))
    alone = [exact_cosine(b, np.array([i]), a, np.array([i]))[0] for i in range(6)]
    np.testing.assert_array_equal(together, alone)


def test_equal_passages_rank_by_index():
    pool = np.repeat(unit_vectors(1, 384), 50, axis=0)
    indices, cosines = nearest(pool[:1], pool, 3)
    assert indices.tolist() == [[0, 1, 2]]
    assert len(set(cosines[0])) == 1


def test_nearest_equals_a_full_sort():
    queries, pool = unit_vectors(5, 24, seed=3), unit_vectors(70, 24, seed=4)
    indices, cosines = nearest(queries, pool, 9)
    exact = queries.astype(np.float64) @ pool.astype(np.float64).T
    np.testing.assert_array_equal(indices, np.argsort(-exact, axis=1, kind="stable")[:, :9])
    np.testing.assert_allclose(cosines, np.sort(exact, axis=1)[:, :-10:-1], atol=1e-12)
    assert nearest(queries, pool[:2], 9)[0].shape == (5, 2)
    assert nearest(queries, pool[:0], 9)[0].shape == (5, 0)


def test_unit_rows_keep_zero_rows_and_refuse_nan():
    rows = unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]]))
    np.testing.assert_allclose(rows, [[0.6, 0.8], [0.0, 0.0]], atol=1e-7)
    with pytest.raises(InputError, match="embedding 1 is not finite"):
        unit_rows(np.array([[1.0, 0.0], [np.nan, 0.0]]))
