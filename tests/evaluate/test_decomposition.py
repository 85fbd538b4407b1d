"""Where an answer went wrong: one small story per stage."""

from __future__ import annotations

import pytest

from graphcontext.data.records import Answer, Context, Corpus, Passage, Prediction, Question, Ranking, Scored, Unit
from graphcontext.errors import InputError
from graphcontext.evaluate.decomposition import KINDS, ErrorDecomposition, gold_passages

GOLD = "use ss to list the open sockets"
CORPUS = Corpus.of(
    [
        Passage("near", "", "", "", answers=(Answer("use ss or list sockets", accepted=True),)),  # 4 of 4 and 5 words
        Passage("far", "", "", "", answers=(Answer("reboot", accepted=True), Answer(GOLD))),  # the accepted one counts
        Passage("plain", "", "", "a text without answers"),
    ]
)


def kind(answer: str, ranked: list[str], shown: list[str], references=(GOLD,), supports=(), qid="q") -> str:
    question = Question(qid, "?", CORPUS.id, references, supports=supports)
    ranking = Ranking(qid, tuple(Scored(i, 1.0) for i in ranked))
    context = Context(qid, tuple(Unit(i, "…", i) for i in shown))
    prediction = Prediction(qid, "?", answer, references)
    [row] = ErrorDecomposition(0.5).score([question], [prediction], [ranking], [context], {CORPUS.id: CORPUS})
    found = [k for k in KINDS if row[f"lost_{k}"]]
    assert row["answered"] + len(found) == 1
    return found[0] if found else "answered"


def test_each_stage_can_lose_the_gold() -> None:
    assert kind("reboot", [], [], references=("something else entirely",), qid="a") == "not_in_corpus"
    assert kind("reboot", ["far"], ["far"], qid="b") == "not_retrieved"
    assert kind("reboot", ["near", "far"], ["far"], qid="c") == "cut"
    assert kind("reboot", ["near"], ["near"], qid="d") == "wrong"
    assert (
        kind("list the open sockets with lsof", [], [], qid="e") == "answered"
    )  # {list, open, sockets} of {use, ss, list, open, sockets} and {list, open, sockets, lsof}: 6/9


def test_all_supports_are_needed() -> None:
    assert kind("x", ["near", "far"], ["near", "far"], supports=("near", "far"), qid="f") == "wrong"
    assert kind("x", ["near"], ["near"], supports=("near", "far"), qid="g") == "not_retrieved"
    assert kind("x", ["near", "far"], ["near"], supports=("near", "far"), qid="h") == "cut"
    assert kind("x", ["near"], ["near"], supports=("near", "gone"), qid="i") == "not_in_corpus"


def test_empty_texts_are_never_right() -> None:
    assert kind("", ["near"], ["near"], qid="j") == "wrong"
    assert kind("", [], [], references=("",), qid="k") == "not_in_corpus"
    assert kind("anything", [], [], references=(), qid="l") == "not_in_corpus"


def test_a_failed_prediction_is_none_of_them() -> None:
    question = Question("m", "?", CORPUS.id, (GOLD,))
    failed = Prediction("m", "?", GOLD, (GOLD,), status="failed")
    nothing = [Ranking("m", ())], [Context("m", ())], {CORPUS.id: CORPUS}
    [row] = ErrorDecomposition(0.5).score([question], [failed], *nothing)
    assert row == {"answered": 0} | {f"lost_{k}": 0 for k in KINDS} | {"gold_passages": 1}


def test_gold_is_kept_per_bound_and_questions() -> None:
    question = Question("n", "?", CORPUS.id, (GOLD,))
    assert gold_passages([question], {CORPUS.id: CORPUS}, 0.5)["n"] == ("near",)
    assert gold_passages([question], {CORPUS.id: CORPUS}, 0.95)["n"] == ()


@pytest.mark.parametrize("overlap", [0, 1.5, -0.1])
def test_the_bound_is_checked(overlap: float) -> None:
    with pytest.raises(InputError, match=r"metric\.answered\.overlap"):
        ErrorDecomposition(overlap)
