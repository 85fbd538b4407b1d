"""The supports as the ranking."""

import pytest

from graphcontext.data.records import Corpus, Passage, Question
from graphcontext.errors import InputError
from graphcontext.retrieve.golden import Golden

POOL = Corpus.of([Passage(i, "", f"text of {i}", "") for i in "abc"])


def rank(*supports):
    return Golden().retrieve([Question("q", "?", POOL.id, supports=supports)], {POOL.id: POOL}, {})[0]


def test_supports_in_their_own_order_with_falling_scores():
    ranking = rank("c", "a")
    assert [(p.id, p.score) for p in ranking.passages] == [("c", 1.0), ("a", 0.5)]
    assert (ranking.status, ranking.reason) == ("ok", None)


def test_a_support_named_twice_is_ranked_once():
    assert [p.id for p in rank("b", "b", "a").passages] == ["b", "a"]


def test_a_question_without_supports_is_empty():
    ranking = rank()
    assert (ranking.passages, ranking.status, ranking.reason) == ((), "empty", "the question has no supports")


def test_a_support_that_the_corpus_lacks_is_named():
    ranking = rank("x", "b")
    assert [(p.id, p.score) for p in ranking.passages] == [("b", 1.0)]
    assert (ranking.status, ranking.reason) == ("ok", "support x is not in the corpus")
    lost = rank("x", "y")
    assert (lost.status, lost.reason) == ("empty", "support x is not in the corpus; support y is not in the corpus")


def test_questions_keep_their_order_and_need_their_corpus():
    one, other = Question("1", "?", POOL.id, supports=("a",)), Question("2", "?", POOL.id)
    assert [r.id for r in Golden().retrieve([one, other], {POOL.id: POOL}, {})] == ["1", "2"]
    with pytest.raises(InputError, match="no corpus"):
        Golden().retrieve([Question("1", "?", "nowhere")], {POOL.id: POOL}, {})
