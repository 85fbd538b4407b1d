"""The nearest-neighbour graphs of KGP."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphcontext.errors import InputError
from graphcontext.graph import knn
from graphcontext.graph.cosine import unit_rows
from graphcontext.graph.knn import KNNGraph, nearest_others
from tests.graph.passages import Nouns, check_simple, corpus, edges


class Points:
    """An encoder whose text is a vector: "3 -1"."""

    def __init__(self):
        self.pooled = []

    def pool(self, texts, kind="passage"):
        self.pooled.append(texts)

    def encode(self, texts, kind="passage"):
        return np.array([[float(x) for x in text.split()] for text in texts], np.float32)


points = st.lists(st.tuples(*[st.integers(-3, 3)] * 3), max_size=9)


def nearest(vectors, k):
    """The double loop: for each row the k others of highest product, ties by index."""
    wide = vectors.astype(np.float64)
    n = range(len(wide))
    ranked = [sorted((j for j in n if j != i), key=lambda j: (-(wide[i] * wide[j]).sum(), j))[:k] for i in n]
    return [(i, j) for i in n for j in ranked[i]]


@settings(max_examples=60, deadline=None)
@given(points, st.integers(1, 12), st.sampled_from(["cosine", "dot"]))
def test_edges_equal_the_double_loop(vectors, k, similarity):
    texts = [" ".join(map(str, v)) for v in vectors]
    built = KNNGraph(Points(), None, k, similarity, "raw").build(corpus(*[("", t) for t in texts]))
    check_simple(built, len(texts))
    assert built.directed
    assert np.diff(built.indptr).tolist() == [min(k, max(0, len(texts) - 1))] * len(texts)
    exact = np.array(vectors, np.float32).reshape(-1, 3)
    if similarity == "cosine" and len(exact):
        exact = unit_rows(exact)
    assert edges(built) == sorted(nearest(exact, k))


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 40), st.integers(1, 45), st.integers(1, 300))
def test_the_tile_changes_nothing(n, k, held):
    vectors = np.random.default_rng(n).integers(-2, 3, (n, 4)).astype(np.float32)
    whole = nearest_others(vectors, k)
    products, knn._PRODUCTS = knn._PRODUCTS, held
    try:
        tiled = nearest_others(vectors, k)
    finally:
        knn._PRODUCTS = products
    np.testing.assert_array_equal(tiled, whole)
    assert list(zip(*map(np.ndarray.tolist, whole), strict=True)) == sorted(nearest(vectors, k))


def test_golden_three_passages_by_hand():
    # Dot products: 0·1 = 2, 0·2 = 4, 1·2 = 2; passage 2 is more like 0 (4) than 0 is itself (1).
    # 0 → 2; 1 → 0 and 2 tie at 2: the lower index; 2 → 0.
    three = corpus(("", "1 0"), ("", "2 -1"), ("", "4 6"))
    assert edges(KNNGraph(Points(), None, 1, "dot", "raw").build(three)) == [(0, 2), (1, 0), (2, 0)]
    # Cosines: 0·1 = .894, 0·2 = .555, 1·2 = 2 / (√5 √52) = .124 → 0 → 1, 1 → 0, 2 → 0.
    built = KNNGraph(Points(), None, 1, "cosine", "raw").build(three)
    assert edges(built) == [(0, 1), (1, 0), (2, 0)]
    assert (built.facts["k"], built.facts["n_edges"], built.facts["density"]) == (1, 3, 0.5)  # 3 of 3 · 2
    json.dumps(built.facts)


def test_equal_passages_are_told_apart_by_index():
    # Four passages alike: each one's nearest is the lowest other index.
    alike = corpus(*[("", "1 2")] * 4)
    assert edges(KNNGraph(Points(), None, 1, text="raw").build(alike)) == [(0, 1), (1, 0), (2, 0), (3, 0)]


def test_k_is_cut_to_the_others():
    for k in (2, 3, 10):
        built = KNNGraph(Points(), None, k, text="raw").build(corpus(("", "1 0"), ("", "0 1"), ("", "1 1")))
        assert edges(built) == [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]


def test_a_passage_without_text_or_nouns_has_no_edge_either_way():
    mixed = corpus(("", "1 0"), ("page", ""), ("", "0 1"), ("", " \n"))
    built = KNNGraph(Points(), None, 10, text="raw").build(mixed)
    assert edges(built) == [(0, 2), (2, 0)]
    assert (built.facts["n_blank"], built.facts["isolated"]) == (2, 2)
    nouns = Nouns(lambda text: "" if text == "1 0" else text)
    assert edges(KNNGraph(Points(), nouns, 10).build(corpus(("", "1 0"), ("", "0 1"), ("", "1 1")))) == [(1, 2), (2, 1)]


@pytest.mark.parametrize("passages", [[], [("", "1 1")], [("", "")], [("", ""), ("", "1 1")]])
def test_t30_fewer_than_two_passages_have_no_edge(passages):
    built = KNNGraph(Points(), None, text="raw").build(corpus(*passages))
    check_simple(built, len(passages))
    assert built.facts["n_edges"] == 0


def test_each_text_is_tagged_and_encoded_once_for_all_corpora():
    nouns, encoder = Nouns(lambda text: text.partition(",")[0]), Points()
    two = {c.id: c for c in (corpus(("", "1 0, a"), ("", "0 1")), corpus(("", "1 0, b"), ("", "2 2")))}
    builder = KNNGraph(encoder, nouns, 1)
    builder.begin(two)
    assert nouns.begun == [sorted(two)]
    assert encoder.pooled == [["0 1", "1 0", "2 2"]]
    assert [edges(builder.build(c)) for c in two.values()] == [[(0, 1), (1, 0)]] * 2


def test_embeddings_that_are_not_finite_are_refused():
    with pytest.raises(InputError, match="not finite"):
        KNNGraph(Points(), None, similarity="dot", text="raw").build(corpus(("", "nan 1"), ("", "1 1")))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [({"k": 0}, "graph.k=0"), ({"similarity": "cos"}, "graph.similarity=cos"), ({"text": "all"}, "graph.text=all")],
)
def test_values_that_are_not_allowed(arguments, said):
    with pytest.raises(InputError, match=said):
        KNNGraph(None, None, **arguments)
