"""Stages: computed once, verified when read, and downstream of what was read."""

from __future__ import annotations

import json
from pathlib import Path

from graphcontext.stage import Stages
from graphcontext.store import Artefact, Store, Workspace


def stages(root: Path) -> Stages:
    return Stages(Workspace(Store(root / "store")))


def run(found: Stages, name: str, text: str, inputs: list[str] = [], **facts: int) -> str:  # noqa: B006
    def make(artefact: Artefact) -> dict[str, int]:
        (artefact.path / "text").write_text(text)
        return facts

    return found.run(name, "k", inputs, make, lambda path: (path / "text").read_text())


def test_a_second_run_reads_what_the_first_made(tmp_path: Path) -> None:
    assert run(stages(tmp_path), "context", "first") == "first"
    assert run(stages(tmp_path), "context", "second") == "first"


def test_a_damaged_file_is_computed_again_and_said(tmp_path: Path, capsys) -> None:
    run(stages(tmp_path), "context", "whole")
    (tmp_path / "store/context/k/text").write_text("who")
    assert run(stages(tmp_path), "context", "whole") == "whole"
    assert "context/k: text is not what was stored; computing it again" in capsys.readouterr().err


def test_a_damaged_or_deleted_done_file_is_not_done(tmp_path: Path) -> None:
    run(stages(tmp_path), "context", "first")
    for damage in ('{"files": {', "[]", ""):
        (tmp_path / "store/context/k/done.json").write_text(damage)
        assert run(stages(tmp_path), "context", "again") == "again"
        assert json.loads((tmp_path / "store/context/k/done.json").read_text())["files"]


def test_a_later_stage_is_made_from_what_its_run_read_not_from_what_lies_there_now(tmp_path: Path) -> None:
    """Two rows share a context; the second makes it again (a retry) before the first generates from the old one."""
    first, second = stages(tmp_path), stages(tmp_path)
    assert run(first, "context", "2 units", n_retry=1) == "2 units"
    assert run(second, "context", "3 units") == "3 units"
    assert run(first, "prediction", "from 2 units", ["context"]) == "from 2 units"
    later = stages(tmp_path)
    assert run(later, "context", "unused") == "3 units"
    assert run(later, "prediction", "from 3 units", ["context"]) == "from 3 units"


def test_answered_calls_that_are_still_in_use_survive_other_inputs(tmp_path: Path) -> None:
    artefact = Store(tmp_path).artefact("prediction", "k")
    with artefact.lock():
        artefact.begin({"context": "1"})
        call = {"role": "answer", "item": "q", "fingerprint": "f", "status": "ok"}
        (artefact.path / "calls.jsonl").write_text(json.dumps(call) + "\n")
        artefact.begin({"context": "2"})
    with Workspace(Store(tmp_path)).stage(artefact, 1):
        assert not (artefact.path / "calls.jsonl").exists()
    workspace = Workspace(Store(tmp_path), quiet=True)
    with workspace.stage(artefact, 1):
        assert workspace.calls is not None
        assert workspace.calls.get("answer", "q", "other") is None
        assert workspace.calls.get("answer", "q", "f") is not None
    assert len((artefact.path / "calls.jsonl").read_text().splitlines()) == 1  # only what is in use
