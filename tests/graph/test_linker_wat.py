"""WAT on loopback: what is asked, kept and tried again, and what stops a run."""

from __future__ import annotations

import json
import logging
import threading
import urllib.parse
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from graphcontext.errors import InputError, RunError
from graphcontext.graph.entity_links import EntityLinks
from graphcontext.graph.linker_wat import WATLinker, links_of
from graphcontext.store import Store, Workspace
from tests.graph.passages import corpus, edges

SECRET = "0123-not-a-real-token"
KNOWN = {"Rome": [("Rome", 0.95)], "Rome and Paris": [("Rome", 0.95), ("Paris_(mythology)", 0.3)]}


def annotation(title: str, prior: float) -> dict[str, Any]:
    explained = {"prior_explanation": {"entity_mention_probability": prior}}
    return {"title": title, "rho": 0.1, "explanation": explained}


class Service:
    """Answers from what it knows, after the faults that a test gave it."""

    def __init__(self) -> None:
        self.asked: list[dict[str, str]] = []
        self.faults: list[tuple[int, dict[str, str], str]] = []
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                service.asked.append(dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query)))
                known = KNOWN.get(service.asked[-1]["text"], [])
                answer = json.dumps({"annotations": [annotation(*link) for link in known]})
                status, headers, text = service.faults.pop(0) if service.faults else (200, {}, answer)
                self.send_response(status)
                for key, value in {**headers, "Content-Length": str(len(text.encode()))}.items():
                    self.send_header(key, value)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/wat/tag/tag"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    @property
    def texts(self) -> list[str]:
        return [asked["text"] for asked in self.asked]


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.setenv("WAT_TOKEN_OF_TESTS", SECRET)
    started = Service()
    yield started
    started.close()


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    found: list[float] = []
    monkeypatch.setattr("graphcontext.generate.rate_limit.RateLimit.pause", lambda self, seconds: found.append(seconds))
    return found


def linker(service: Service, root: Path | None = None, **more: Any) -> WATLinker:
    made = WATLinker(service.url, "WAT_TOKEN_OF_TESTS", requests_per_minute=None, **more)
    if root is not None:
        made.bind(Workspace(Store(root), quiet=True))
    return made


def passages(*texts: str) -> Any:
    return corpus(*[("", text) for text in texts]).passages


def test_entities_are_titles_with_their_priors(service: Service) -> None:
    found = linker(service, method="prior:k=50").link(passages("Rome and Paris", "Rome", "Rome and Paris"))
    both = [("rome", 0.95), ("paris (mythology", 0.3)]
    assert found == [both, [("rome", 0.95)], both]
    assert service.texts == ["Rome", "Rome and Paris"]
    asked = {"gcube-token": SECRET, "lang": "en", "tokenizer": "nlp4j", "debug": "9", "method": "prior:k=50"}
    assert service.asked[0] == {**asked, "text": "Rome"}


def test_an_entity_named_twice_has_its_larger_prior() -> None:
    answer = {"annotations": [annotation("Rome", 0.2), annotation("Bern", 0.5), annotation("Rome", 0.9)]}
    assert links_of(answer) == [["rome", 0.9], ["bern", 0.5]]


def test_the_graph_joins_what_is_linked_above_the_threshold(service: Service) -> None:
    three = corpus(("Rome", "Nobody"), ("x", "Rome and Paris"), ("Paris (mythology)", "Nothing"))
    builder = EntityLinks(linker(service))
    builder.begin({three.id: three})
    assert edges(builder.build(three)) == [(0, 1), (1, 0)]
    assert edges(EntityLinks(linker(service), 0.2).build(three)) == [(0, 1), (1, 0), (1, 2), (2, 1)]


def test_what_was_answered_is_never_asked_again(service: Service, tmp_path: Path) -> None:
    first = linker(service, tmp_path).link(passages("Rome", "nothing"))
    again = linker(service, tmp_path)  # another process
    assert again.link(passages("nothing", "Rome")) == first[::-1]
    assert service.texts == ["Rome", "nothing"]
    linker(service, tmp_path, method="x").link(passages("Rome"))
    assert len(service.texts) == 3  # another method is another question
    assert all(SECRET not in file.read_text() for file in tmp_path.rglob("*.jsonl"))


def test_t10_faults_that_pass_are_waited_for(service: Service, pauses: list[float]) -> None:
    service.faults = [(429, {"Retry-After": "2"}, ""), (503, {}, "busy"), (200, {}, '{"annot'), (200, {}, "[]")]
    assert linker(service).link(passages("Rome")) == [[("rome", 0.95)]]
    assert (len(service.asked), pauses) == (5, [2.0, 2.0, 4.0, 8.0])


def test_texts_without_an_answer_end_the_run_and_are_asked_for_by_the_next(
    service: Service, tmp_path: Path, pauses: list[float]
) -> None:
    service.faults = [(500, {}, "")] * 2
    three = passages("Bern", "Oslo", "Rome")
    with pytest.raises(RunError, match=r"for 1 texts \(HTTP 500\); the other answers are kept"):
        linker(service, tmp_path, max_retries=1).link(three)
    assert service.texts == ["Bern", "Bern", "Oslo", "Rome"]
    assert linker(service, tmp_path).link(three) == [[], [], [("rome", 0.95)]]
    assert service.texts[4:] == ["Bern"]


@pytest.mark.parametrize("status", [400, 401, 403, 414])
def test_t10_a_refusal_stops_at_once_and_shows_no_token(service: Service, status: int) -> None:
    service.faults = [(status, {}, f"bad\ntoken {SECRET}")]
    with pytest.raises(
        RunError, match=rf"refuses the request: HTTP {status}: bad token \*\*\* \(token from WAT_"
    ) as told:
        linker(service).link(passages("Rome"))
    assert len(service.asked) == 1 and SECRET not in str(told.value)


def test_offline_is_one_line_with_the_linkers_that_need_no_network(pauses: list[float], monkeypatch) -> None:
    monkeypatch.setenv("WAT_TOKEN_OF_TESTS", SECRET)
    closed = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    closed.server_close()
    gone = WATLinker(f"http://127.0.0.1:{closed.server_port}/wat", "WAT_TOKEN_OF_TESTS")
    with pytest.raises(RunError, match="linker=titles and linker=spacy_ner need no network") as told:
        gone.link(passages("Rome"))
    assert pauses == [] and "\n" not in str(told.value) and SECRET not in str(told.value)


def test_t48_without_a_token_the_mend_is_told_and_nothing_is_sent(service: Service, monkeypatch) -> None:
    monkeypatch.delenv("WAT_TOKEN_OF_TESTS")
    with pytest.raises(InputError, match="linker=wat needs a token: export WAT_TOKEN_OF_TESTS"):
        linker(service).link(passages("Rome"))
    assert service.asked == []


def test_t48_no_log_shows_the_token(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.INFO)
    try:
        linker(service).link(passages("Rome"))
    finally:
        root.setLevel(level)
    assert SECRET not in caplog.text


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"endpoint": "https://me:key@host/wat"}, "which may be a key"),
        ({"endpoint": "ftp://host"}, "linker.endpoint=ftp://host; allowed: https://"),
        ({"token_env": "0123-no-name"}, "linker.token_env: no name of a variable"),
        ({"language": "en&x=y"}, "linker.language"),
        ({"tokenizer": ""}, "linker.tokenizer"),
        ({"max_retries": -1}, "linker.max_retries=-1"),
        ({"requests_per_minute": 0}, "linker.requests_per_minute=0"),
        ({"timeout": 0}, "linker.timeout=0"),
    ],
)
def test_values_that_are_not_allowed(more: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        WATLinker(**{"endpoint": "https://host/wat", "token_env": "TOKEN", **more})
    assert "key@" not in str(caught.value)
