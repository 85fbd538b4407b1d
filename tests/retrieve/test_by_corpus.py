"""Grouping by corpus and exact top k."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcontext.data.records import Corpus, Question
from graphcontext.errors import InputError
from graphcontext.retrieve.by_corpus import best, by_corpus, checked_count


def test_questions_are_grouped_with_their_positions():
    questions = [Question(i, i, c) for i, c in [("1", "x"), ("2", "y"), ("3", "x")]]
    corpora = {"x": Corpus("x", ()), "y": Corpus("y", ())}
    groups = [(c.id, at, [q.id for q in asked]) for c, at, asked in by_corpus(questions, corpora)]
    assert groups == [("x", [0, 2], ["1", "3"]), ("y", [1], ["2"])]


def test_a_missing_corpus_is_named():
    with pytest.raises(InputError, match="question 1: there is no corpus z"):
        list(by_corpus([Question("1", "?", "z")], {}))


@given(st.lists(st.integers(-3, 3), max_size=30), st.integers(1, 10))
def test_best_is_a_stable_sort_of_the_positive_scores(values, k):
    scores = np.array(values, dtype=float)
    expected = sorted((i for i, v in enumerate(values) if v > 0), key=lambda i: (-values[i], i))[:k]
    indices, found = best(scores, k)
    assert indices.tolist() == expected
    assert found.tolist() == [values[i] for i in expected]


def test_best_maps_sparse_cells_to_passages():
    indices, _ = best(np.array([1.0, 2.0, 2.0]), 2, np.array([4, 7, 9]))
    assert indices.tolist() == [7, 9]


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "2", None])
def test_counts_are_checked(value):
    with pytest.raises(InputError, match=r"retriever.top_k="):
        checked_count("top_k", value)
