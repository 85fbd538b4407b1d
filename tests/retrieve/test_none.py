"""No retrieval."""

from graphcontext.data.records import Question
from graphcontext.retrieve.none import NoRetrieval


def test_every_question_gets_an_empty_ranking_that_is_ok():
    rankings = NoRetrieval().retrieve([Question("a", "?", "c"), Question("b", "?", "c")], {}, {})
    assert [(r.id, r.passages, r.status) for r in rankings] == [("a", (), "ok"), ("b", (), "ok")]
