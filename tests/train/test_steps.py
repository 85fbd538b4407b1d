"""What happens at the end of a step: when to validate, which weights are kept."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphcontext.errors import RunError
from graphcontext.train import checkpoint
from graphcontext.train.checkpoint import Position
from graphcontext.train.steps import Seats, final_state, validation_steps


def steps(total, per_epoch, validations):
    course = SimpleNamespace(total=total, per_epoch=per_epoch)
    return validation_steps(SimpleNamespace(course=course, settings=SimpleNamespace(validations=validations)))


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


class TestFinalState:
    @pytest.fixture
    def seats(self, tmp_path):
        seats = Seats(tmp_path)
        for path, value in ((seats.last, 1.0), (seats.best(4), 2.0)):
            checkpoint.write(path, {"w": {"weight": torch.tensor(value)}}, Position())
        return seats

    @pytest.mark.parametrize(
        ("keep", "best", "wanted"), [("best", 0.5, 2.0), ("last", 0.5, 1.0), ("best", None, 1.0)]
    )
    def test_which_weights_are_kept(self, seats, keep, best, wanted):
        assert final_state(seats, keep, Position(best=best, best_step=4))["w"]["weight"].item() == wanted

    def test_one_that_is_gone_is_named(self, seats):
        seats.best(4).unlink()
        with pytest.raises(RunError, match=r"best-4\.pt is gone; remove .* and train again"):
            final_state(seats, "best", Position(best=0.5, best_step=4))
