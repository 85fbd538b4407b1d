"""What is read of a run, item by item."""

from __future__ import annotations

from pathlib import Path

from graphcontext import api, trace
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


def test_a_ranking_names_the_users_documents(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "mills.md").write_text("# Mills\n\nThe north mill stood by the river.\n")
    words = ("dataset=folder", f"dataset.path={folder}", "dataset.questions=q.jsonl", "retriever=tfidf")
    words += ("enhancer=none", "generator=none", "metric=[]", "packing.max_tokens=1")
    (folder / "q.jsonl").write_text('{"id": "1", "question": "Where is the mill?", "split": "test"}\n')
    run = api.run(*words, root=tmp_path)
    (heading, hits), *_ = trace.parts(trace.read(run), "1")
    assert heading.startswith("ranking") and hits.endswith("The north mill stood by the river.  (mills.md)")
