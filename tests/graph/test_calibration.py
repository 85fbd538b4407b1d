"""The threshold that gives a pool's graph a mean degree."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphcontext.graph import calibration
from graphcontext.graph.calibration import largest_pairs, mean_degree_pairs, mean_degree_threshold
from graphcontext.graph.cosine import exact_cosine
from graphcontext.graph.pairs import pairs_above


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
        threshold, rows, columns = largest_pairs(vectors, k, tile)
        assert threshold == expected[k - 1]
        assert sorted(exact_cosine(vectors, rows, vectors, columns)) == sorted(expected[expected > threshold])


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


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(2, 40),
    copies=st.integers(0, 30),
    share=st.floats(0, 1),
    seed=st.integers(0, 99),
    spare=st.integers(0, 50),
)
def test_largest_pairs_equal_a_full_sort_whatever_is_dropped_on_the_way(n, copies, share, seed, spare):
    vectors = np.concatenate([unit_vectors(n, 3, seed), np.repeat(unit_vectors(1, 3, seed), copies, axis=0)])
    expected = all_similarities(vectors)
    k = 1 + int(share * (len(expected) - 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calibration, "_SPARE", spare - 4 * k)
        patch.setattr(calibration, "_SAMPLE", 5)
        threshold, rows, _ = largest_pairs(vectors, k, (4, 8))
    assert threshold == expected[k - 1]
    assert len(rows) == (expected > threshold).sum()


def test_a_guess_that_is_too_high_is_lowered(monkeypatch):
    vectors = unit_vectors(60, 8, seed=4)
    guesses = iter([0.99, 0.98, -1.5])
    monkeypatch.setattr(calibration, "_likely_floor", lambda vectors, n_pairs: next(guesses))
    assert largest_pairs(vectors, 100)[0] == all_similarities(vectors)[99]


def test_the_pairs_are_those_above_the_threshold():
    vectors = unit_vectors(80, 6, seed=5)
    threshold, rows, columns = mean_degree_pairs(vectors, 5)
    again = pairs_above(vectors, threshold)
    assert sorted(zip(rows, columns, strict=True)) == sorted(zip(*again, strict=True))
