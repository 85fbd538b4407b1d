"""A signal where no optimiser step is under way: nothing is trained any more, and the exit code says by what."""

from __future__ import annotations

import os
import signal

import pytest

from graphcontext import cli
from graphcontext.train import data_module, fit, tuning
from graphcontext.train.stop import SIGNALS


@pytest.fixture(autouse=True)
def no_steps(monkeypatch):
    def begun(*_):
        raise AssertionError("a step began")

    monkeypatch.setattr(tuning.Tuning, "training_step", begun)


@pytest.fixture
def sent(monkeypatch):
    """Return what sends a signal at the n-th call of a function, and a list with an entry for each call."""

    def send(owner, name, *numbers, n=1):
        real, seen = getattr(owner, name), []

        def call(*given):
            seen.append(given)
            if len(seen) == n:
                for number in numbers:
                    os.kill(os.getpid(), number)
            return real(*given)

        monkeypatch.setattr(owner, name, call)
        return seen

    return send


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_while_pairs_are_made_it_stops_as_in_a_step(words, tmp_path, sent, capsys, number):
    seen = sent(fit, "read_pairs", number)
    assert cli.main(["train", *words()]) == 128 + number and len(seen) == 1
    assert capsys.readouterr().out == f"{number.name}: stopped; the same command goes on from there\n"
    assert not list((tmp_path / "store").rglob("*.lock"))


def test_ctrl_c_then_interrupts(words, sent, capsys):
    sent(fit, "read_pairs", signal.SIGINT)
    assert cli.main(["train", *words()]) == 130
    assert capsys.readouterr().err == "interrupted; the same command goes on from here\n"


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("n", [1, 2, 5])  # of five held-out batches
def test_while_the_base_is_measured_it_does_not_go_on(words, sent, capfd, number, n):
    seen = sent(tuning.CausalTuning, "losses", number, n=n)
    assert cli.main(["train", "--quiet", *words()]) == 128 + number and len(seen) == n
    again = "; Ctrl-C again stops now" if number == signal.SIGINT else ""
    stopped = f"{number.name}: stopped at step 0 of 9; the same command goes on from there\n"
    assert capfd.readouterr() == (stopped, f"{number.name}: stops before the first step{again}\n")


def test_a_second_ctrl_c_then_interrupts(words, sent):
    seen = sent(tuning.CausalTuning, "losses", signal.SIGINT, signal.SIGINT)
    assert cli.main(["train", *words()]) == 130 and len(seen) == 1


def test_with_nothing_held_out_it_does_not_begin_either(words, sent, monkeypatch):
    monkeypatch.setattr(data_module.PairsData, "held_out_loader", lambda _: [])
    sent(tuning.CausalTuning, "configure_optimizers", signal.SIGUSR1)
    assert cli.main(["train", *words()]) == 138
