"""What is read of a run, item by item."""

from __future__ import annotations

from pathlib import Path

from graphcontext import trace
from graphcontext.files import jsonl
from graphcontext.run_folder import Run, write_folder


def call(role: str, fingerprint: str, response: str, status: str = "ok") -> dict:
    said = {"messages": [{"role": "user", "content": fingerprint}], "response": response, "status": status}
    return {"role": role, "item": "7", "fingerprint": fingerprint, **said}


def test_a_call_that_failed_and_was_asked_again_is_its_answer(tmp_path: Path) -> None:
    failed = [call("agent", "first", "", "failed"), call("answer", "second", "", "failed")]
    again = [call("agent", "first", "next: sudo"), call("answer", "second", "", "failed")]
    calls = jsonl([*failed, *again, call("answer", "second", "yes")])
    empty = ("questions", "rankings", "contexts", "predictions", "scores")
    write_folder(tmp_path, {**{f"{name}.jsonl": "" for name in empty}, "calls.jsonl": calls}, {}, {})
    read = trace.read(Run(tmp_path)).calls["7"]
    assert [(c["role"], c["response"]) for c in read] == [("agent", "next: sudo"), ("answer", "yes")]
