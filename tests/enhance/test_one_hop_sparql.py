"""One-hop triples from a SPARQL endpoint on loopback: what is asked, kept, tried again, and what stops a run."""

from __future__ import annotations

import json
import re
import threading
import urllib.parse
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from graphcontext.enhance import one_hop_sparql
from graphcontext.enhance.one_hop_sparql import OneHopSparql, literal, variants
from graphcontext.errors import InputError, RunError
from graphcontext.store import Store, Workspace

WD = "http://www.wikidata.org/entity/"
KNOWN = {  # name as it is there → (item, rank, property, relation, tail, label)
    "Linux": [("Q388", "0", "P31", "instance of", "Q9135", "operating system")],
    "kernel": [
        ("Q50053", "0", "P31", "instance of", "Q1", "seed"),
        ("Q14579", "1", "P361", "part of", "Q388", "Linux"),  # an alias: a label goes before it
        ("Q50053", "0", "P279", "subclass of", "Q2", "fruit"),
    ],
}


class Endpoint:
    """A SPARQL server that answers from what it knows, after the faults that a test gave it."""

    def __init__(self, known: dict[str, list[tuple[str, ...]]] = KNOWN) -> None:
        self.known = known
        self.queries: list[str] = []
        self.agents: set[str] = set()
        self.faults: list[tuple[int, dict[str, str], str]] = []
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                endpoint.queries.append(urllib.parse.parse_qs(body)["query"][0])
                endpoint.agents.add(self.headers["User-Agent"])
                fault = endpoint.faults.pop(0) if endpoint.faults else (200, {}, json.dumps(endpoint.answer()))
                status, headers, text = fault
                self.send_response(status)
                for key, value in {**headers, "Content-Length": str(len(text.encode()))}.items():
                    self.send_header(key, value)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/sparql"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    @property
    def asked(self) -> list[list[str]]:
        return [re.findall(r'"([^"]+)"@en', query) for query in self.queries]

    def answer(self) -> dict[str, Any]:
        rows = []
        for name in self.asked[-1]:
            for item, rank, relation_id, relation, tail, label in self.known.get(name, []):
                values = (name, WD + item, rank, WD + relation_id, relation, WD + tail, label)
                rows.append({key: {"value": value} for key, value in zip(one_hop_sparql.COLUMNS, values)})
        return {"results": {"bindings": rows[::-1]}}


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    server = Endpoint()
    yield server
    server.close()


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that a source was told to wait; none is waited."""
    found: list[float] = []
    monkeypatch.setattr("graphcontext.generate.rate_limit.RateLimit.pause", lambda self, seconds: found.append(seconds))
    return found


def source(endpoint: Endpoint, root: Path | None = None, **more: Any) -> OneHopSparql:
    made = OneHopSparql("wikidata", endpoint.url, "en", "tests (me@example.org)", requests_per_minute=None, **more)
    if root is not None:
        made.bind(Workspace(Store(root), quiet=True))
    return made


def test_a_name_is_asked_in_its_spellings_and_a_label_goes_before_an_alias(endpoint: Endpoint) -> None:
    found = source(endpoint).neighbours(["linux", "Kernel", " ", "LINUX"])
    assert found["linux"].triples == (("Linux", "instance of", "operating system"),)
    assert found["Kernel"].triples == (("kernel", "instance of", "seed"), ("kernel", "subclass of", "fruit"))
    assert found["LINUX"] == found["linux"] and found[" "].status == "empty"
    assert endpoint.asked == [["Kernel", "kernel", "KERNEL", "LINUX", "linux", "Linux"]]
    assert endpoint.agents == {"tests (me@example.org)"}


def test_what_was_answered_is_never_asked_again(endpoint: Endpoint, tmp_path: Path) -> None:
    first = source(endpoint, tmp_path, names_per_query=1).neighbours(["linux", "nothing"])
    assert (len(endpoint.queries), first["nothing"].status) == (2, "empty")
    again = source(endpoint, tmp_path, names_per_query=9)  # another process, in other batches
    assert again.neighbours(["nothing", "linux"]) == first and len(endpoint.queries) == 2
    again.neighbours(["linux", "kernel"])
    assert endpoint.asked[2] == ["kernel", "Kernel", "KERNEL"]
    german = OneHopSparql("wikidata", endpoint.url, "de", "tests", requests_per_minute=None)
    german.bind(Workspace(Store(tmp_path), quiet=True))
    german.neighbours(["linux"])
    assert len(endpoint.queries) == 4  # another language is another question


def test_an_answer_depends_on_how_a_name_is_written_and_on_no_other_name(tmp_path: Path) -> None:
    # no rule makes "OpenSSH" of "openssh": who writes the label finds it, who does not finds nothing, in any order
    endpoint = Endpoint({"OpenSSH": [("Q847062", "0", "P31", "instance of", "Q1", "free software")]})
    known = {"OpenSSH": "ok", "openssh": "empty"}
    for n, names in enumerate((["OpenSSH", "openssh"], ["openssh", "OpenSSH"], ["openssh"], ["OpenSSH"])):
        for store in (str(n), "one"):
            found = source(endpoint, tmp_path / store).neighbours(names)
            assert {name: answer.status for name, answer in found.items()} == {name: known[name] for name in names}
    endpoint.close()


def test_t10_faults_that_pass_are_waited_for(endpoint: Endpoint, pauses: list[float]) -> None:
    endpoint.faults = [(429, {"Retry-After": "2"}, ""), (503, {}, "busy"), (200, {}, '{"results": {"bind')]
    assert source(endpoint).neighbours(["linux"])["linux"].status == "ok"
    assert (len(endpoint.queries), pauses) == (4, [2.0, 2.0, 4.0])  # Retry-After; then 2^1 and 2^2 seconds


def test_half_a_surrogate_pair_in_an_answer_is_kept_as_a_replacement_character(tmp_path: Path) -> None:
    endpoint = Endpoint({"linux": [("Q388", "0", "P31", "instance of", "Q9135", "system \ud83d")]})
    assert source(endpoint, tmp_path).neighbours(["linux"])["linux"].triples == (("linux", "instance of", "system �"),)
    assert source(endpoint, tmp_path).neighbours(["linux"])["linux"].status == "ok"
    assert len(endpoint.queries) == 1  # the second found it in the store
    endpoint.close()


def test_an_answer_nested_without_end_fails_its_names_alone(endpoint: Endpoint, pauses: list[float]) -> None:
    endpoint.faults = [(200, {}, "[" * 100_000)]
    assert source(endpoint).neighbours(["linux"])["linux"].status == "ok"


def test_what_stays_without_an_answer_is_failed_and_asked_by_the_next_run(
    endpoint: Endpoint, tmp_path: Path, pauses: list[float]
) -> None:
    endpoint.faults = [(500, {}, "")] * 2
    found = source(endpoint, tmp_path, max_retries=1, names_per_query=1).neighbours(["kernel", "linux"])
    assert (found["kernel"].status, found["kernel"].reason) == ("failed", "HTTP 500")
    assert found["linux"].status == "ok"  # a fault of one batch is not another's
    assert source(endpoint, tmp_path).neighbours(["kernel", "linux"])["kernel"].status == "ok"
    assert endpoint.asked[-1] == ["kernel", "Kernel", "KERNEL"]
    endpoint.faults = [(429, {"Retry-After": "86400"}, "")]
    assert source(endpoint).neighbours(["kernel"])["kernel"].reason == "HTTP 429, it asks to wait 86400 s"


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_t10_a_refusal_stops_at_once(endpoint: Endpoint, status: int) -> None:
    endpoint.faults = [(status, {}, "no\nsuch thing")]
    with pytest.raises(RunError, match=rf"refuses the query: HTTP {status}: no such thing"):
        source(endpoint).neighbours(["linux"])
    assert len(endpoint.queries) == 1


def test_a_server_that_was_never_there_stops_at_once(pauses: list[float]) -> None:
    closed = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    closed.server_close()
    gone = OneHopSparql("wikidata", f"http://127.0.0.1:{closed.server_port}/sparql", "en", "tests")
    with pytest.raises(RunError, match="one_hop=file and one_hop=index need no network"):
        gone.neighbours(["linux"])
    assert pauses == []


def test_a_name_cannot_leave_its_literal() -> None:
    assert literal('a" } ; DROP \\ \n') == '"a\\" } ; DROP \\\\  "'
    assert variants(" SSH  key") == ["SSH key", "ssh key", "Ssh key", "Ssh Key", "SSH KEY"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"endpoint": "https://me:key@host/sparql"}, "which may be a key"),
        ({"endpoint": "ftp://host"}, "allowed: https://"),
        ({"language": 'en" }'}, "a code such as en"),
        ({"user_agent": "a\r\nX: y"}, "a name with a contact"),
        ({"names_per_query": 0}, "names_per_query=0"),
        ({"max_retries": -1}, "one_hop.max_retries=-1"),
        ({"timeout": float("inf")}, "one_hop.timeout=inf"),
        ({"requests_per_minute": 0}, "one_hop.requests_per_minute=0; allowed: 1 and more"),
        ({"endpoint": "http://"}, "one_hop.endpoint=http://; allowed: https://"),
    ],
)
def test_values_that_are_not_allowed(more: dict[str, Any], said: str) -> None:
    given = {"name": "w", "endpoint": "https://host/sparql", "language": "en", "user_agent": "tests", **more}
    with pytest.raises(InputError, match=said) as caught:
        OneHopSparql(**given)
    assert "key@" not in str(caught.value)
