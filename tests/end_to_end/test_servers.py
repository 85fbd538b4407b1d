"""Whole runs against servers: a remote one that fails as told, and a real llama.cpp one that the run starts itself."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import finish, results, start
from tests.generate.fault_server import Asked, FaultServer, answer, say

from graphcontext import cli
from graphcontext.files import read_lines

pytestmark = pytest.mark.end_to_end
TEN = ("dataset.limit=10", "retriever=tfidf", "enhancer=none", "tokenizer=words", "metric=[rouge1,rougeL]")
SERVED_AS = "llm.served_as=echo"  # the results' key holds it instead of the address
KEY = "sk-secret-4711-0815"


@pytest.fixture
def server() -> Iterator[FaultServer]:
    server = FaultServer(answer("ss -tlnp {item}"))
    yield server
    server.close()


def words(server: FaultServer, *more: str) -> tuple[str, ...]:
    return ("run", "--quiet", *TEN, "llm=openai", f"llm.base_url={server.url}", SERVED_AS, *more)


def run(folder: Path, server: FaultServer, *more: str, **environment: str) -> Path:
    folder.mkdir(exist_ok=True)
    out, _ = finish(start(folder, *words(server, *more), **environment))
    return folder / out.splitlines()[-1].removeprefix("run: ")


def prompts(server: FaultServer) -> Counter[str]:
    """How often each question was asked."""
    return Counter(json.dumps(asked.body["messages"]) for asked in server.asked)


@pytest.mark.parametrize("at", [1, 4, 10])
def test_t11_killed_with_a_request_in_flight_it_asks_no_answered_question_again(tmp_path, server, at) -> None:
    client: list[int] = []

    def kill(connection: socket.socket, asked: Asked) -> None:
        if len(server.asked) == at and client:
            os.kill(client.pop(), signal.SIGKILL)
            raise OSError("its client is gone")
        answer("ss -tlnp {item}")(connection, asked)

    server.usual = kill
    (tmp_path / "killed").mkdir()
    process = start(tmp_path / "killed", *words(server, "llm.workers=1"))
    client.append(process.pid)
    process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL and len(server.asked) == at
    resumed = run(tmp_path / "killed", server, "llm.workers=1")
    counts = prompts(server)
    assert len(counts) == 10 and counts.total() == 11  # the one that was in flight is asked twice, the others once
    undisturbed = FaultServer(answer("ss -tlnp {item}"))
    try:
        other = run(tmp_path / "undisturbed", undisturbed, "llm.workers=3")
    finally:
        undisturbed.close()
    names = [name for name in results(resumed) if not name.startswith("config")]  # it names the port
    assert resumed.name == other.name and results(resumed, names) == results(other, names)


def test_one_questions_fault_is_counted_and_the_next_run_asks_only_it(tmp_path, server) -> None:
    first: list[str] = []

    def refuse(connection: socket.socket, asked: Asked) -> None:
        first.append(json.dumps(asked.body["messages"])) if not first else None
        mine = json.dumps(asked.body["messages"]) == first[0]
        (say(400, {"error": "too long"}) if mine else answer())(connection, asked)

    server.usual = refuse
    made = run(tmp_path, server)
    assert json.loads((made / "metrics.json").read_text())["n_failed"] == 1
    assert [r["reason"] for r in read_lines(made / "predictions.jsonl") if r["status"] == "failed"] == [
        'HTTP 400: {"error": "too long"}'
    ]
    assert prompts(server).total() == 10
    server.usual = answer()
    again = run(tmp_path, server)
    assert again == made and json.loads((made / "metrics.json").read_text())["n_failed"] == 0
    counts = prompts(server)
    assert counts.total() == 11 and counts[first[0]] == 2


def test_t10_t48_a_refused_key_ends_the_run_in_one_line_without_the_key(tmp_path, server) -> None:
    server.usual = say(401, {"error": f"wrong key {KEY}"}, X_Key=KEY)
    process = start(tmp_path, *words(server, "llm.api_key_env=MY_KEY"), MY_KEY=KEY)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (1, "")
    assert err.startswith("error: ") and "refuses the key: HTTP 401" in err and err.count("\n") == 1
    assert 1 <= len(server.asked) <= 8  # what was under way
    server.usual = say(200, {"choices": [{"message": {"content": f"it is {KEY}"}, "finish_reason": "stop"}]})
    made = run(tmp_path, server, "llm.api_key_env=MY_KEY", MY_KEY=KEY)
    assert {r["prediction"] for r in read_lines(made / "predictions.jsonl")} == {"it is ***"}
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 10 and not any(KEY.encode() in path.read_bytes() for path in files) and KEY not in err


# -- a server of the run's own -------------------------------------------------------------------

ONE = ("dataset.limit=1", "retriever=tfidf", "retriever.top_k=1", "metric=[rouge1]", "limits.max_new_tokens=8")


@pytest.mark.needs_models
@pytest.mark.slow
def test_one_llama_cpp_server_for_all_roles_of_a_run_and_the_same_bytes_each_time(tmp_path) -> None:
    pytest.importorskip("xllamacpp")
    more = ("enhancer=triples", "extractor=llm", "extractor.max_new_tokens=8", "llm=smollm2", "llm.serve=llama_cpp")
    made = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        out, err = finish(start(tmp_path / name, "run", "--quiet", *ONE, *more))
        assert err.count("starting llama_cpp for smollm2") == 1  # extractor and answer share it
        made.append(tmp_path / name / out.splitlines()[-1].removeprefix("run: "))
    assert results(made[0]) == results(made[1])
    roles = Counter(row["role"] for row in read_lines(made[0] / "calls.jsonl"))
    assert roles == {"answer": 1, "extractor": 1}
    manifest = (made[0] / "manifest.json").read_text() + (made[0] / "config.yaml").read_text()
    assert "serve: llama_cpp" in manifest and "127.0.0.1" not in manifest
    out, err = finish(start(tmp_path / "first", "run", "--quiet", *ONE, *more))
    assert "starting" not in err  # nothing is asked, nothing is started


PAPER = ("run", *TEN, "llm=llama2_13b", "scale=paper", "dataset=cqa_sample")


@pytest.mark.parametrize("verb", [PAPER, ("table", "gcg/t3", "table.rows=text_gen")], ids=["run", "table"])
def test_a_server_that_is_not_installed_is_answered_before_any_work(tmp_path, monkeypatch, capsys, verb) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert cli.main([*verb, "llm.serve=vllm"]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "llm.serve=vllm needs the command vllm: pip install vllm" in err
    assert not (tmp_path / "runs").exists()
