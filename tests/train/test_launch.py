"""A training as a process of its own: its fault in one line, its signals passed on."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

import pytest

from graphcontext.errors import InputError
from graphcontext.train import launch as module
from graphcontext.train.launch import launch
from tests.train import tiny


class Adapter:
    experiment, command = "gcg/sft", "graphcontext train experiment=gcg/sft"
    words = ("experiment=gcg/sft",)
    is_trained = True


@pytest.fixture
def child(monkeypatch):
    """Let a script take the place of the command."""
    real = module.subprocess.Popen

    def become(script):
        seen = []

        def popen(words, **options):
            seen.append(words)
            return real([sys.executable, "-c", script], **options)

        monkeypatch.setattr(module.subprocess, "Popen", popen)
        return seen

    return become


def test_it_is_the_command_that_a_user_would_type(child, tmp_path, capfd):
    seen = child("import sys; print('step 1', file=sys.stderr)")
    assert launch(Adapter, tmp_path, quiet=False) is None
    assert seen == [[sys.executable, "-P", "-m", "graphcontext.cli", "train", "experiment=gcg/sft"]]
    out, err = capfd.readouterr()
    assert out == "" and err.splitlines() == ["training gcg/sft: graphcontext train experiment=gcg/sft", "step 1"]


def test_its_last_error_is_the_reason(child, tmp_path):
    child("import sys; print('error: one\\nerror: two', file=sys.stderr); sys.exit(2)")
    assert launch(Adapter, tmp_path, quiet=True) == "two"


def test_one_without_a_word_is_named_by_its_code(child, tmp_path):
    child("import sys; sys.exit(7)")
    assert launch(Adapter, tmp_path, quiet=True).startswith("the training ended with exit code 7; graphcontext train ")


def test_one_that_is_killed_is_a_failure_and_not_a_result(child, tmp_path):
    child("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert "exit code -9" in launch(Adapter, tmp_path, quiet=True)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_signals_are_passed_on_and_it_stops_as_told(child, tmp_path, number):
    ready = tmp_path / "ready"
    child(
        "import pathlib, signal, sys, time\n"
        f"signal.signal({int(number)}, lambda n, _: sys.exit(128 + n))\n"
        f"pathlib.Path({str(ready)!r}).touch()\n"
        "time.sleep(60)"
    )
    before = signal.getsignal(number)
    stopped = threading.Event()
    threading.Thread(target=strike, args=(ready, number, stopped), daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        launch(Adapter, tmp_path, quiet=True)
    stopped.set()
    assert signal.getsignal(number) == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
@pytest.mark.parametrize("code", ["os._exit(0)", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_however_it_ends_by_a_signal_that_was_passed_on_it_is_a_stop(child, tmp_path, number, code):
    ready, stopped = tmp_path / "ready", threading.Event()
    child(
        "import os, pathlib, signal, time\n"
        f"signal.signal({int(number)}, lambda *_: {code})\n"
        f"pathlib.Path({str(ready)!r}).touch()\n"
        "time.sleep(60)"
    )
    threading.Thread(target=strike, args=(ready, number, stopped), daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        launch(Adapter, tmp_path, quiet=True)
    stopped.set()


@pytest.mark.parametrize("terminal", [False, True])
def test_ctrl_c_stops_it_once_at_the_end_of_a_step_whether_or_not_the_terminal_told_it(
    child, tmp_path, monkeypatch, terminal
):
    monkeypatch.setattr(module, "GRACE", 0.2)
    ready, saved, stopped = tmp_path / "ready", tmp_path / "saved", threading.Event()
    child(
        f"import pathlib, sys, time; sys.path.insert(0, {str(tiny.SRC)!r})\n"
        "import os; from graphcontext.train.stop import StopWish\n"
        "with StopWish() as wish:\n"
        f"    pathlib.Path({str(ready)!r}).write_text(str(os.getpid()))\n"
        "    end = time.monotonic() + 20\n"
        "    while not wish.signal and time.monotonic() < end:\n"
        "        time.sleep(0.01)\n"
        "    time.sleep(1.5)\n"  # a step: what comes more than once would come here
        f"    pathlib.Path({str(saved)!r}).write_text(str(wish.signal))\n"
    )
    told = (ready, signal.SIGINT, stopped, terminal)
    threading.Thread(target=strike, args=told, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        launch(Adapter, tmp_path, quiet=True)
    stopped.set()
    assert saved.read_text() != "0"


def strike(ready: Path, number: int, stopped: threading.Event, both: bool = False) -> None:
    while not (ready.exists() and (not both or ready.read_text())):
        if stopped.wait(0.02):
            return
    for pid in [*([int(ready.read_text())] if both else []), os.getpid()]:
        os.kill(pid, number)


def test_it_is_alone_whatever_group_this_process_is_in(monkeypatch):
    names = ["RANK", "WORLD_SIZE", "LOCAL_RANK", "GROUP_RANK", "MASTER_PORT", "SLURM_NTASKS", "SLURM_PROCID"]
    for name in names:
        monkeypatch.setenv(name, "1")
    assert not set(names) & set(module.environment())


def test_without_the_extra_the_reason_is_said(monkeypatch, tmp_path):
    def lacking():
        raise InputError("train needs the package peft: pip install 'graphcontext[train]'")

    monkeypatch.setattr(module, "check_extra", lacking)
    assert launch(Adapter, tmp_path, quiet=True) == "train needs the package peft: pip install 'graphcontext[train]'"
