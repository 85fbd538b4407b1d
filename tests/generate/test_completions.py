"""Every fault of a server, over a real socket: nothing lost, nothing asked twice, no key where it does not belong."""

from __future__ import annotations

import email.utils
import json
import logging
import os
import signal
import socket
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from graphcontext.errors import InputError, RunError
from graphcontext.generate import completions
from graphcontext.generate.chat import ChatRequest, ChatResponse
from graphcontext.generate.completions import CompletionClient, is_loopback
from graphcontext.generate.openai import OpenAILLM
from graphcontext.generate.rate_limit import shared_limit
from tests.generate.fault_server import (
    Asked,
    FaultServer,
    Reply,
    answer,
    broken_off,
    chunked,
    completion,
    cut,
    drip,
    hang,
    huge,
    reset,
    say,
)

KEY = "sk-secret-4711-0815"
ITEMS = ["a", "b", "c", "d", "e"]


@pytest.fixture
def server() -> Iterator[FaultServer]:
    server = FaultServer()
    yield server
    server.close()


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    shared_limit.cache_clear()  # a port of an earlier test may come again


def llm(server: FaultServer, **options: Any) -> OpenAILLM:
    """A client whose clock goes on by what it is told to sleep, so that no test waits."""
    made = OpenAILLM("m", server.url, **{"timeout": 5.0, "workers": 2, "max_retries": 3, **options})
    made.waited = []
    clock = made.limit.clock
    made.limit.sleep = made.waited.append
    made.limit.clock = lambda: clock() + sum(made.waited)
    return made


def chat(model: OpenAILLM, items: list[str] = ITEMS) -> dict[str, ChatResponse]:
    requests = [ChatRequest(item, ({"role": "user", "content": f"say {item}"},)) for item in items]
    return {r.item: r for r in model.chat(requests, "answer", 9)}


# -- faults that pass: tried again, the others asked once ----------------------------------------

PASSING: dict[str, Reply] = {
    **{f"HTTP {status}": say(status, {"error": "down"}) for status in (408, 409, 429, 500, 502, 503, 504, 529)},
    "cut JSON": cut(),
    "an empty body": say(200, b""),
    "no JSON": say(200, b"<html>gateway</html>"),
    "no UTF-8": say(200, b"\xff\xfe{"),
    "a list": say(200, ["choices"]),
    "a string": say(200, "choices"),
    "null": say(200, b"null"),
    "nested without end": say(200, b"[" * 100_000),
    "no choices": say(200, {"error": {"message": "overloaded"}}),
    "empty choices": say(200, {"choices": []}),
    "choices null": say(200, {"choices": None}),
    "no message": say(200, {"choices": [{"index": 0}]}),
    "content of parts": say(200, {"choices": [{"message": {"content": [{"type": "text"}]}}]}),
    "ended by an error": answer("hal", "error"),
    "aborted": answer("hal", "abort"),
    "broken off": broken_off,
    "reset": reset,
}


@pytest.mark.parametrize("fault", PASSING, ids=PASSING)
def test_a_fault_that_passes_is_tried_again_and_nothing_is_lost(server, workspace, fault) -> None:
    server.scripts["c"] = [PASSING[fault], PASSING[fault]]
    model = llm(server)
    model.bind(workspace)
    found = chat(model)
    assert {item: (r.text, r.status) for item, r in found.items()} == {item: (item, "ok") for item in ITEMS}
    assert server.counts == {"a": 1, "b": 1, "c": 3, "d": 1, "e": 1}
    chat(model)
    assert server.counts.total() == 7  # all are in the call log


@pytest.mark.parametrize("fault", PASSING, ids=PASSING)
def test_a_fault_that_stays_is_one_items_failure_and_the_resumed_run_asks_only_it(server, workspace, fault) -> None:
    server.scripts["c"] = [PASSING[fault]] * 4
    model = llm(server)
    model.bind(workspace)
    found = chat(model)
    assert [i for i in ITEMS if found[i].status != "ok"] == ["c"]
    assert found["c"].status == "failed" and found["c"].reason and "\n" not in found["c"].reason
    assert server.counts == {"a": 1, "b": 1, "c": 4, "d": 1, "e": 1}  # one try and three more
    again = llm(server)
    again.bind(workspace)
    assert [r.status for r in chat(again).values()] == ["ok"] * 5  # the script is used up
    assert server.counts == {"a": 1, "b": 1, "c": 5, "d": 1, "e": 1}


# -- faults that stay: not tried again -----------------------------------------------------------

LASTING: dict[str, tuple[Reply, str]] = {
    "HTTP 400": (say(400, {"error": "too long"}), 'HTTP 400: {"error": "too long"}'),
    "HTTP 413": (say(413, b"large"), "HTTP 413: large"),
    "HTTP 422": (say(422, b"odd"), "HTTP 422: odd"),
    "content_filter": (answer("some of", "content_filter"), "the server's content filter held the answer back"),
    "an hour": (say(429, b"", Retry_After="3600"), "HTTP 429, the server asks to wait 3600 s"),
    "for ever": (say(503, b"", Retry_After="inf"), "HTTP 503, the server asks to wait inf s"),
    "17 MiB": (huge(17), "the reply is longer than 16 MiB"),
}


@pytest.mark.parametrize("fault", LASTING, ids=LASTING)
def test_a_fault_that_more_tries_cannot_mend_is_one_items_failure(server, fault) -> None:
    reply, reason = LASTING[fault]
    server.scripts["c"] = [reply]
    found = chat(llm(server))
    assert (found["c"].status, found["c"].reason) == ("failed", reason)
    assert [i for i in ITEMS if found[i].status == "ok"] == ["a", "b", "d", "e"]
    assert server.counts == dict.fromkeys(ITEMS, 1)


# -- silence -------------------------------------------------------------------------------------


@pytest.mark.parametrize("silent", [hang, drip])
def test_a_hung_socket_and_a_drip_fail_their_item_alone(server, monkeypatch, silent) -> None:
    monkeypatch.setattr(completions, "LONGEST_REPLY", 2)  # a drip is never silent for long: the whole is timed
    server.scripts["c"] = [silent(server)] * 2
    start = time.monotonic()
    found = chat(llm(server, timeout=0.15, max_retries=1))
    assert time.monotonic() - start < 5
    assert [i for i in ITEMS if found[i].status == "ok"] == ["a", "b", "d", "e"]
    assert "Timeout" in found["c"].reason
    assert server.counts["c"] == 2 and server.counts["e"] == 1


# -- what ends the run at once -------------------------------------------------------------------

ENDING = {
    "401": (say(401, {"error": f"wrong key {KEY}"}), "refuses the key: HTTP 401, model m (key from OPENAI_API_KEY)"),
    "403": (say(403, {"error": KEY}), "forbids the request: HTTP 403"),
    "404": (say(404, {"error": "no model m"}), "does not know the address or model: HTTP 404, model m"),
    "quota": (say(429, {"error": {"code": "insufficient_quota"}}), "the quota of the key in OPENAI_API_KEY is used up"),
    "301": (say(301, b"", Location=f"https://else.where/v1?key={KEY}"), "redirects to https://else.where/v1?key=***"),
    "307": (say(307, b"", Location="/v2"), "redirects to /v2: HTTP 307; set llm.base_url"),
    "302": (say(302, b""), "redirects to nowhere: HTTP 302"),
}


@pytest.mark.parametrize("fault", ENDING)
def test_t10_what_is_wrong_for_all_ends_the_run_and_keeps_what_was_answered(server, workspace, fault) -> None:
    reply, message = ENDING[fault]
    server.scripts["c"] = [reply]
    model = llm(server, workers=1)
    model.bind(workspace)
    with pytest.raises(RunError) as caught:
        chat(model)
    assert message in str(caught.value) and KEY not in str(caught.value) and "\n" not in str(caught.value)
    before = server.counts
    assert before["c"] == 1 and before.total() < 5
    again = llm(server, workers=1)
    again.bind(workspace)
    assert all(r.status == "ok" for r in chat(again).values())
    assert all(n == 1 for item, n in server.counts.items() if item != "c") and server.counts["c"] == 2


def test_a_redirect_is_not_followed_with_the_key(server) -> None:
    thief = FaultServer()
    try:
        server.usual = say(307, b"", Location=f"{thief.url}/chat/completions")
        with pytest.raises(RunError, match="redirects to"):
            chat(llm(server))
        assert thief.asked == []
    finally:
        thief.close()


# -- Retry-After ---------------------------------------------------------------------------------


def test_t10_retry_after_in_seconds_holds_all_workers_back(server) -> None:
    server.scripts["c"] = [say(429, b"", Retry_After="2"), say(429, b"", Retry_After="2.5")]
    model = llm(server, workers=1)
    assert chat(model)["c"].status == "ok"
    assert [round(s, 1) for s in model.waited] == [2.0, 2.5]
    assert server.counts["c"] == 3


def test_retry_after_as_a_date_is_obeyed(server) -> None:
    moment = datetime.now(UTC) + timedelta(seconds=40)
    server.scripts["c"] = [say(503, b"", Retry_After=email.utils.format_datetime(moment, usegmt=True))]
    model = llm(server)
    assert chat(model)["c"].status == "ok"
    assert 37 <= sum(model.waited) <= 40


FAR = "Mon, 01 Jan 99999999999999999999 00:00:00 GMT"


@pytest.mark.parametrize("header", ["soon", "", "-5", "nan", "Wed, 99 Foo 2020 99:99:99 GMT", FAR, "1e400x"])
def test_an_odd_retry_after_is_none(server, header) -> None:
    server.scripts["c"] = [say(429, b"", Retry_After=header)]
    model = llm(server, workers=1)
    assert chat(model)["c"].status == "ok"
    assert [round(s, 1) for s in model.waited] == [0.5]  # our own: 0.5 s, then doubled


def test_waiting_grows_and_is_bounded(server) -> None:
    server.usual = say(500)
    model = llm(server, max_retries=9)
    assert chat(model, ["a"])["a"].status == "failed"
    assert [round(s, 1) for s in model.waited] == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]
    assert server.counts == {"a": 10}


# -- Ctrl-C --------------------------------------------------------------------------------------


def test_ctrl_c_ends_waiting_and_retries_and_keeps_what_is_under_way(server, workspace) -> None:
    """a, b and c are refused for 3 s; d is under way when Ctrl-C comes, and is answered after it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job of a shell ignores it

    def interrupt(connection: socket.socket, asked: Asked) -> None:
        while sum(server.counts[item] for item in "abc") < 3:
            time.sleep(0.01)
        time.sleep(0.1)  # the refusals are read by now
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.3)
        answer()(connection, asked)

    def refuse(connection: socket.socket, asked: Asked) -> None:
        while not server.counts["d"]:  # a refusal holds back whatever is not under way yet
            time.sleep(0.01)
        say(429, b"", Retry_After="3")(connection, asked)

    for item in "abc":
        server.scripts[item] = [refuse] * 2
    server.scripts["d"] = [interrupt]
    model = OpenAILLM("m", server.url, workers=4, max_retries=2)
    model.bind(workspace)
    try:
        with pytest.raises(KeyboardInterrupt):
            chat(model, [*"abcdefgh"])
    finally:
        signal.signal(signal.SIGINT, before)
    assert server.counts == dict.fromkeys("abcd", 1)  # none is asked again, none of the others is begun
    assert [json.loads(line)["item"] for line in workspace.calls.path.read_text().splitlines()] == ["d"]
    server.scripts.clear()
    shared_limit.cache_clear()  # the server's 3 s
    again = llm(server)
    again.bind(workspace)
    assert {r.text for r in chat(again, [*"abcdefgh"]).values()} == {*"abcdefgh"}
    assert server.counts["d"] == 1


# -- answers -------------------------------------------------------------------------------------


def test_chunks_make_one_answer(server) -> None:
    server.usual = chunked
    assert [r.text for r in chat(llm(server)).values()] == ITEMS


@pytest.mark.parametrize("finish", ["length", "model_length", "max_tokens"])
def test_an_answer_that_was_cut_says_so(server, finish) -> None:
    server.usual = answer(finish=finish)
    assert {r.finish for r in chat(llm(server)).values()} == {"length"}


@pytest.mark.parametrize("text", [None, "", " \n"])
def test_an_answer_of_nothing_is_empty_and_not_asked_again(server, workspace, text) -> None:
    server.usual = answer(text)
    model = llm(server)
    model.bind(workspace)
    for _ in range(2):
        assert {(r.status, r.text) for r in chat(model).values()} == {("empty", "")}
    assert server.counts == dict.fromkeys(ITEMS, 1)


def test_half_a_surrogate_pair_is_a_replacement_character_and_asked_once(server, workspace) -> None:
    # an emoji that the token limit cut: its first half is no character, and no file can hold it
    server.usual = answer("use iptables \ud83d", "length")
    server.scripts["b"] = [answer("whole \U0001f600")]
    for _ in range(2):
        model = llm(server)
        model.bind(workspace)
        found = chat(model)
        assert (found["a"].text, found["a"].status, found["a"].finish) == ("use iptables �", "ok", "length")
        assert found["b"].text == "whole \U0001f600"
    assert server.counts == dict.fromkeys(ITEMS, 1)


@pytest.mark.parametrize("usage", [None, [], "7", {}, {"prompt_tokens": None, "completion_tokens": "many"}])
def test_an_answer_is_not_lost_over_its_token_counts(server, usage) -> None:
    server.usual = say(200, completion("fine") | {"usage": usage})
    found = chat(llm(server))["a"]
    assert (found.text, found.n_prompt_tokens, found.n_tokens) == ("fine", 0, 0)
    assert server.counts == dict.fromkeys(ITEMS, 1)


# -- the key -------------------------------------------------------------------------------------


def test_t48_a_key_that_the_server_echoes_is_in_no_file_error_or_log(server, workspace, tmp_path, caplog) -> None:
    server.usual = say(200, completion(f"you sent {KEY}"), X_Echo=KEY)
    server.scripts["b"] = [say(500, f"no {KEY}".encode(), X_Echo=KEY)] * 4
    server.scripts["c"] = [say(400, f"no {KEY}".encode())]
    model = llm(server)
    model.bind(workspace)
    with caplog.at_level(logging.DEBUG):
        found = chat(model)
    assert found["a"].text == "you sent ***" and found["c"].reason == "HTTP 400: no ***"
    assert all(a.headers["authorization"] == f"Bearer {KEY}" for a in server.asked)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.name == "calls.jsonl" for path in files)
    assert not any(KEY in path.read_text() for path in files)
    assert KEY not in caplog.text + json.dumps(model.settings()) + str(vars(model)) + repr(found)


@pytest.mark.parametrize("key", ["sk-secret-1\nsk-secret-2", "sk-secret 1", "sk-\x7f1", "sk-schlüssel", "sk-\u200b1"])
def test_t48_what_no_header_can_carry_is_no_key_and_not_shown(server, workspace, monkeypatch, tmp_path, key) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    model = llm(server)
    model.bind(workspace)
    with pytest.raises(InputError, match="OPENAI_API_KEY holds a blank, a line break or another sign") as caught:
        chat(model)
    assert "sk-" not in str(caught.value) and server.asked == []
    assert not any("sk-" in path.read_text() for path in tmp_path.rglob("*") if path.is_file())


def test_t48_a_request_that_cannot_be_sent_is_told_without_its_headers(server, monkeypatch) -> None:
    def illegal(*_: Any, **__: Any) -> None:
        raise httpx.LocalProtocolError(f"Illegal header value b'Bearer {KEY[:9]}\\n{KEY[9:]}'")

    monkeypatch.setattr(CompletionClient, "_exchange", illegal)
    found = chat(llm(server))
    assert {r.reason for r in found.values()} == {"LocalProtocolError"}


def test_a_word_that_stands_for_no_key_is_left_in_answers(server, monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    server.usual = answer("none of them")
    assert chat(llm(server))["a"].text == "none of them"


def test_no_proxy_lies_before_this_machine(server, monkeypatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # nobody is there
    assert chat(llm(server))["a"].status == "ok"
    assert is_loopback("http://localhost:1/v1") and is_loopback("http://[::1]:1/v1")
    assert not is_loopback("https://api.openai.com/v1")
