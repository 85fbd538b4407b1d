"""Artefacts: current or not, begun again, full disks; the call log."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import threading
from pathlib import Path

import pytest

from graphcontext import hashes, store
from graphcontext.errors import InputError, RunError
from graphcontext.files import append_lines, digest, read_lines, write_atomic
from graphcontext.store import Artefact, CallLog, Store, Workspace


@pytest.fixture
def artefact(tmp_path: Path) -> Artefact:
    return Store(tmp_path / "store").artefact("prediction", "0" * 64)


def content(artefact: Artefact) -> str:
    assert artefact.finished is not None
    return digest(artefact.finished["files"])


def fill(artefact: Artefact, text: str, inputs: dict[str, str], **facts: object) -> None:
    with artefact.lock():
        artefact.begin(inputs)
        write_atomic(artefact.path / "predictions.jsonl", text)
        artefact.finish(dict(facts), inputs)


def names(artefact: Artefact) -> list[str]:
    return sorted(p.name for p in artefact.path.iterdir())


def test_an_artefact_is_current_for_its_inputs_only(artefact: Artefact) -> None:
    assert artefact.finished is None and not artefact.is_current({"context": "a"})
    fill(artefact, "x\n", {"context": "a"}, n=1)
    assert artefact.is_current({"context": "a"})
    assert not artefact.is_current({"context": "b"}) and not artefact.is_current({})


def test_a_damaged_note_of_what_was_begun_is_said(tmp_path: Path, capsys) -> None:
    artefact = Store(tmp_path).artefact("context", "k")
    with artefact.lock():
        artefact.begin({"corpus": "a"})
        (artefact.path / "begun.json").write_text('{"cor')
        artefact.begin({"corpus": "a"})
    said = "context/k: begun.json is not what was stored; what was begun there is begun anew\n"
    assert capsys.readouterr().err == said
    assert json.loads((artefact.path / "begun.json").read_text()) == {"corpus": "a"}


def test_one_with_failed_items_is_to_be_retried(artefact: Artefact) -> None:
    fill(artefact, "x\n", {}, n_failed=1)
    assert not artefact.is_current({})
    fill(artefact, "x\n", {}, n_failed=0)
    assert artefact.is_current({})


def test_the_hash_of_its_files_leaves_out_calls_locks_and_temporaries(artefact: Artefact) -> None:
    fill(artefact, "x\n", {"context": "a"})
    before = content(artefact)
    append_lines(artefact.path / "calls.jsonl", [{"seconds": 0.3}])
    (artefact.path / ".predictions.jsonl.1.tmp").write_text("cut")
    with artefact.lock():
        artefact.finish({"seconds": 9}, {"context": "a"})
    assert content(artefact) == before
    fill(artefact, "y\n", {"context": "a"})
    assert content(artefact) != before


def test_folders_are_hashed_but_for_what_a_training_goes_on_from(artefact: Artefact) -> None:
    for name in ("1_Pooling/config.json", "2_Normalize/.x", "checkpoints/last.pt", "wandb/run/files/a", ".x.tmp/a"):
        write_atomic(artefact.path / name, name)
    fill(artefact, "x\n", {})
    assert artefact.finished is not None
    assert list(artefact.finished["files"]) == ["1_Pooling/config.json", "predictions.jsonl"]


def test_an_unfinished_one_or_one_with_a_damaged_mark_is_not_finished(artefact: Artefact) -> None:
    assert artefact.finished is None
    fill(artefact, "x\n", {})
    (artefact.path / "done.json").write_text('{"files": {"a"')
    assert artefact.finished is None


def test_begin_goes_on_with_equal_inputs_and_clears_all_but_calls_with_others(artefact: Artefact) -> None:
    with artefact.lock():
        artefact.begin({"context": "a"})
        for name in ("predictions.jsonl.part", "calls.jsonl"):
            (artefact.path / name).write_text('{"kept": 1}\n')
        artefact.begin({"context": "a"})
        assert names(artefact) == ["begun.json", "calls.jsonl", "predictions.jsonl.part"]
        artefact.begin({"context": "b"})
    assert names(artefact) == ["begun.json", "calls.old.jsonl"]  # answers in use are taken from there
    assert json.loads((artefact.path / "begun.json").read_text()) == {"context": "b"}


def test_t11_killed_while_clearing_leaves_no_line_of_the_old_inputs(artefact: Artefact, monkeypatch) -> None:
    unlink = Path.unlink
    old = ("predictions.jsonl.part", "graph.npz", "done.json")
    iterdir = Path.iterdir
    for killed_after, backwards in [(n, b) for n in range(5) for b in (False, True)]:
        with artefact.lock():
            artefact.path.mkdir(parents=True, exist_ok=True)
            (artefact.path / "begun.json").write_text(json.dumps({"context": "a"}))
            for name in old:
                (artefact.path / name).write_text("old")
            left = [killed_after]

            def killed(path: Path, missing_ok: bool = False, left: list[int] = left) -> None:
                if path.parent == artefact.path and left[0] == 0:
                    raise KeyboardInterrupt
                left[0] -= path.parent == artefact.path
                unlink(path, missing_ok)

            with monkeypatch.context() as patched:
                patched.setattr(Path, "unlink", killed)
                patched.setattr(Path, "iterdir", lambda p, b=backwards: iter(sorted(iterdir(p), reverse=b)))
                with contextlib.suppress(KeyboardInterrupt):
                    artefact.begin({"context": "b"})
            artefact.begin({"context": "b"})
            assert names(artefact) == ["begun.json"], f"killed after {killed_after} files"


def test_a_full_disk_leaves_it_unfinished_and_is_one_line(artefact: Artefact, monkeypatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with artefact.lock():
        artefact.begin({})
        write_atomic(artefact.path / "predictions.jsonl", "x\n")
        monkeypatch.setattr(os, "replace", full)
        with pytest.raises(RunError, match=r"disk full while writing .*done\.json") as raised:
            artefact.finish({}, {})
    assert "\n" not in str(raised.value) and raised.value.exit_code == 1
    assert artefact.finished is None
    assert names(artefact) == ["begun.json", "predictions.jsonl"]


def test_one_whose_lease_was_lost_is_neither_finished_nor_cleared(artefact: Artefact, monkeypatch) -> None:
    fill(artefact, "theirs\n", {"context": "a"})
    done = (artefact.path / "done.json").read_bytes()

    def lose() -> None:
        artefact.path.with_name(f"{artefact.key}.lock").write_text(json.dumps({"nonce": "other"}))

    with artefact.lock():
        lose()
        for late in (lambda: artefact.finish({}, {}), artefact.clear, lambda: artefact.begin({"context": "b"})):
            with pytest.raises(RunError, match="taken over by another process while this process slept"):
                late()
    artefact.path.with_name(f"{artefact.key}.lock").unlink()

    def hash_slowly(path: Path) -> str:
        lose()
        return "0"

    monkeypatch.setattr(hashes, "hash_file", hash_slowly)  # lost while gigabytes are hashed
    with artefact.lock(), pytest.raises(RunError, match="taken over"):
        artefact.finish({}, {})
    assert names(artefact) == ["begun.json", "done.json", "predictions.jsonl"]
    assert (artefact.path / "done.json").read_bytes() == done


def test_what_killed_processes_left_is_swept_when_the_work_goes_on(artefact: Artefact) -> None:
    left = (".done.json.77.0123abcd.tmp", "checkpoints/.best-2.pt.78.0123abcd.tmp", ".files.79.0123abcd.tmp/model")
    for name in (*left, "checkpoints/best-2.pt", ".keep.tmp", "own.tmp"):
        (artefact.path / name).parent.mkdir(parents=True, exist_ok=True)
        (artefact.path / name).write_text("x")
    with artefact.lock():
        assert names(artefact) == [".keep.tmp", "checkpoints", "own.tmp"]
        assert [p.name for p in (artefact.path / "checkpoints").iterdir()] == ["best-2.pt"]


@pytest.mark.parametrize("place", ["store", "store/prediction", "store/prediction/k"])
@pytest.mark.parametrize("dangling", [False, True])
def test_a_file_in_the_place_of_a_folder_is_wrong_input(tmp_path: Path, place: str, dangling: bool) -> None:
    path = tmp_path / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to("gone") if dangling else path.write_text("")
    what = "a link to nothing" if dangling else "a file"
    with pytest.raises(InputError, match=f"{place} is {what}, where a folder is wanted; move it away"):
        Store(tmp_path / "store").artefact("prediction", "k")


def test_a_file_rewritten_at_once_with_equal_length_has_another_hash(artefact: Artefact) -> None:
    seen = set()
    for n in range(8):  # faster than the clock of the file system
        fill(artefact, f"{n}\n", {})
        seen.add(content(artefact))
    assert len(seen) == 8


CALL = {"role": "answer", "item": "q1", "fingerprint": "f", "response": "yes", "status": "ok"}


def test_t11_an_answered_call_is_never_asked_again_and_a_failed_one_is(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    log = CallLog(path)
    log.append(CALL | {"status": "failed"})
    assert log.get("answer", "q1", "f") is None
    log.append(CALL)
    log.append(CALL | {"item": "q2", "status": "empty", "response": ""})
    path.write_bytes(path.read_bytes() + b'{"role": "answer", "item": "q3", "finger')  # killed in mid-line
    again = CallLog(path)
    assert again.get("answer", "q1", "f") == CALL
    assert again.get("answer", "q2", "f")["status"] == "empty"
    assert again.get("answer", "q3", "f") is None
    assert again.get("judge", "q1", "f") is None and again.get("answer", "q1", "g") is None


def test_threads_append_whole_lines(tmp_path: Path) -> None:
    told: list[int] = []
    log = CallLog(tmp_path / "calls.jsonl", told.append)

    def work(name: int) -> None:
        for n in range(20):
            log.append(CALL | {"item": f"{name}-{n}"})

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = read_lines(tmp_path / "calls.jsonl")
    assert {row["item"] for row in rows} == {f"{t}-{n}" for t in range(4) for n in range(20)}
    assert len(rows) == len(told) == max(told) == 80


def test_calls_are_open_during_a_stage_only(artefact: Artefact, tmp_path: Path) -> None:
    workspace = Workspace(Store(tmp_path / "store"), quiet=True)
    artefact.path.mkdir(parents=True)
    with workspace.stage(artefact, 3) as advance:
        assert workspace.calls is not None
        workspace.calls.append(CALL)
        advance(3)
    assert workspace.calls is None
    assert read_lines(artefact.path / "calls.jsonl") == [CALL]


@pytest.mark.parametrize("done", ["[]", "{", '{"files": [], "inputs": {}, "facts": {}}', '{"files": {}, "inputs": {}}'])
def test_a_damaged_done_file_is_as_good_as_none(tmp_path: Path, done: str) -> None:
    (tmp_path / "done.json").write_text(done)
    assert Artefact("score", "k", tmp_path).finished is None


def test_a_log_is_told_how_far_a_long_stage_is(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.setattr(store, "EVERY", 0.0)
    for quiet in (False, True):
        workspace = Workspace(Store(tmp_path), quiet=quiet, label="text_gen")
        artefact = workspace.store.artefact("prediction", f"k{quiet}")
        artefact.path.mkdir(parents=True)
        with workspace.stage(artefact, 3) as advance:
            workspace.calls.append({"role": "answer", "item": "1", "fingerprint": "f"})
            advance(2)
    told = "prediction text_gen: 1 of 3 items, 1 calls\nprediction text_gen: 2 of 3 items, 1 calls\n"
    assert capsys.readouterr().err == told


@pytest.mark.parametrize(
    ("role", "wanted"),
    [
        ("answer", ["2 of 3 items, 2 calls", "3 of 3 items, 3 calls"]),  # one call is one item
        ("agent", ["2 calls", "3 of 3 items, 3 calls"]),  # an item may need any number of them
    ],
)
def test_items_of_one_call_are_done_as_they_are_answered_and_the_last_line_says_all(
    tmp_path: Path, capsys, monkeypatch, role, wanted
) -> None:
    now = [0.0]
    monkeypatch.setattr(store.time, "monotonic", lambda: now[0])
    workspace = Workspace(Store(tmp_path))
    artefact = workspace.store.artefact("prediction", "k")
    artefact.path.mkdir(parents=True)
    with workspace.stage(artefact, 3) as advance:
        for n, at in enumerate((10, 65, 70)):  # seconds
            now[0] = at
            workspace.calls.append({"role": role, "item": str(n), "fingerprint": "f"})
        advance(3)
    assert capsys.readouterr().err.splitlines() == [f"prediction: {line}" for line in wanted]


def test_a_resumed_stage_counts_what_was_answered_and_no_failure(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.setattr(store, "EVERY", 0.0)
    workspace = Workspace(Store(tmp_path))
    artefact = workspace.store.artefact("prediction", "k")
    artefact.path.mkdir(parents=True)
    append_lines(artefact.path / "calls.jsonl", [CALL, CALL | {"item": "q2", "status": "failed"}])
    with workspace.stage(artefact, 4):
        workspace.calls.append(CALL | {"item": "q3"})
    assert capsys.readouterr().err == "prediction: 2 of 4 items, 3 calls\n"


def test_a_short_stage_says_nothing(tmp_path: Path, capsys) -> None:
    workspace = Workspace(Store(tmp_path))
    artefact = workspace.store.artefact("prediction", "k")
    artefact.path.mkdir(parents=True)
    with workspace.stage(artefact, 1) as advance:
        workspace.calls.append(CALL)
        advance(1)
    assert capsys.readouterr().err == ""
