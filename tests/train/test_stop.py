"""Signals are noted, and the handlers of before come back."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from graphcontext.train.stop import SIGNALS, StopWish


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


def test_in_another_thread_it_listens_to_none():
    before, seen = signal.getsignal(signal.SIGTERM), []

    def enter():
        with StopWish() as wish:
            seen.append((signal.getsignal(signal.SIGTERM), wish.signal))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert seen == [(before, 0)]
