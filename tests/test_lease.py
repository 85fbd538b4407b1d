"""Leases between real processes: exclusive, taken over from the dead, kept by the living."""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pytest

from graphcontext import lease
from graphcontext.errors import RunError
from graphcontext.files import append_lines, put_below, read_lines, write_atomic
from graphcontext.lease import Lease

SRC = Path(__file__).parents[1] / "src"
HOLD = """
import sys, time
from pathlib import Path
from graphcontext.lease import Lease
with Lease(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(float(sys.argv[2]))
"""
COUNT = """
import sys
from pathlib import Path
from graphcontext.lease import Lease
lock, count = Path(sys.argv[1]), Path(sys.argv[2])
for _ in range(int(sys.argv[3])):
    with Lease(lock):
        n = int(count.read_text())
        count.write_text(str(n + 1))
"""


def start(code: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(SRC)}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that holds ``x.lock`` for a minute."""
    process = start(HOLD, tmp_path / "x.lock", 60)
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()


def in_thread(lock: Lease) -> tuple[threading.Thread, threading.Event]:
    """Take ``lock`` in a thread; the event is set once it is held."""
    held = threading.Event()

    def take() -> None:
        with lock:
            held.set()

    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    return thread, held


def test_a_lock_names_its_owner_and_goes_when_it_is_released(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "77")
    path = tmp_path / "new" / "x.lock"
    with Lease(path):
        owner = json.loads(path.read_text())
        assert (owner["host"], owner["pid"], owner["job"]) == (socket.gethostname(), os.getpid(), "77")
        assert [p.name for p in path.parent.iterdir()] == ["x.lock"]
    assert list(path.parent.iterdir()) == []


def test_a_lock_is_released_when_the_work_raises(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), Lease(tmp_path / "x.lock"):
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_another_process_waits_until_the_owner_is_killed(tmp_path: Path, holder, capfd) -> None:
    path = tmp_path / "x.lock"
    thread, held = in_thread(Lease(path))
    assert not held.wait(0.6)  # the holder lives: no one else gets it
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    thread.join(20)
    assert held.is_set()
    assert not path.exists()
    assert f"pid {holder.pid}" in capfd.readouterr().err


def test_a_reused_pid_is_not_taken_for_the_owner(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    owner = {
        "host": socket.gethostname(),
        "namespace": lease._pid_namespace(),
        "pid": os.getpid(),
        "started": "before the reboot",
        "nonce": "n",
    }
    path.write_text(json.dumps(owner))
    thread, held = in_thread(Lease(path))
    thread.join(20)
    assert held.is_set()


def test_another_hosts_lock_is_taken_over_only_when_it_is_silent(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "x.lock"
    path.write_text(json.dumps({"host": "node17", "pid": 1, "started": "1", "job": "9", "nonce": "n"}))
    thread, held = in_thread(Lease(path))
    assert not held.wait(0.6)  # whether node17 lives cannot be told from here
    monkeypatch.setattr(lease, "STALE", 0.1)
    thread.join(20)
    assert held.is_set()


def test_the_heartbeat_keeps_a_lock_that_others_would_take(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(lease, "HEARTBEAT", 0.05)
    path = tmp_path / "x.lock"
    with Lease(path):
        os.utime(path, (1, 1))
        deadline = time.monotonic() + 20
        while path.stat().st_mtime < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert path.stat().st_mtime > time.time() - 20


def test_an_owner_that_was_taken_over_leaves_the_new_lock_alone(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    with Lease(path):
        path.write_text(json.dumps({"host": "node17", "pid": 1, "started": "1", "nonce": "other"}))
    assert json.loads(path.read_text())["nonce"] == "other"


@pytest.mark.parametrize("content", ["", '{"host": "node17"', "[]", '{"host": "node17"}'])
def test_a_lock_cut_short_by_a_power_failure_does_not_hang_for_ever(tmp_path: Path, monkeypatch, content) -> None:
    path = tmp_path / "x.lock"
    path.write_text(content)
    thread, held = in_thread(Lease(path))
    assert not held.wait(0.5)  # it may be in the making
    monkeypatch.setattr(lease, "STALE", 0.1)
    thread.join(20)
    assert held.is_set()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("owner_was_killed", [False, True])
def test_no_two_owners_under_contention(tmp_path: Path, owner_was_killed: bool) -> None:
    lock, count = tmp_path / "x.lock", tmp_path / "count"
    count.write_text("0")
    if owner_was_killed:
        lock.write_text(
            json.dumps(
                {
                    "host": socket.gethostname(),
                    "namespace": lease._pid_namespace(),
                    "pid": 2**22 + 1,
                    "started": "1",
                    "nonce": "n",
                }
            )
        )
    workers = [start(COUNT, lock, count, 10) for _ in range(4)]
    errors = [worker.communicate(timeout=60)[1] for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * 4, errors
    assert count.read_text() == "40"  # 4 processes x 10: an increment under two owners would be lost
    assert sorted(p.name for p in tmp_path.iterdir()) == ["count"]


def test_a_fresh_lock_is_not_taken_for_the_stale_one_that_was_there(tmp_path: Path, monkeypatch) -> None:
    path, late = tmp_path / "x.lock", Lease(tmp_path / "x.lock")
    path.write_text(json.dumps({"host": "node17", "pid": 1, "started": "1", "nonce": "stale"}))
    os.utime(path, (1, 1))
    seen = late._owner()  # a waiter finds it stale, and is then overtaken by another
    assert seen is not None and late._is_stale(seen)
    with Lease(path):
        fresh = path.stat().st_ino
        monkeypatch.setattr(os, "rename", lambda *_: pytest.fail("the fresh lock was away for a moment"))
        late._take_away(seen)
        assert path.stat().st_ino == fresh


def test_a_taker_that_was_killed_does_not_block_for_ever(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(lease, "STALE", 0.2)
    path = tmp_path / "x.lock"
    path.write_text(json.dumps({"host": "node17", "pid": 1, "started": "1", "nonce": "n"}))
    (tmp_path / ".x.lock.takeover").touch()
    thread, held = in_thread(Lease(path))
    thread.join(20)
    assert held.is_set() and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOTSUP, errno.ENOSYS])
def test_a_file_system_without_hard_links_works_too(tmp_path: Path, monkeypatch, code: int) -> None:
    def refuse(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "link", refuse)
    with Lease(tmp_path / "x.lock"):
        thread, held = in_thread(Lease(tmp_path / "x.lock"))
        assert not held.wait(0.5)
    thread.join(20)
    assert held.is_set()


def test_a_full_disk_is_one_line_and_leaves_no_lock(tmp_path: Path, monkeypatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(RunError, match="disk full while writing"), Lease(tmp_path / "x.lock"):
        pass
    assert list(tmp_path.iterdir()) == []


def taken_over(path: Path) -> None:
    """Put another process' lock in the place of ours, as if this one had slept."""
    path.write_text(json.dumps({"host": "node17", "pid": 12, "started": "1", "nonce": "other"}))


def test_a_lock_that_was_taken_over_is_known_lost(tmp_path: Path) -> None:
    path = tmp_path / "adapter" / "abc.lock"
    with Lease(path) as mine:
        mine.check()
        taken_over(path)
        said = r"^adapter/abc was taken over by node17 pid 12 while this process slept; nothing more is written"
        with pytest.raises(RunError, match=said) as lost:
            mine.check()
        assert "\n" not in str(lost.value) and lost.value.exit_code == 1
        for content in ("", "[]"):  # the other writes its name just now
            path.write_text(content)
            with pytest.raises(RunError, match="taken over by another process"):
                mine.check()
        path.unlink()  # the other has done its work
        with pytest.raises(RunError, match="taken over by another process"):
            mine.check()


def test_the_heartbeat_does_not_bring_a_lost_lock_back(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(lease, "HEARTBEAT", 0.01)
    path = tmp_path / "x.lock"
    with Lease(path) as mine:
        taken_over(path)
        os.utime(path, (1, 1))
        beats = threading.Event()
        check = mine.check
        monkeypatch.setattr(mine, "check", lambda: (beats.set(), check()))
        assert beats.wait(20)
    assert path.stat().st_mtime == 1


def test_after_a_loss_nothing_below_its_folder_is_written(tmp_path: Path) -> None:
    folder = tmp_path / "abc"
    with Lease(tmp_path / "abc.lock", guards=folder):
        write_atomic(folder / "checkpoints" / "best-2.pt", "ours")
        append_lines(folder / "x.part", [{"id": "1"}])
        taken_over(tmp_path / "abc.lock")
        (folder / "checkpoints" / "best-2.pt").write_text("theirs")
        for write in (
            lambda: write_atomic(folder / "checkpoints" / "best-2.pt", "late"),
            lambda: append_lines(folder / "x.part", [{"id": "2"}]),
            lambda: put(folder),
        ):
            with pytest.raises(RunError, match="taken over"):
                write()
        write_atomic(tmp_path / "elsewhere", "text")
    assert (folder / "checkpoints" / "best-2.pt").read_text() == "theirs"
    assert sorted(p.name for p in folder.rglob("*")) == ["best-2.pt", "checkpoints", "x.part"]
    assert len(read_lines(folder / "x.part")) == 1
    write_atomic(folder / "free", "text")  # no lease of ours stands before it any more


def put(folder: Path) -> None:
    with put_below(folder) as made:
        (made / "model").write_text("late")


def test_it_is_looked_at_last_before_the_file_is_put_in_place(tmp_path: Path) -> None:
    """A process put to sleep while it writes gigabytes: what stands there after it is the other's."""
    folder = tmp_path / "abc"
    with Lease(tmp_path / "abc.lock", guards=folder):

        def slow(stream: BinaryIO) -> None:
            stream.write(b"ours")
            taken_over(tmp_path / "abc.lock")
            (folder / "file").write_text("theirs")

        with pytest.raises(RunError, match="taken over"):
            write_atomic(folder / "file", slow)
    assert [p.name for p in folder.iterdir()] == ["file"] and (folder / "file").read_text() == "theirs"
