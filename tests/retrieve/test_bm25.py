"""BM25 by hand, and against bm25s."""

import math

import numpy as np
import pytest

from graphcontext.data.records import Corpus, Passage, Question
from graphcontext.errors import InputError
from graphcontext.retrieve.bm25 import BM25

TEXTS = [
    "disk full disk",
    "disk quota",
    "network card driver",
    "driver for the wireless network network card",
]


def rank(retriever, texts, *asked):
    pool = Corpus.of([Passage(f"p{n}", "", t, t) for n, t in enumerate(texts)])
    questions = [Question(str(n), text, pool.id) for n, text in enumerate(asked)]
    return retriever.retrieve(questions, {pool.id: pool}, {})


def scores(ranking):
    return {p.id: p.score for p in ranking.passages}


def test_lucene_by_hand():
    # n 4, df(full) 1: idf = ln(1 + 3.5/1.5). Lengths 3, 2, 3, 7, mean 3.75: tf/(tf + 1.5 (.25 + .75·3/3.75)).
    expected = math.log(1 + 3.5 / 1.5) * 1 / (1 + 1.5 * (0.25 + 0.75 * 3 / 3.75))
    assert scores(rank(BM25(2), TEXTS, "full")[0]) == pytest.approx({"p0": expected})


def test_okapi_by_hand_with_repeated_words_and_the_idf_floor():
    # "the" is in all 3 passages: idf ln(.5/3.5) < 0, replaced by ¼ of the mean over {the, cat, dog, cow};
    # the others are in one passage each: ln(2.5/1.5). k1 = 1, b = 0: idf · 2 tf/(tf + 1) = idf at tf 1.
    texts = ["the cat", "the dog", "the cow"]
    rare, common = math.log(2.5 / 1.5), math.log(0.5 / 3.5)
    floor = 0.25 * (3 * rare + common) / 4
    found = scores(rank(BM25(3, variant="okapi", k1=1, b=0), texts, "cat cat the")[0])
    positive = {k: v for k, v in {"p0": 2 * rare + floor, "p1": floor, "p2": floor}.items() if v > 0}
    assert found == pytest.approx(positive)


def test_lucene_equals_bm25s():
    bm25s = pytest.importorskip("bm25s")
    peer = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
    peer.index([t.split() for t in TEXTS], show_progress=False)
    for asked in ("disk", "driver network", "the wireless quota"):
        expected = peer.get_scores(asked.split())
        found = scores(rank(BM25(4), TEXTS, asked)[0])
        assert found == pytest.approx({f"p{i}": s for i, s in enumerate(expected) if s > 0}, abs=1e-6)


def test_tokens_split_at_blanks_keep_case_and_signs():
    texts = ["C++ on Linux", "c# on linux"]
    by_blank = rank(BM25(2, tokens="blanks"), texts, "C++", "linux", "C#")
    assert [[p.id for p in r.passages] for r in by_blank] == [["p0"], ["p1"], []]
    assert by_blank[2].status == "empty"
    by_word = rank(BM25(2, tokens="words"), texts, "LINUX")[0]
    assert [p.id for p in by_word.passages] == ["p0", "p1"]


def test_words_that_weigh_nothing_are_told_from_words_that_are_not_there():
    # Okapi: idf = ln((2 − 1 + ½)/(1 + ½)) = 0 of a word in one of two passages.
    some, none = rank(BM25(2, variant="okapi"), ["disk", "card"], "disk", "driver")
    assert (some.status, some.reason) == ("empty", "no word of the question has a positive weight in the corpus")
    assert (none.status, none.reason) == ("empty", "no word of the question occurs in the corpus")


def test_pools_without_words():
    assert rank(BM25(2), [], "disk")[0].status == "empty"
    assert rank(BM25(2), ["", "?"], "disk")[0].status == "empty"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"variant": "lucen"}, "did you mean lucene"),
        ({"tokens": "word"}, "did you mean words"),
        ({"b": 1.1}, r"retriever.b=1.1: allowed is 0 to 1"),
        ({"k1": -1}, "k1=-1"),
        ({"top_k": 0}, "top_k=0"),
        ({"batch_size": 0}, "batch_size=0"),
    ],
)
def test_values_out_of_range_are_refused(wrong, message):
    with pytest.raises(InputError, match=message):
        BM25(**{"top_k": 2, **wrong})


def test_scores_are_finite():
    for variant in ("lucene", "okapi"):
        found = rank(BM25(4, variant=variant, k1=0, b=1), TEXTS, "disk network")[0]
        assert np.isfinite([p.score for p in found.passages]).all()
