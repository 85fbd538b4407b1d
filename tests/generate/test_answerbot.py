"""AnswerBot: features, scores, MMR, and the summary."""

from __future__ import annotations

import math

import numpy as np
import pytest

from graphcontext.data.records import Answer, Context, Corpus, Passage, Question, Unit
from graphcontext.errors import InputError
from graphcontext.generate.answerbot import (
    AnswerBot,
    Paragraph,
    candidate_paragraphs,
    features,
    min_max,
    mmr,
    overall,
    within,
)
from graphcontext.generate.extractive import Pool

THREADS = (
    Passage(
        "p1",
        "list ports",
        "list ports",
        "",
        answers=(
            Answer("You should use ss to list ports.\n\nIt is old.\n\nBye.\n\nFourth ports.", 5, True),
            Answer("You should use ss to list ports.", 1),
        ),
    ),
    Passage("p2", "mount", "mount disks", "", answers=(Answer("Use mount.", 2),)),
)
CORPUS = Corpus.of(THREADS)
QUESTION = Question("q", "How to list open ports?\nPlease help", CORPUS.id, ("gold",))


def context(*sources: str) -> Context:
    return Context("q", tuple(Unit(s, s, s) for s in sources))


def test_paragraphs_of_all_answers_equal_ones_once():
    found = candidate_paragraphs(THREADS[0].answers)
    assert [(p.position, p.votes) for p in found] == [(1, 5), (2, 5), (3, 5), (4, 5)]


def test_the_seven_features():
    pool = Pool(THREADS)
    paragraphs = [Paragraph("You should use `ss` to list ports.", 1, 5), Paragraph("It is old.", 4, -1)]
    rows = features("How to list open ports?", paragraphs, np.array([0.9, 0.1]), pool)
    # entities of the title: list, open, ports; the first paragraph has two of them
    # idf = ln(3 / (1 + df)): use in both threads 0; ss, list, ports in one each ln 1.5
    assert rows[0] == pytest.approx([0.9, 2 / 3, 3 * math.log(1.5), 1, 1, 1, 5])
    # old is in one thread; position 4 is past the third
    assert rows[1] == pytest.approx([0.1, 0, math.log(1.5), 0, 0, 0, -1])


def test_scores_are_products_of_scaled_features():
    # first column scales to 0, 1, 0.5; the second is constant: 1
    scores = overall(np.array([[1.0, 7.0], [3.0, 7.0], [2.0, 7.0]]))
    assert scores == pytest.approx([1e-4 * 1.0001, 1.0001**2, 0.5001 * 1.0001])
    assert min_max(np.array([4.0])).tolist() == [1.0]


def test_mmr_prefers_a_lower_score_to_a_copy():
    scores = np.array([1.0, 0.9, 0.5])
    between = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    # after 0: 1 gets .5·.9 − .5·1 = −.05, 2 gets .5·.5 − 0 = .25
    assert mmr(scores, between, 2, 0.5) == [0, 2]
    assert mmr(scores, between, 2, 1.0) == [0, 1]
    assert mmr(np.array([1.0, 1.0]), np.eye(2), 5, 0.5) == [0, 1]  # ties: the lower index


def test_the_best_paragraph_comes_first():
    bot = AnswerBot(None, 10, 2, 0.5)
    (prediction,) = bot.generate([QUESTION], [context("p1", "p2")], {CORPUS.id: CORPUS})
    assert prediction.prediction.split("\n\n")[0] == "You should use ss to list ports."
    assert prediction.prediction.count("\n\n") == 1
    assert (prediction.status, prediction.references) == ("ok", ("gold",))
    assert prediction.n_tokens == len(prediction.prediction.split())


def test_t15_no_thread_is_an_empty_prediction_and_a_failed_context_a_failed_one():
    failed = Context("q", (), status="failed", reason="why")
    bot = AnswerBot()
    empty, broken = bot.generate([QUESTION, QUESTION], [context(), failed], {CORPUS.id: CORPUS})
    assert (empty.status, empty.prediction) == ("empty", "")
    assert (broken.status, broken.reason) == ("failed", "context: why")


def test_one_paragraph_without_any_word_is_no_division_by_zero():
    corpus = Corpus.of([Passage("p", "", "?", "", answers=(Answer("!!!"),))])
    question = Question("q", "?", corpus.id)
    (prediction,) = AnswerBot().generate([question], [context("p")], {corpus.id: corpus})
    assert prediction.prediction == "!!!"


def test_a_word_limit_cuts_between_paragraphs():
    assert within(["a b c", "d e", "f"], 4) == ["a b c"]
    assert within(["a b c", "d e"], 2) == ["a b c"]
    assert within(["a b c", "d e"], None) == ["a b c", "d e"]


@pytest.mark.parametrize(
    "arguments",
    [{"n_paragraphs": 11}, {"n_paragraphs": 0}, {"mmr_lambda": 2.0}, {"max_words": 0}],
)
def test_wrong_values_are_named(arguments):
    with pytest.raises(InputError, match="allowed"):
        AnswerBot(**arguments)
