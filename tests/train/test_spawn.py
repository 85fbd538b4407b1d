"""Processes that a training starts: none is left behind, whoever ends first."""

from __future__ import annotations

import io
import subprocess
import sys
import time

import pytest

from graphcontext.train import spawn
from graphcontext.train.spawn import Others, end_with, main

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]
FAIL = [sys.executable, "-c", "raise SystemExit(3)"]


@pytest.fixture
def others():
    """Return a function that gives others as if they had been started."""
    made = []

    def start(*commands):
        found = Others({}, ".", "gcg/sft", len(commands) + 1)
        found.processes = [subprocess.Popen(command) for command in commands]
        made.append(found)
        return found

    yield start
    for one in made:
        one.end(at_once=True)


def wait(done):
    until = time.monotonic() + 30
    while not done():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_who_ended_first_and_with_which_code(others):
    found = others(SLEEP, FAIL)
    wait(lambda: found.gone == {2})
    assert found.ended() == (2, 3)
    found.end(at_once=True)
    assert found.gone == {1, 2}


def test_a_signal_while_they_are_waited_for_leaves_none_behind(others, monkeypatch):
    found = others(SLEEP, SLEEP)

    def told(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(spawn.time, "sleep", told)
    with pytest.raises(KeyboardInterrupt):
        found.end()
    assert found.gone == {1, 2}


def test_a_process_that_waits_for_one_that_failed_ends_with_all_the_others(others, monkeypatch, capfd):
    ended = []
    monkeypatch.setattr(spawn, "GRACE", 0)
    monkeypatch.setattr(spawn.os, "_exit", lambda code: [ended.append(code), found.leave()])
    found = others(SLEEP, FAIL)
    found._watch()
    assert ended == [1] and found.gone == {1, 2}
    assert capfd.readouterr().err == "error: rank 2 of this training ended with exit code 3\n"


def test_the_end_of_those_that_are_needed_no_more_is_no_fault(others, monkeypatch):
    monkeypatch.setattr(spawn, "GRACE", 0)
    monkeypatch.setattr(spawn.os, "_exit", lambda code: pytest.fail("ended"))
    found = others(FAIL)
    found.leave()
    found._watch()


def test_a_process_ends_with_the_one_that_started_it(monkeypatch):
    parents = iter([7, 7, 1])
    monkeypatch.setattr(spawn.os, "getppid", lambda: next(parents))
    monkeypatch.setattr(spawn.time, "sleep", lambda _: None)

    def ended(code):
        raise SystemExit(code)

    monkeypatch.setattr(spawn.os, "_exit", ended)
    with pytest.raises(SystemExit, match="1"):
        end_with(7)


def test_without_a_training_it_is_one_line(monkeypatch, capsys):
    monkeypatch.setattr(spawn.threading.Thread, "start", lambda _: None)
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert main() == 1
    assert capsys.readouterr().err == "error: this process is one of a training whose first process ended\n"
