"""Inverted lists against the sparse product and a full sort."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from graphcontext.data.records import Corpus, Passage, Question
from graphcontext.retrieve import lexical
from graphcontext.retrieve.bm25 import BM25
from graphcontext.retrieve.lexical import top
from graphcontext.retrieve.tfidf import TFIDF


def both_ways(queries, by_term, k):
    product = list(top(queries, by_term, k, batch_size=3))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lexical, "LARGE", 0)
        lists = list(top(queries, by_term, k))
    return product, lists


@settings(max_examples=80, deadline=None)
@given(
    n_passages=st.integers(0, 40),
    n_terms=st.integers(1, 12),
    n_queries=st.integers(1, 5),
    k=st.integers(1, 50),
    levels=st.integers(1, 4),  # few weights: many ties
    seed=st.integers(0, 10_000),
)
def test_the_best_are_those_of_a_full_sort_in_every_bit(n_passages, n_terms, n_queries, k, levels, seed):
    rng = np.random.default_rng(seed)
    weights = (rng.random((n_terms, n_passages)) < 0.4) * rng.integers(-1, levels + 1, (n_terms, n_passages)) / 3
    queries = csr_array((rng.random((n_queries, n_terms)) < 0.5) * rng.integers(1, 4, (n_queries, n_terms)) / 7)
    scores = (queries @ csr_array(weights)).toarray()
    for found in both_ways(queries, csr_array(weights), k):
        assert len(found) == n_queries
        for row, (indices, values) in zip(scores, found, strict=True):
            expected = [i for i in np.argsort(-row, kind="stable") if row[i] > 0][:k]
            assert indices.tolist() == expected
            np.testing.assert_array_equal(values, row[expected])


@pytest.mark.parametrize("retriever", [TFIDF(4), BM25(4), BM25(4, variant="okapi", tokens="blanks")])
def test_a_large_corpus_is_ranked_alike(monkeypatch, retriever):
    rng = np.random.default_rng(0)
    texts = [" ".join(f"word{w}" for w in rng.zipf(1.3, 12) if w < 60) for _ in range(200)]
    pool = Corpus.of([Passage(f"p{n}", "", t, t) for n, t in enumerate([*texts, texts[0], texts[0]])])
    questions = [Question(f"q{n}", t, pool.id) for n, t in enumerate([*texts[:20], "nothing", ""])]
    small = retriever.retrieve(questions, {pool.id: pool}, {})
    monkeypatch.setattr(lexical, "LARGE", 0)
    assert retriever.retrieve(questions, {pool.id: pool}, {}) == small
    assert [r.status for r in small[-2:]] == ["empty", "empty"]


def test_the_index_is_made_once_for_all_chunks_and_anew_for_another_corpus(monkeypatch):
    made = []
    count = lexical.count
    monkeypatch.setattr(lexical, "count", lambda *a, **k: (made.append(k["grow"]), count(*a, **k))[1])
    pools = [Corpus.of([Passage("p", "", text, "")]) for text in ("disk full", "disk quota")]
    corpora = {pool.id: pool for pool in pools}
    retriever = TFIDF(1)
    for pool in (pools[0], pools[0], pools[1]):
        [ranking] = retriever.retrieve([Question("q", "disk", pool.id)], corpora, {})
        assert len(ranking.passages) == 1
    assert made == [True, False, False, True, False]
