"""What AnswerBot and TechSumBot share."""

from __future__ import annotations

import math

import numpy as np
import pytest

from graphcontext.data.records import Answer, Context, Passage, Unit
from graphcontext.generate.extractive import Pool, cosines, paragraphs, similarities, thread_answers

POOL = Pool(
    (
        Passage("p1", "", "list ports", "", answers=(Answer("use ss", 3), Answer("use lsof", 9))),
        Passage("p2", "", "list files", "list files\nuse ls"),
        Passage("p3", "", "mount disks", "", answers=(Answer("use mount", 1, True),)),
    )
)


def test_idf_counts_threads_with_their_answers():
    # "list" is in 2 of 3 threads: ln(4/3); "use" in 2 (p2 has no answers): the same; "ss" in 1: ln(4/2)
    assert POOL.idf("list") == pytest.approx(math.log(4 / 3))
    assert POOL.idf("ss") == pytest.approx(math.log(2))
    assert POOL.idf("unheard") == pytest.approx(math.log(4))


def test_similarity_is_the_cosine_of_tf_idf():
    # "list ss" = (ln 4/3, ln 2), "list" = (ln 4/3, 0): cos = ln(4/3) / sqrt(ln(4/3)^2 + ln(2)^2)
    expected = math.log(4 / 3) / math.hypot(math.log(4 / 3), math.log(2))
    relevance, between = similarities("list ss", ["list", "mount", "the"], POOL, None)
    assert relevance == pytest.approx([expected, 0, 0])
    assert between[0, 0] == pytest.approx(1)
    assert between[2].tolist() == [0, 0, 0]  # only a stop word: no vector, no NaN


def test_an_encoder_takes_the_place_of_tf_idf():
    class Encoder:
        def encode(self, texts, kind="passage"):
            return np.array([[1.0, 0.0] if kind == "query" else [3.0, 4.0] for _ in texts])

    relevance, between = similarities("q", ["a", "b"], POOL, Encoder())
    assert relevance == pytest.approx([0.6, 0.6])
    assert between == pytest.approx(np.ones((2, 2)))


def test_the_threads_of_a_context_give_their_answers_best_votes_first():
    units = (Unit("1", "", "p1"), Unit("2", "ss lists ports.", "spacy"), Unit("3", "", "p2"))
    texts = [a.text for a in thread_answers(Context("q", (*units, units[0])), POOL)]
    assert texts == ["use lsof", "use ss", "list files\nuse ls"]


def test_paragraphs_are_what_empty_lines_separate():
    assert paragraphs("a\nb\n\n  \n\nc\n") == ["a\nb", "c"]
    assert paragraphs("") == []


def test_cosines_of_zero_rows_are_zero():
    assert cosines(np.array([[0.0, 0.0], [1.0, 0.0]])).tolist() == [[0, 0], [0, 1]]
