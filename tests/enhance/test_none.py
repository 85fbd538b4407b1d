"""No enhancement: passages as they are."""

from __future__ import annotations

import pytest

from graphcontext.data.records import Corpus, Passage, Question, Ranking, Scored
from graphcontext.enhance.none import NoEnhancement
from graphcontext.errors import RunError

CORPUS = Corpus("c", (Passage("p1", "t", "match 1", "shown 1"), Passage("p2", "t", "match 2", "shown 2")))
QUESTION = Question("q", "?", "c")


def enhance(ranking: Ranking):
    (context,) = NoEnhancement().enhance([QUESTION], [ranking], {"c": CORPUS})
    return context


def test_t03_passages_are_shown_in_the_rankings_order_though_their_titles_are_equal():
    context = enhance(Ranking("q", (Scored("p2", 0.9), Scored("p1", 0.8))))
    assert [(u.id, u.text, u.source) for u in context.units] == [
        ("p2", "shown 2", "p2"),
        ("p1", "shown 1", "p1"),
    ]


def test_nothing_retrieved_is_no_fault_and_a_failed_ranking_is():
    assert enhance(Ranking("q", ())).status == "ok"
    failed = enhance(Ranking("q", (), "failed", "NaN"))
    assert (failed.status, failed.reason) == ("failed", "ranking: NaN")


def test_a_passage_that_is_not_in_the_corpus_is_named():
    with pytest.raises(RunError, match="has no passage p9"):
        enhance(Ranking("q", (Scored("p9", 1.0),)))
