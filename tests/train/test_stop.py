"""Signals are noted, and the handlers of before come back."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from graphcontext.train.stop import SIGNALS, StopSignal, StopWish, at_once


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_is_noted_and_nothing_is_interrupted(number):
    with StopWish() as wish:
        assert wish.signal == 0
        os.kill(os.getpid(), number)
        assert wish.signal == number


def test_handlers_come_back():
    before = [signal.getsignal(number) for number in SIGNALS]
    with StopWish():
        assert [signal.getsignal(number) for number in SIGNALS] != before
    assert [signal.getsignal(number) for number in SIGNALS] == before


def test_a_second_ctrl_c_interrupts_at_once():
    with StopWish() as wish, pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        assert wish.signal == signal.SIGINT
        os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize(
    ("number", "rank", "said"),
    [
        (signal.SIGINT, "0", "SIGINT: stops at the end of this step and saves; Ctrl-C again stops now\n"),
        (signal.SIGTERM, "0", "SIGTERM: stops at the end of this step and saves\n"),
        (signal.SIGUSR1, "0", "SIGUSR1: stops at the end of this step and saves\n"),
        (signal.SIGINT, "1", ""),  # the first rank speaks for all
    ],
)
def test_the_first_rank_says_at_once_what_comes_of_the_first_signal(monkeypatch, capfd, number, rank, said):
    monkeypatch.setenv("RANK", rank)
    monkeypatch.setenv("LOCAL_RANK", rank)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with StopWish():
        for sent in (number, signal.SIGTERM):
            os.kill(os.getpid(), sent)
        assert capfd.readouterr() == ("", said)


def test_a_worker_forked_from_it_says_nothing(capfd):
    with StopWish():
        pid = os.fork()
        if not pid:
            os.kill(os.getpid(), signal.SIGTERM)
            os._exit(0)
        assert os.waitpid(pid, 0) == (pid, 0)
    assert capfd.readouterr() == ("", "")


class TestAtOnce:
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
    def test_the_first_signal_ends_what_is_under_way_and_no_more_disturb(self, number):
        before, seen = signal.getsignal(number), []
        with pytest.raises(KeyboardInterrupt) as caught, at_once():
            try:
                os.kill(os.getpid(), number)
                seen.append("went on")
            finally:
                os.kill(os.getpid(), signal.SIGTERM)
                seen.append("put in order")
        assert isinstance(caught.value, StopSignal) and caught.value.number == number
        assert seen == ["put in order"] and signal.getsignal(number) == before

    def test_within_it_a_wish_is_but_noted(self):
        with at_once():
            with StopWish() as wish:
                os.kill(os.getpid(), signal.SIGTERM)
            assert wish.signal == signal.SIGTERM
            with pytest.raises(StopSignal):
                os.kill(os.getpid(), signal.SIGTERM)

    def test_a_process_forked_in_it_ends_as_any_other(self):
        with at_once():
            pid = os.fork()
            if not pid:
                try:
                    os.kill(os.getpid(), signal.SIGTERM)
                finally:
                    os._exit(0)
            assert os.waitpid(pid, 0) == (pid, signal.SIGTERM)

    def test_in_another_thread_it_does_nothing(self):
        before, seen = signal.getsignal(signal.SIGTERM), []

        def enter():
            with at_once():
                seen.append(signal.getsignal(signal.SIGTERM))

        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
        assert seen == [before]


def test_in_another_thread_it_listens_to_none():
    before, seen = signal.getsignal(signal.SIGTERM), []

    def enter():
        with StopWish() as wish:
            seen.append((signal.getsignal(signal.SIGTERM), wish.signal))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert seen == [(before, 0)]
