"""A traversal killed among its agent's calls ends in the bytes of an undisturbed one, and asks nothing twice."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from processes import FLAGS, finish, results, start

from graphcontext.files import read_lines

pytestmark = pytest.mark.end_to_end
# five questions, two seeds each: ten calls; the scored part is retrieval
FIVE = (
    *("dataset=multihop_sample", "dataset.limit=5", "llm=echo", "llm.batch_size=1"),
    *("retriever=traversal", "agent=chat", "retriever.use_graph=false", "retriever.top_k=4", "retriever.branching=2"),
    *("enhancer=none", "tokenizer=words", "generator=none", "metric=[recall@k]", "metric.recall@k.k=4"),
)


def run(folder: Path, *more: str, **environment: str) -> Path:
    out, _ = finish(start(folder, "run", *FLAGS, *FIVE, *more, **environment))
    return folder / out.splitlines()[-1].removeprefix("run: ")


def test_t11_killed_after_three_of_ten_calls_it_asks_the_other_seven(tmp_path: Path) -> None:
    undisturbed = tmp_path / "undisturbed"
    killed = tmp_path / "killed"
    undisturbed.mkdir()
    killed.mkdir()
    log = tmp_path / "log"
    process = start(killed, "run", *FLAGS, *FIVE, ECHO_LOG=str(log), ECHO_KILL="3")
    process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL
    asked = log.read_text().split()
    assert len(asked) == 3 and all(item.count("/") == 1 for item in asked)  # question/seed

    again = run(killed, ECHO_LOG=str(log))
    assert len(log.read_text().split()) == 10 and len(set(log.read_text().split())) == 10
    expected = run(undisturbed)
    assert results(again) == results(expected)
    calls = [read_lines(folder / "calls.jsonl") for folder in (again, expected)]
    assert [[row["item"] for row in rows] for rows in calls] == [[row["item"] for row in calls[0]]] * 2
    assert {row["role"] for row in calls[0]} == {"agent"} and len(calls[0]) == 10

    # T51: another number of seeds is another ranking; the old run stays
    other = run(killed, "retriever.n_seeds=1", ECHO_LOG=str(log))
    assert other != again and again.is_dir() and len(log.read_text().split()) == 15
