"""Hyperparameters are checked, and the learning rate is that of the schedule."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcontext.errors import InputError
from graphcontext.train.settings import TrainerSettings
from tests.train.tiny import composed

NODE = {k: v for k, v in composed()["trainer"].items() if k != "_target_"}


def settings(**changes):
    return TrainerSettings(**NODE | {"accelerator": "cpu"} | changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schedule": "cosin"}, r"trainer\.schedule=cosin; did you mean cosine\?"),
        ({"data": "pair"}, r"trainer\.data=pair; did you mean pairs\?"),
        ({"loss_on": "prompt"}, r"allowed: all, answer"),
        ({"epochs": 0}, r"trainer\.epochs=0; allowed: above 0"),
        ({"learning_rate": math.inf}, r"trainer\.learning_rate=inf; allowed: above 0"),
        ({"learning_rate": 1e38}, r"trainer\.learning_rate=1e\+38; allowed: up to 1e30"),
        ({"learning_rate": math.nan}, r"trainer\.learning_rate=nan; allowed: above 0"),
        ({"clip": -1.0}, r"trainer\.clip=-1\.0; allowed: above 0, or null"),
        ({"warmup": 1.5}, r"trainer\.warmup=1\.5; allowed: 0 to 1, a part of all steps, or whole steps"),
        ({"warmup": -0.1}, r"trainer\.warmup=-0\.1; allowed: 0 and more"),
        ({"batch_size": 0}, r"trainer\.batch_size=0; allowed: 1 and more"),
        ({"pairs": 0}, r"trainer\.pairs=0; allowed: 1 and more"),
        ({"max_tokens": 7}, r"trainer\.max_tokens=7; allowed: 8 and more"),
        ({"devices": 2}, r"trainer\.devices=2, trainer\.nodes=1: several processes need trainer=ddp or trainer=fsdp"),
        ({"nodes": 2, "devices": 1}, r"trainer\.nodes=2: several processes need"),
        ({"wandb": "onlin"}, r"trainer\.wandb=onlin; did you mean online\?"),
        ({"workers": -1}, r"trainer\.workers=-1; allowed: 0 and more"),
        ({"workers": 10**9}, r"trainer\.workers=1000000000; allowed: up to 256"),
        ({"devices": 10**9, "strategy": "ddp"}, r"trainer\.devices=1000000000; allowed: up to 256"),
        ({"epochs": 1e10}, r"trainer\.epochs=10000000000\.0; allowed: up to 1e9"),
    ],
)
def test_a_wrong_value_is_one_line(changes, message):
    with pytest.raises(InputError, match=message) as caught:
        settings(**changes)
    assert "\n" not in str(caught.value)


def test_what_may_be_null_may():
    assert settings(clip=None, max_steps=None, pairs=None, held_out=None, patience=None).clip is None


def test_the_world_is_all_processes():
    assert settings(strategy="ddp", devices=3, nodes=2).world == 6


class TestRate:
    def test_by_hand(self):
        # 10 steps, the first 2 of them warm up: 1/2, 1, then t = 0, 1/8 … 7/8
        for schedule, wanted in [
            ("constant", [0.5, 1, 1, 1, 1, 1, 1, 1, 1, 1]),
            ("linear", [0.5, 1, 1, 0.875, 0.75, 0.625, 0.5, 0.375, 0.25, 0.125]),
            ("cosine", [0.5, 1, *[(1 + math.cos(math.pi * t / 8)) / 2 for t in range(8)]]),
        ]:
            chosen = settings(schedule=schedule, warmup=0.2, learning_rate=1.0)
            assert [chosen.rate(step, 10) for step in range(10)] == pytest.approx(wanted)

    def test_a_warm_up_of_one_and_more_is_a_number_of_steps(self):
        chosen = settings(schedule="constant", warmup=4, learning_rate=8.0)
        assert [chosen.rate(step, 100) for step in range(5)] == [2, 4, 6, 8, 8]

    def test_without_warm_up_the_first_step_has_the_whole_rate(self):
        assert settings(warmup=0, learning_rate=1.0).rate(0, 9) == 1

    @given(
        st.sampled_from(["constant", "linear", "cosine"]),
        st.floats(0, 1) | st.integers(0, 200),
        st.integers(1, 100),
        st.integers(0, 99),
    )
    def test_every_step_has_a_rate_above_zero_and_no_higher_than_the_peak(self, schedule, warmup, total, step):
        rate = settings(schedule=schedule, warmup=warmup, learning_rate=1.0).rate(min(step, total - 1), total)
        assert 0 < rate <= 1
