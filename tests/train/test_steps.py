"""What happens at the end of a step: when to validate, which weights are kept."""

from __future__ import annotations

import math
import os
import signal
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphcontext.errors import RunError
from graphcontext.train import checkpoint
from graphcontext.train.checkpoint import Position
from graphcontext.train.steps import Seats, Steps, final_state, is_validated, profiled


def steps(total, per_epoch, validations):
    course = SimpleNamespace(total=total, per_epoch=per_epoch)
    return {step for step in range(1, total + 1) if is_validated(step, course, validations)}


@pytest.mark.parametrize(
    ("total", "per_epoch", "validations", "wanted"),
    [
        (9, 3, 1, {3, 6, 9}),  # after each epoch
        (8, 4, 2, {2, 4, 6, 8}),
        (10, 5, 0.5, {10}),  # every second epoch
        (7, 5, 1, {5, 7}),  # and after the last step
        (2, 90, 1, {2}),
        (3, 3, 99, {1, 2, 3}),  # no more than one a step
    ],
)
def test_validations_are_evenly_spread_and_end_the_training(total, per_epoch, validations, wanted):
    assert steps(total, per_epoch, validations) == wanted


@given(st.integers(1, 300), st.integers(1, 50), st.floats(0.01, 60))
def test_there_is_a_last_one_and_none_beyond(total, per_epoch, validations):
    found = steps(total, per_epoch, validations)
    assert total in found and min(found) >= 1 and max(found) == total
    every = per_epoch / validations  # all of them written out
    placed = [every * (n + 1) for n in range(math.floor(total / every + 1e-9))]
    assert found == {min(total, max(1, round(at))) for at in placed} | {total}


@pytest.mark.parametrize(("validations", "wanted"), [(1e300, True), (1, False)])
def test_billions_of_steps_or_validations_cost_nothing(validations, wanted):
    course = SimpleNamespace(total=3 * 10**9, per_epoch=3)
    assert is_validated(10**9, course, validations) is wanted and is_validated(999_999_999, course, validations)


class Interrupted:
    """A trainer that meets signals and, as Lightning does, turns a KeyboardInterrupt into exit code 1."""

    def __init__(self, *numbers):
        self.numbers = numbers

    def fit(self, *_, **__):
        try:
            for number in self.numbers:
                os.kill(os.getpid(), number)
        except KeyboardInterrupt:
            raise SystemExit(1) from None


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_by_ctrl_c_is_an_interrupt_and_no_failure(tmp_path, first):
    followed = Steps(Seats(tmp_path), Position(), list, None, None)
    with followed.wish, pytest.raises(KeyboardInterrupt):
        followed.run(Interrupted(first, signal.SIGINT), None, None)
    once = Steps(Seats(tmp_path), Position(), list, None, None)
    with once.wish:
        once.run(Interrupted(first), None, None)
    assert once.wish.signal == first and not once.wish.interrupted


def test_another_exit_stays_one(tmp_path):
    def fit(*_, **__):
        raise SystemExit(0)

    with pytest.raises(SystemExit):
        Steps(Seats(tmp_path), Position(), list, None, None).run(SimpleNamespace(fit=fit), None, None)


@pytest.mark.parametrize(
    ("passes", "left", "wanted"),
    [
        (1, 10, range(1, 3)),  # two whole steps after the first
        (2, 10, range(2, 4)),  # one
        (160, 10, range(318, 320)),  # the end of one
        (4, 1, range(2, 4)),  # nothing but the first is left
        (1, 2, range(1, 2)),
        (1, 1, range(0, 1)),
    ],
)
def test_few_passes_are_profiled_however_many_there_are_and_the_optimiser_after_them(passes, left, wanted):
    assert profiled(passes, left) == wanted


class TestFinalState:
    @pytest.fixture
    def seats(self, tmp_path):
        seats = Seats(tmp_path)
        for path, value in ((seats.last, 1.0), (seats.best(4), 2.0)):
            checkpoint.write(path, {"w": {"weight": torch.tensor(value)}}, Position())
        return seats

    @pytest.mark.parametrize(("keep", "best", "wanted"), [("best", 0.5, 2.0), ("last", 0.5, 1.0), ("best", None, 1.0)])
    def test_which_weights_are_kept(self, seats, keep, best, wanted):
        assert final_state(seats, keep, Position(best=best, best_step=4))["w"]["weight"].item() == wanted

    def test_one_that_is_gone_is_named(self, seats):
        seats.best(4).unlink()
        with pytest.raises(RunError, match=r"best-4\.pt is gone; remove .* and train again"):
            final_state(seats, "best", Position(best=0.5, best_step=4))
