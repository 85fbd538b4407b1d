"""TREC files: one line per passage, in an order that trec_eval sees too."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from graphcontext.data.records import Question, Ranking, Scored
from graphcontext.evaluate.trec import qrels_file, run_file, word


def test_a_line_holds_question_passage_rank_score_and_tag():
    rankings = [Ranking("7", (Scored("b", 2.5), Scored("a", -1.0))), Ranking("8", (), status="failed")]
    assert run_file(rankings) == "7 Q0 b 1 2.5 graphcontext\n7 Q0 a 2 -1.0 graphcontext\n"


def test_gold_passages_stand_once_and_questions_without_any_are_left_out():
    questions = [Question("7", "?", "c", supports=("b", "a", "b")), Question("8", "?", "c")]
    assert qrels_file(questions) == "7 0 b 1\n7 0 a 1\n"
    assert qrels_file(questions[1:]) == ""
    assert qrels_file([Question("7", "?", "c", supports=("b", "a"), grades=(2, 1))]) == "7 0 b 2\n7 0 a 1\n"


def test_ids_have_no_blanks_and_stay_distinct():
    names = ["a b", "a\tb", "a%20b", "a_b", "ab", "a\u00a0b"]
    assert len({word(name) for name in names}) == len(names)
    assert all(len(word(name).split()) == 1 for name in names)


@given(st.lists(st.floats(-1e30, 1e30), max_size=8))
def test_scores_fall_strictly_in_single_precision_whatever_they_were(scores):
    ranking = Ranking("q", tuple(Scored(f"p{i}", s) for i, s in enumerate(scores)))
    written = [np.float32(line.split()[4]) for line in run_file([ranking]).splitlines()]
    assert all(a > b for a, b in itertools.pairwise(written))
    if scores == sorted(scores, reverse=True) and len({np.float32(s) for s in scores}) == len(scores):
        assert written == [np.float32(s) for s in scores]  # nothing is changed where nothing need be
