"""The threshold that gives a pool's graph a mean degree."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphcontext.graph.calibration import kth_largest_similarity, mean_degree_threshold
from graphcontext.graph.cosine import exact_cosine, pairs_above


def unit_vectors(n, dim=16, seed=0):
    vectors = np.random.default_rng(seed).normal(size=(n, dim))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def all_similarities(vectors):
    rows, columns = np.triu_indices(len(vectors), 1)
    return np.sort(exact_cosine(vectors, rows, vectors, columns))[::-1]


@pytest.mark.parametrize("tile", [(1, 1), (7, 9), (64, 64)])
def test_kth_largest_equals_a_full_sort(tile):
    vectors = unit_vectors(25, seed=7)
    expected = all_similarities(vectors)
    for k in (1, 2, 17, 150, 300):
        assert kth_largest_similarity(vectors, k, tile) == expected[k - 1]


def test_duplicates_tie_and_stay_out_together():
    # 6 equal texts: 15 pairs at cosine 1. Mean degree 1 over 8 nodes allows 4 edges; the 5th pair ties.
    vectors = np.concatenate([np.repeat(unit_vectors(1, 384), 6, axis=0), unit_vectors(2, 384, seed=9)])
    threshold = mean_degree_threshold(vectors, 1)
    assert threshold == pytest.approx(1, abs=1e-6)
    assert len(pairs_above(vectors, threshold)[0]) == 0


def test_small_pools():
    assert mean_degree_threshold(unit_vectors(5), 8) == -1.0  # all 10 pairs fit
    assert mean_degree_threshold(unit_vectors(1), 8) == -1.0
    assert mean_degree_threshold(np.zeros((0, 1), np.float32), 8) == -1.0


@settings(max_examples=40, deadline=None)
@given(n=st.integers(2, 30), degree=st.floats(0, 12), seed=st.integers(0, 99), copies=st.integers(0, 5))
def test_the_graph_is_the_largest_within_the_mean_degree(n, degree, seed, copies):
    vectors = np.concatenate([unit_vectors(n, 4, seed), np.repeat(unit_vectors(1, 4, seed), copies, axis=0)])
    threshold = mean_degree_threshold(vectors, degree)
    n_edges = len(pairs_above(vectors, threshold, (4, 8))[0])
    assert 2 * n_edges / len(vectors) <= degree
    if threshold > -1:  # one step lower takes at least one more pair, and too many
        more = len(pairs_above(vectors, np.nextafter(threshold, -2))[0])
        assert 2 * more / len(vectors) > degree
