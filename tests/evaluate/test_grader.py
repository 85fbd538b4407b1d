"""Accuracy by a grader: what counts as a grade, what fails, and the calls of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcontext.component import instantiate
from graphcontext.config import compose
from graphcontext.data.records import Prediction, Question
from graphcontext.errors import InputError
from graphcontext.evaluate.grader import Grader, contains_1, strict
from graphcontext.files import read_lines
from graphcontext.generate.chat import ChatRequest, ChatResponse, answer
from graphcontext.generate.prompt import Prompt
from graphcontext.plan import cost
from graphcontext.runs import execute
from graphcontext.store import CallLog, Store, Workspace

PROMPT = Prompt("", "{question} gold: {reference} given: {prediction} {context}")


class Replies:
    """A grader that gives the same reply to everything; ``draws`` and ``repeatable`` as a local model's."""

    batch_size, workers, repeatable = 2, 1, True
    asked: list[str] = []

    def __init__(self, reply: str = "1", workspace: Workspace | None = None):
        self.reply, self.workspace = reply, workspace

    def bind(self, workspace: Workspace) -> None:
        self.workspace = workspace

    def settings(self) -> dict[str, Any]:
        return {"reply": self.reply}

    def draws_random(self) -> bool:
        return False

    def length(self, request: ChatRequest) -> int:
        return 1

    def complete(self, requests: Any, seeds: Any, max_new_tokens: int) -> list[ChatResponse]:
        self.asked += [r.messages[-1]["content"] for r in requests]
        return [ChatResponse(r.item, self.reply, "stop") for r in requests]

    def chat(self, requests: Any, role: str, max_new_tokens: int, check: Any = None) -> list[ChatResponse]:
        return answer(self, requests, role, max_new_tokens, check)


@pytest.fixture(autouse=True)
def _nothing_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Replies, "asked", [])


def graded(reply: str, *answers: Prediction, compat: str | None = None, gold: tuple[str, ...] = ("Rome",)) -> list:
    questions = [Question(p.id, "Where?", "c", references=gold) for p in answers]
    return Grader(Replies(reply), PROMPT, compat=compat).score(questions, list(answers), [], [])


def said(text: str, status: str = "ok", item: str = "q") -> Prediction:
    return Prediction(item, "Where?", text, ("Rome",), status=status)


def test_t20_a_grader_that_always_says_1_gives_1():
    assert graded("1", said("Rome"), said("Oslo", item="r")) == [{"acc": 1.0, "acc_answered": 1.0}] * 2
    assert Replies.asked == ["Where? gold: Rome given: Rome ", "Where? gold: Rome given: Oslo "]


@pytest.mark.parametrize("reply", ["The answer is 1 of the two named.", "10", "1.", "one", "", "Grade: 1", "1 0"])
def test_a_reply_that_is_no_grade_fails_the_item_and_never_counts_as_right(reply):
    [row] = graded(reply, said("Rome"))
    assert (row["acc"], row["acc_answered"]) == (None, None)
    assert row["reason"] == f'parse: the grade is 1 or 0, not "{reply}"'


def test_the_papers_rule_is_a_switch():
    [row] = graded("The answer is 1 of the two named.", said("Rome"), compat="contains_1")
    assert row == {"acc": 1.0, "acc_answered": 1.0}
    [row] = graded("It is wrong.", said("Rome"), compat="contains_1")
    assert row == {"acc": 0.0, "acc_answered": 0.0}


@given(st.text(max_size=6))
def test_strict_and_contains_1_agree_on_every_grade(reply):
    if strict(reply) is not None:
        assert strict(reply) == contains_1(reply)
        assert reply.strip() in ("0", "1")


def test_failed_blank_and_unanswerable_items_score_0_without_a_call():
    rows = graded("1", said("x", "failed"), said("  ", "empty", "r"))
    assert rows == [{"acc": 0.0, "acc_answered": None}, {"acc": 0.0, "acc_answered": 0.0}]
    assert graded("1", said("Rome"), gold=()) == [{"acc": 0.0, "acc_answered": 0.0}]
    assert Replies.asked == []


def test_all_references_are_shown_in_one_call():
    graded("1", said(" Roma "), gold=("Rome", "Roma"))
    assert Replies.asked == ["Where? gold: Rome / Roma given: Roma "]


def test_a_failed_call_keeps_its_reason_and_an_answered_one_is_not_asked_again(tmp_path: Path):
    calls = CallLog(tmp_path / "calls.jsonl")
    llm = Replies("hm", Workspace(Store(tmp_path), calls))
    question, given_ = Question("q", "Where?", "c", references=("Rome",)), said("Rome")
    [row] = Grader(llm, PROMPT).score([question], [given_], [], [])
    assert "parse" in row["reason"]
    assert [(r["role"], r["status"]) for r in read_lines(tmp_path / "calls.jsonl")] == [("grader", "failed")]
    again = Replies("1", Workspace(Store(tmp_path), CallLog(tmp_path / "calls.jsonl")))
    Grader(again, PROMPT).score([question], [given_], [], [])
    Grader(again, PROMPT).score([question], [given_], [], [])
    assert len(Replies.asked) == 2  # the failed call, and the one after it, once


def test_wrong_arguments_are_refused():
    with pytest.raises(InputError, match="compat=contains"):
        Grader(Replies(), PROMPT, compat="contains")
    with pytest.raises(InputError, match="max_new_tokens=0"):
        Grader(Replies(), PROMPT, max_new_tokens=0)
    with pytest.raises(InputError, match=r"lacks \{prediction\}"):
        Grader(Replies(), Prompt("", "{question} {reference}"))


def test_the_option_takes_the_graders_role_and_three_examples():
    config = compose(["metric=[acc]", "llm@roles.grader=gpt_3_5_turbo"]).config
    metric = instantiate(config["metric"], "metric")["acc"]
    assert metric.signature == "acc|gpt-3.5-turbo-0125|reply is 1 or 0"
    assert metric.columns == {"acc_answered": "failed items left out"}
    assert metric.prompt.user.count("\nGrade: ") == 3


# -- in a run ------------------------------------------------------------------------------------


def config(reply: str) -> dict[str, Any]:
    words = ["experiment=gcg/answerbot", "metric=[acc]", "tokenizer=words"]
    found = compose([*words, "dataset.limit=10"]).config
    found["metric"]["acc"]["llm"] = {"_target_": f"{__name__}.Replies", "reply": reply}
    return found


def test_a_run_has_the_graders_calls_and_a_finished_score_is_not_asked_again(tmp_path: Path):
    run = execute(config("1"), tmp_path, quiet=True)
    calls = [row for row in run.lines("calls.jsonl") if row["role"] == "grader"]
    assert len(calls) == len(Replies.asked) == 10
    assert run.metrics["metrics"]["acc"]["value"] == 1.0
    assert run.metrics["metrics"]["acc_answered"]["n"] == 10
    assert "the grader gave all 10 answers 1; it may not tell them apart" in run.summary()
    execute(config("1"), tmp_path, quiet=True)
    assert len(Replies.asked) == 10


def test_t21_unparsable_grades_are_counted_and_of_a_repeatable_grader_not_asked_again(tmp_path: Path):
    half = {"0": "0", "1": "perhaps"}

    def complete(self: Any, requests: Any, seeds: Any, max_new_tokens: int) -> list[ChatResponse]:
        self.asked += [r.item for r in requests]
        return [ChatResponse(r.item, half[str(sorted(ids).index(r.item) % 2)], "stop") for r in requests]

    plain = config("?")
    from graphcontext.pipeline import Pipeline

    ids = [q.id for q in Pipeline(plain, Workspace(Store(tmp_path / "store"), quiet=True)).data().questions]
    patch = pytest.MonkeyPatch()
    patch.setattr(Replies, "complete", complete)
    try:
        run = execute(plain, tmp_path, quiet=True)
        found = run.metrics
        assert (found["n"], found["n_failed"], found["metrics"]["acc"]["value"]) == (10, 5, 0.0)
        assert found["metrics"]["acc_answered"]["n"] == 5
        reasons = {row["reason"] for row in run.lines("scores.jsonl") if row["status"] == "failed"}
        assert reasons == {'metric acc: parse: the grade is 1 or 0, not "perhaps"'}
        execute(plain, tmp_path, quiet=True)
        assert len(Replies.asked) == 10
        patch.setattr(Replies, "repeatable", False)  # a server's model may say something else another time
        (tmp_path / "store" / "score").rename(tmp_path / "store" / "old")
        execute(plain, tmp_path, quiet=True)
        execute(plain, tmp_path, quiet=True)
        assert len(Replies.asked) == 10 + 10 + 10  # batches are computed whole
    finally:
        patch.undo()


def test_the_plan_counts_the_graders_calls():
    with_, without = (cost("row", compose(["experiment=gcg/answerbot", f"metric=[{m}]"]).config) for m in ("acc", "em"))
    assert (with_.calls, without.calls) == (with_.n_questions, 0)
    assert with_.new_tokens == 4 * with_.n_questions
