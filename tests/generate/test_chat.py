"""The loop that asks only what was not answered: resume, fingerprints, batches, checks."""

from __future__ import annotations

import json

import pytest

from graphcontext.errors import InputError, RunError
from graphcontext.generate.chat import ChatRequest, ChatResponse, check_decoding
from graphcontext.store import CallLog


def ask(item: str, text: str = "") -> ChatRequest:
    return ChatRequest(item, ({"role": "user", "content": text or f"question {item}"},))


def echo(request: ChatRequest) -> ChatResponse:
    text = request.messages[-1]["content"].upper()
    return ChatResponse(request.item, text, "stop", 3, 2, 0.1)


TEN = [ask(f"q{i}") for i in range(10)]


class Killed(BaseException):
    pass


@pytest.mark.parametrize("cut_in_mid_line", [False, True])
def test_t11_after_a_kill_after_3_of_10_exactly_7_are_asked(stub, workspace, cut_in_mid_line):
    undisturbed = stub(echo).chat(TEN, "answer", 8)

    def dies(request):
        if len(first.asked) > 3:
            raise Killed
        return echo(request)

    first = stub(dies)
    first.bind(workspace)
    with pytest.raises(Killed):
        first.chat(TEN, "answer", 8)
    if cut_in_mid_line:  # the kill came while the fourth line was written
        with workspace.calls.path.open("a") as stream:
            stream.write('{"role": "answer", "item": "q3", "respon')

    second = stub(echo)
    workspace.calls = CallLog(workspace.calls.path)
    second.bind(workspace)
    assert second.chat(TEN, "answer", 8) == undisturbed
    assert len(second.asked) == 7
    assert not set(second.asked) & set(first.asked[:3])


def test_a_cut_batch_is_computed_whole_and_only_its_missing_lines_are_appended(stub, workspace):
    first = stub(echo, batch_size=2)
    first.bind(workspace)
    first.chat(TEN[:4], "answer", 8)
    lines = workspace.calls.path.read_text().splitlines()
    workspace.calls.path.write_text("\n".join(lines[:3]) + "\n")  # killed after 3 of 4

    second = stub(echo, batch_size=2)
    workspace.calls = CallLog(workspace.calls.path)
    second.bind(workspace)
    second.chat(TEN[:4], "answer", 8)
    assert second.batches == [first.batches[1]]
    assert workspace.calls.path.read_text().splitlines() == lines


def test_the_longest_requests_go_first_and_answers_come_back_by_index(stub):
    requests = [ask("short", "a"), ask("long", "aaaa"), ask("middle", "aa")]
    llm = stub(echo, batch_size=2)
    assert [r.text for r in llm.chat(requests, "answer", 8)] == ["A", "AAAA", "AA"]
    assert llm.batches == [["long", "middle"], ["short"]]


def test_equal_requests_of_one_item_are_asked_once(stub):
    llm = stub(echo)
    responses = llm.chat([ask("p", "x"), ask("p", "x"), ask("other", "x")], "extractor", 8)
    assert [r.item for r in responses] == ["p", "p", "other"]
    assert sorted(llm.asked) == ["other", "p"]


def test_t12_another_model_prompt_temperature_or_limit_is_asked_anew(stub, workspace):
    def asked(model="a", temperature=0.0, text="x", limit=8, role="answer") -> int:
        llm = stub(echo)
        llm.model, llm.temperature = model, temperature
        llm.bind(workspace)
        llm.chat([ask("q", text)], role, limit)
        return len(llm.asked)

    assert asked() == 1
    assert asked() == 0
    assert asked(model="b") == 1
    assert asked(text="y") == 1
    assert asked(temperature=0.7) == 1
    assert asked(limit=9) == 1
    assert asked(role="judge") == 1
    workspace.seed = 1
    assert asked() == 0  # greedy: the seed does not matter
    assert asked(temperature=0.7) == 1


def test_failed_calls_are_retried_and_empty_ones_are_not(stub, workspace):
    def reply(request):
        if request.item == "failed":
            return ChatResponse("failed", "", status="failed", reason="no luck")
        return ChatResponse("empty", "  ", "stop")

    llm = stub(reply)
    llm.bind(workspace)
    requests = [ask("failed"), ask("empty")]
    assert [r.status for r in llm.chat(requests, "answer", 8)] == ["failed", "empty"]
    llm.asked.clear()
    llm.chat(requests, "answer", 8)
    assert llm.asked == ["failed"]


def test_an_answer_that_the_check_refuses_is_recorded_as_failed(stub, workspace):
    llm = stub(echo)
    llm.bind(workspace)
    (response,) = llm.chat([ask("q")], "extractor", 8, check=lambda r: "parse: no triple")
    assert (response.status, response.reason) == ("failed", "parse: no triple")
    (row,) = [json.loads(line) for line in workspace.calls.path.read_text().splitlines()]
    assert row["role"] == "extractor"
    assert row["item"] == "q"
    assert row["messages"] == [{"role": "user", "content": "question q"}]
    assert (row["response"], row["finish"]) == ("QUESTION Q", "stop")
    assert row["tokens"] == {"prompt": 3, "completion": 2}
    assert (row["seconds"], row["status"], row["reason"]) == (0.1, "failed", "parse: no triple")


def test_workers_ask_at_once_and_answers_stay_in_order(stub, workspace):
    llm = stub(echo, workers=4)
    llm.bind(workspace)
    assert [r.item for r in llm.chat(TEN, "answer", 8)] == [r.item for r in TEN]
    assert len(workspace.calls.path.read_text().splitlines()) == 10


def test_an_error_of_one_worker_stops_the_others(stub):
    def refused(request):
        raise RunError("the server refuses the key")

    llm = stub(refused, workers=2)
    with pytest.raises(RunError, match="refuses"):
        llm.chat(TEN, "answer", 8)
    assert len(llm.asked) < 10


def test_no_requests_no_calls(stub):
    assert stub(echo).chat([], "answer", 8) == []


def test_an_error_that_ends_the_run_lets_no_further_request_begin(stub):
    def refused(request):
        raise RunError("refuses the key")

    llm = stub(refused, workers=4)
    with pytest.raises(RunError, match="refuses the key"):
        llm.chat(TEN, "answer", 8)
    assert len(llm.asked) <= 4  # those that were under way


@pytest.mark.parametrize("temperature", [-0.1, float("nan"), float("inf")])
def test_a_temperature_is_finite(temperature: float) -> None:
    with pytest.raises(InputError, match=r"llm\.temperature="):
        check_decoding(temperature, 1.0)
