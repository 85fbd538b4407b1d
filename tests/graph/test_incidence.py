"""Passages that hold a common key."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from graphcontext.graph.incidence import graph_of_shared
from tests.graph.passages import check_simple, double_loop, edges


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 7), st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9)), max_size=30))
def test_edges_equal_the_double_loop(n, held):
    held = [(row, key) for row, key in held if row < n]
    rows, keys = np.array(held, np.int64).reshape(-1, 2).T
    built = graph_of_shared("c", n, rows, keys, {"which": "x"})
    check_simple(built, n)
    assert edges(built) == double_loop([{key for row, key in held if row == i} for i in range(n)])
    assert (built.corpus_id, built.facts["which"]) == ("c", "x")


def test_more_than_127_shared_keys_are_one_edge():
    rows = np.repeat([0, 1], 300)
    assert edges(graph_of_shared("c", 2, rows, np.tile(np.arange(300), 2), {})) == [(0, 1), (1, 0)]
