"""A model behind a server: a real HTTP server on loopback that answers as it is told."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from graphcontext.component import fingerprint
from graphcontext.config import compose
from graphcontext.errors import InputError, RunError
from graphcontext.generate.chat import ChatRequest
from graphcontext.generate.openai import OpenAILLM
from graphcontext.generate.rate_limit import shared_limit

KEY = "sk-secret-4711"


def completion(text: str, finish: str = "stop") -> dict[str, Any]:
    choice = {"message": {"role": "assistant", "content": text}, "finish_reason": finish}
    return {"choices": [choice], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}


class Server:
    """Gives each request the next of ``replies``, the last one for ever: (status, headers, body)."""

    def __init__(self) -> None:
        self.replies: list[tuple[int, dict[str, str], bytes]] = []
        self.delay: Callable[[dict[str, Any]], float] = lambda body: 0.0
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.times: list[float] = []
        owner = self

        class Answer(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                owner.bodies.append(body)
                owner.headers.append(dict(self.headers))
                owner.times.append(time.monotonic())
                status, headers, content = owner.replies.pop(0) if len(owner.replies) > 1 else owner.replies[0]
                content = content.replace(b"ECHO", body["messages"][-1]["content"].encode())
                time.sleep(owner.delay(body))
                self.send_response(status)
                for name, value in {"Content-Length": str(len(content)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *arguments: Any) -> None:
                """Keep the test's output clean."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def reply(self, status: int = 200, text: str = "fine", **headers: str) -> None:
        content = json.dumps(completion(text) if status == 200 else {"error": text}).encode()
        self.replies.append((status, {k.replace("_", "-"): v for k, v in headers.items()}, content))

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server():
    server = Server()
    yield server
    server.close()


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    shared_limit.cache_clear()  # a port of an earlier test may come again


def ask(item: str) -> ChatRequest:
    return ChatRequest(item, ({"role": "user", "content": item},))


def llm(server: Server, **options: Any) -> OpenAILLM:
    made = OpenAILLM("m", server.url, **{"timeout": 5.0, **options})
    made.waited = []
    made.limit.sleep = lambda seconds: (made.waited.append(seconds), time.sleep(min(seconds, 0.01)))
    clock = made.limit.clock
    made.limit.clock = lambda: clock() + sum(made.waited)
    return made


def test_an_answer_with_its_tokens(server):
    server.reply(text="use ss")
    (response,) = llm(server, temperature=0.0).chat([ask("q")], "answer", 9)
    assert (response.text, response.finish, response.status) == ("use ss", "stop", "ok")
    assert (response.n_prompt_tokens, response.n_tokens) == (7, 3)
    assert server.bodies == [
        {
            "model": "m",
            "messages": [{"role": "user", "content": "q"}],
            "temperature": 0.0,
            "top_p": 1.0,
            "max_tokens": 9,
        }
    ]
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"


def test_t10_429_with_retry_after_2_twice_then_200(server):
    server.reply(429, Retry_After="2")
    server.reply(429, Retry_After="2")
    server.reply(200)
    model = llm(server)
    (response,) = model.chat([ask("q")], "answer", 9)
    assert response.status == "ok"
    assert len(server.bodies) == 3
    assert [round(seconds) for seconds in model.waited] == [2, 2]


def test_t10_401_stops_at_once_and_names_no_key(server):
    server.reply(401, text=f"Incorrect API key provided: {KEY}")
    with pytest.raises(RunError) as caught:
        llm(server, workers=1).chat([ask("a"), ask("b")], "answer", 9)
    assert len(server.bodies) == 1
    assert "refuses the key" in str(caught.value)
    assert "OPENAI_API_KEY" in str(caught.value)
    assert KEY not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_used_up_quota_stops_at_once(server):
    server.reply(429, text="insufficient_quota")
    with pytest.raises(RunError, match="quota"):
        llm(server).chat([ask("a")], "answer", 9)
    assert len(server.bodies) == 1


def test_a_server_error_is_tried_again_then_recorded(server, workspace):
    server.reply(503)
    model = llm(server, max_retries=2)
    model.bind(workspace)
    (response,) = model.chat([ask("q")], "answer", 9)
    assert (response.status, response.reason) == ("failed", "HTTP 503")
    assert len(server.bodies) == 3
    server.replies = []
    server.reply(200)
    (response,) = model.chat([ask("q")], "answer", 9)
    assert response.status == "ok"


def test_cut_json_is_tried_again(server):
    server.replies.append((200, {}, b'{"choices": [{"mess'))
    server.reply(200)
    (response,) = llm(server).chat([ask("q")], "answer", 9)
    assert response.status == "ok"
    assert len(server.bodies) == 2


def test_a_body_cut_by_the_connection_is_tried_again(server):
    server.replies.append((200, {"Content-Length": "999"}, b'{"choices": [{"mess'))
    server.reply(200)
    (response,) = llm(server, timeout=0.3).chat([ask("q")], "answer", 9)
    assert response.status == "ok"


def test_a_hung_socket_fails_its_item_and_the_others_go_on(server):
    server.reply(200, text="ECHO")
    server.delay = lambda body: 0.8 if body["messages"][-1]["content"] == "hangs" else 0.0
    model = llm(server, timeout=0.2, max_retries=1, workers=2)
    responses = model.chat([ask("a"), ask("hangs"), ask("b")], "answer", 9)
    assert [r.status for r in responses] == ["ok", "failed", "ok"]
    assert "Timeout" in responses[1].reason


def test_a_refused_request_is_not_tried_again(server):
    server.reply(400, text=f"the prompt is too long; key {KEY}")
    (response,) = llm(server).chat([ask("q")], "answer", 9)
    assert response.status == "failed"
    assert response.reason.startswith("HTTP 400: ")
    assert KEY not in response.reason
    assert len(server.bodies) == 1


def test_a_server_that_asks_for_an_hour_gets_no_further_try(server):
    server.reply(429, Retry_After="3600")
    (response,) = llm(server).chat([ask("q")], "answer", 9)
    assert response.reason == "HTTP 429, the server asks to wait 3600 s"
    assert len(server.bodies) == 1


def test_rows_of_one_server_share_its_limit(server):
    server.reply(200)
    first, second = llm(server, requests_per_minute=2), OpenAILLM("other", server.url + "/", requests_per_minute=2)
    first.chat([ask("a"), ask("b")], "answer", 9)
    assert first.waited == []
    second.chat([ask("c")], "answer", 9)  # the bucket of two is empty: half a minute, not a bucket of its own
    assert [round(seconds) for seconds in first.waited][:1] == [30]
    others = [{"requests_per_minute": 3}, {"requests_per_minute": 2, "api_key_env": "OTHER_KEY"}]
    assert all(OpenAILLM("m", server.url, **other).limit is not first.limit for other in others)


def test_answers_by_index_though_the_first_is_the_slowest(server):
    server.reply(200, text="ECHO")
    server.delay = lambda body: 0.2 if body["messages"][-1]["content"] == "q0" else 0.0
    responses = llm(server, workers=4).chat([ask(f"q{i}") for i in range(6)], "answer", 9)
    assert [r.text for r in responses] == [f"q{i}" for i in range(6)]


def test_what_was_answered_is_not_asked_twice(server, workspace):
    server.reply(200)
    model = llm(server)
    model.bind(workspace)
    for _ in range(2):
        model.chat([ask("a"), ask("b")], "answer", 9)
    assert len(server.bodies) == 2


def test_a_key_that_is_not_set_is_named_before_anything_is_sent(server, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(InputError, match="OPENAI_API_KEY is not set"):
        llm(server).chat([ask("q")], "answer", 9)
    assert server.bodies == []


def test_a_local_server_needs_no_key(server, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    server.reply(200)
    llm(server, api_key_env=None).chat([ask("q")], "answer", 9)
    assert "Authorization" not in server.headers[0]


def test_a_server_that_is_not_there_ends_the_run_before_any_retry():
    model = OpenAILLM("m", "http://127.0.0.1:9/v1")
    start = time.monotonic()
    with pytest.raises(RunError, match=r"no answer from http://127\.0\.0\.1:9/v1: .*; is the server up\?") as caught:
        model.chat([ask(f"q{i}") for i in range(20)], "answer", 9)
    assert time.monotonic() - start < 5
    assert "\n" not in str(caught.value)


def test_a_server_that_went_away_is_tried_again(server):
    server.reply(200, Connection="close")
    model = llm(server, max_retries=2)
    model.chat([ask("first")], "answer", 9)
    server.close()
    (response,) = model.chat([ask("second")], "answer", 9)
    assert (response.status, len(model.waited)) == ("failed", 2)
    assert "Connect" in response.reason


def test_t48_the_key_is_in_no_file_and_no_log(server, workspace, tmp_path, caplog):
    server.reply(500)
    server.reply(200)
    with caplog.at_level(logging.DEBUG):
        model = llm(server)
        model.bind(workspace)
        model.chat([ask("q")], "answer", 9)
    assert KEY not in caplog.text
    assert KEY not in str(vars(model))
    assert KEY not in json.dumps(model.settings())
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or KEY not in file.read_text()


# -- what names a remote model -------------------------------------------------------------------


def node(**changes: Any) -> dict[str, Any]:
    return compose(["llm=openai"]).config["roles"]["answer"] | changes


def settings(**changes: Any) -> dict[str, Any]:
    return OpenAILLM(**{k: v for k, v in node(**changes).items() if k != "_target_"}).settings()


@pytest.mark.parametrize("change", [{"api_key_env": "OPENAI_API_KEY"}, {"base_url": "http://127.0.0.1:8080/v1//"}])
def test_another_name_of_the_keys_variable_and_a_trailing_slash_ask_nothing_anew(change) -> None:
    assert fingerprint(node(**change)) == fingerprint(node())
    assert settings(**change) == settings()


def test_the_keys_of_runs_without_a_key_are_as_they_were() -> None:
    assert fingerprint(node()) == {
        "_target_": "graphcontext.generate.openai.OpenAILLM",
        "_version_": 1,
        "model": "default",
        "base_url": "http://127.0.0.1:8080/v1",
        "api_key_env": None,
        "temperature": 0.0,
        "top_p": 1.0,
    }
    decoding = {"temperature": 0.0, "top_p": 1.0}
    named = {"model": "default", "url": "http://127.0.0.1:8080/v1"}
    assert settings() == {"backend": ["OpenAILLM", 1], **named, **decoding}


OTHERS = [{"model": "B"}, {"base_url": "http://127.0.0.1:8081/v1"}, {"base_url": "https://host/v1"}]


@pytest.mark.parametrize("change", OTHERS)
def test_t12_another_model_or_address_is_another_model(change) -> None:
    assert fingerprint(node(**change)) != fingerprint(node())
    assert settings(**change) != settings()


@pytest.mark.parametrize("address", ["http://127.0.0.1:8081/v1", "http://node7:8000/v1"])
def test_a_server_whose_model_is_named_is_found_again_at_a_new_address(address) -> None:
    ours = node(served_as="smollm2-q4_1")
    assert fingerprint(ours | {"base_url": address}) == fingerprint(ours)
    assert settings(served_as="smollm2-q4_1", base_url=address) == settings(served_as="smollm2-q4_1")
    assert address not in json.dumps([fingerprint(ours | {"base_url": address}), settings(served_as="x")])


@pytest.mark.parametrize("change", [{"served_as": "smollm2-q8_0"}, {"served_as": None}, {"model": "B"}])
def test_t12_what_is_said_to_run_there_is_in_the_key(change) -> None:
    ours = {"served_as": "smollm2-q4_1"}
    assert fingerprint(node(**ours | change)) != fingerprint(node(**ours))
    assert settings(**ours | change) != settings(**ours)


def test_t12_model_a_then_b_at_another_address_are_not_mixed(server, workspace) -> None:
    other = Server()
    try:
        server.reply(text="of A")
        other.reply(text="of B")
        texts = []
        for place in (server, other, server):
            model = llm(place)
            model.bind(workspace)
            texts += [r.text for r in model.chat([ask("q")], "answer", 9)]
        assert texts == ["of A", "of B", "of A"]
        assert len(server.bodies) == len(other.bodies) == 1
    finally:
        other.close()


NOWHERE = [
    *("http://", "http:///v1", "http://:80/v1", "http://[::1", "http://h:99999/v1", "http://h:-1/v1", "http://h:x/v1"),
    *("http://a..b/v1", f"http://{'a' * 64}/v1", "http://999.1.1.1/v1", "http://\u200b/v1", "http://h\n/v1"),
]
NAN, INF = float("nan"), float("inf")
RATES = ("requests_per_minute", "tokens_per_minute")
NO_RATE = [0, -1, NAN, INF, 1e-9]


@pytest.mark.parametrize("url", ["http://[::1]:8/v1", "https://müller.example/v1", "http://node_7:8000/v1"])
def test_addresses_that_can_be_asked(url):
    assert OpenAILLM("m", url, requests_per_minute=1, tokens_per_minute=1e6).base_url == url


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"served_as": " "}, r"served_as is blank"),
        ({"base_url": "ftp://x"}, "base_url=ftp://x"),
        ({"base_url": "https://me:secret@host/v1"}, "base_url has a user, query or fragment"),
        ({"base_url": "https://host/v1?api-key=secret"}, "base_url has a user, query or fragment"),
        ({"base_url": "https://host/v1?key=@secret"}, "base_url has a user, query or fragment"),
        ({"base_url": "https://host/v1#secret"}, "base_url has a user, query or fragment"),
        *(({"base_url": url}, "allowed: http") for url in NOWHERE),
        ({"model": " "}, "llm.model is blank"),
        ({"workers": 0}, "workers=0"),
        ({"max_retries": 1001}, "max_retries=1001"),
        *(({"timeout": seconds}, f"llm.timeout={seconds}") for seconds in (0, -1, NAN, INF, 1e9)),
        *(({name: rate}, f"llm.{name}={rate}; allowed: 1 and more") for name in RATES for rate in NO_RATE),
        ({"temperature": -1}, "temperature=-1"),
    ],
)
def test_wrong_values_are_named(options, message):
    with pytest.raises(InputError, match=message) as caught:
        OpenAILLM(**{"model": "m", **options})
    assert "secret" not in str(caught.value)
