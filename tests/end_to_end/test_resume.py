"""A run that is killed at any moment ends in the bytes of an undisturbed one, and asks nothing twice."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from processes import FLAGS, TEN, finish, results, run_ten, start

from graphcontext.files import read_lines

pytestmark = pytest.mark.end_to_end
KILLS = 10
SEED = 11


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_ten(tmp_path_factory.mktemp("undisturbed"))


def calls(run: Path) -> list[dict]:
    """Return the calls of a run without their seconds."""
    return [{k: v for k, v in row.items() if k != "seconds"} for row in read_lines(run / "calls.jsonl")]


@pytest.mark.parametrize("batch_size", [1, 4])
@pytest.mark.parametrize("cut", [False, True], ids=["between lines", "in mid-line"])
def test_t11_killed_after_three_of_ten_calls_it_asks_the_other_seven(
    tmp_path: Path, undisturbed: Path, cut: bool, batch_size: int
) -> None:
    log = tmp_path / "log"
    words = ("run", *FLAGS, *TEN, f"llm.batch_size={batch_size}")
    more = {"ECHO_CUT": "1"} if cut else {}
    killed = start(tmp_path, *words, ECHO_LOG=str(log), ECHO_KILL="3", **more)
    killed.communicate(timeout=120)
    assert killed.returncode == -signal.SIGKILL
    asked = log.read_text().split()
    assert len(asked) == 3 and not (tmp_path / "runs").exists()

    run = run_ten(tmp_path, f"llm.batch_size={batch_size}", ECHO_LOG=str(log))
    again = log.read_text().split()[3:]
    if batch_size == 1:
        assert len(again) == 7 and not set(again) & set(asked)  # exactly 7 further calls
    else:
        assert len(again) == 10  # no batch of four was answered: the first is computed whole
    names = [n for n in results(undisturbed) if n != "config.yaml"]  # it names the batch size
    assert results(run, names) == results(undisturbed, names)
    assert calls(run) == calls(undisturbed)


def kill_at(moment: float, wait_for: int, log: Path, process: subprocess.Popen[str]) -> int:
    """Kill a run ``moment`` seconds after ``wait_for`` questions were asked; returns its exit code."""
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        if log.exists() and len(log.read_text().split()) >= wait_for:
            break
        time.sleep(0.01)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.communicate(timeout=moment)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    return process.returncode


def test_killed_at_ten_random_moments_the_results_are_byte_identical(tmp_path: Path, undisturbed: Path) -> None:
    moments = random.Random(SEED)
    words = ("run", *FLAGS, *TEN, "llm.seconds=0.05")
    log = tmp_path / "log"
    log.touch()
    names = [n for n in results(undisturbed) if n != "config.yaml"]  # it names the seconds
    killed = 0
    while killed < KILLS:
        n_asked = len(log.read_text().split())
        process = start(tmp_path, *words, ECHO_LOG=str(log))
        if n_asked == 10 or (n_asked == 0 and killed % 3 == 0):  # while scoring, or importing and reading
            code = kill_at(moments.uniform(0.5, 1.4), 0, log, process)
        else:
            code = kill_at(moments.uniform(0.0, 0.15), min(10, n_asked + moments.randint(1, 4)), log, process)
        killed += code == -signal.SIGKILL
        if code == 0:  # it was done before the blow: begin anew
            (run,) = (tmp_path / "runs").iterdir()
            assert results(run, names) == results(undisturbed, names)
            shutil.rmtree(tmp_path / "store")
            shutil.rmtree(tmp_path / "runs")
            log.write_text("")
    run = tmp_path / finish(start(tmp_path, *words, ECHO_LOG=str(log)))[0].splitlines()[-1].removeprefix("run: ")
    assert results(run, names) == results(undisturbed, names)
    assert calls(run) == calls(undisturbed)
    files = [p for p in (tmp_path / "store").rglob("*") if p.is_file()]
    assert [p for p in files if p.suffix in (".part", ".lock", ".takeover")] == []


def test_a_finished_run_asks_nothing_and_changes_nothing(tmp_path: Path) -> None:
    log = tmp_path / "log"
    run = run_ten(tmp_path, ECHO_LOG=str(log))
    before, asked = results(run), log.read_text()
    assert run_ten(tmp_path, ECHO_LOG=str(log)) == run
    assert results(run) == before and log.read_text() == asked and len(asked.split()) == 10


def test_t36_an_empty_folder_is_a_start(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "runs").mkdir()
    assert (run_ten(tmp_path) / "metrics.json").is_file()


def test_t51_t12_what_changes_an_answer_is_asked_again_and_the_old_run_is_kept(tmp_path: Path) -> None:
    log = tmp_path / "log"

    def n_asked() -> int:
        return len(log.read_text().split())

    first = run_ten(tmp_path, ECHO_LOG=str(log))
    before = results(first)
    changes = {
        "another top_k": ["retriever.top_k=3"],
        "another setting of the model": ["llm.shout=true"],
        "another system prompt": ["generator.prompt.system=Be brief."],
        "another prompt": ["generator.prompt.user='{context} {question}?'"],
        "another budget": ["packing.max_tokens=40"],
    }
    runs = [first]
    for what, change in changes.items():
        asked = n_asked()
        runs.append(run_ten(tmp_path, *change, ECHO_LOG=str(log)))
        assert n_asked() == asked + 10, what
    assert len(set(runs)) == len(runs)
    assert results(first) == before
    asked = n_asked()
    assert run_ten(tmp_path, "llm.seconds=0.001", ECHO_LOG=str(log)) == first  # cannot change an answer
    run_ten(tmp_path, "metric=[rouge2]", ECHO_LOG=str(log))  # another metric costs only itself
    assert n_asked() == asked


def test_a_full_disk_is_one_line_and_the_next_run_goes_on(tmp_path: Path, undisturbed: Path) -> None:
    mount = tmp_path / "small"
    mount.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(mount)]
    made = subprocess.run(command, capture_output=True, check=False)
    if made.returncode:
        pytest.skip("no tmpfs can be mounted here")
    try:
        for size in (64, 320, 420, 460):  # kB: full while reading, answering, scoring, writing the run
            subprocess.run(["mount", "-o", f"remount,size={size}k", str(mount)], check=True)
            process = start(mount, "run", *FLAGS, *TEN)
            out, err = process.communicate(timeout=120)
            assert (process.returncode, out) == (1, ""), f"{size} kB: {out}"
            assert err.startswith("error: disk full while writing ") and err.count("\n") == 1
            assert not list(mount.glob("runs/*/metrics.json"))
        subprocess.run(["mount", "-o", "remount,size=100m", str(mount)], check=True)
        assert results(run_ten(mount)) == results(undisturbed)
    finally:
        subprocess.run(["umount", str(mount)], check=True)
