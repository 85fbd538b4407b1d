"""A training that is stopped or killed at any moment ends in the bits of an undisturbed one."""

from __future__ import annotations

import random
import signal

import pytest

from tests.train import tiny
from tests.train.conftest import trained

pytestmark = pytest.mark.end_to_end
STEPS = 6
HARD = (
    *("trainer.epochs=2.0", "trainer.micro_batch_size=1", "trainer.workers=1", "adapter.dropout=0.2"),
    *("trainer.validations=2", "trainer.checkpoint_minutes=1e-9"),  # one at every step
)
PAIR = ("trainer=ddp", "trainer.accelerator=cpu", "trainer.workers=0")
CODES = {signal.SIGTERM: 143, signal.SIGUSR1: 138, signal.SIGKILL: -9}


@pytest.fixture(scope="module")
def hard(data, llama):
    """Shuffled, bucketed, accumulated over four micro-batches, with dropout, read by a worker."""
    return tiny.words(data, llama, *HARD)


@pytest.fixture(scope="module")
def undisturbed(warm, tmp_path_factory, hard):
    return trained(warm, tmp_path_factory.mktemp("undisturbed"), hard)


def assert_same(folder, other):
    name = "adapter_model.safetensors"
    assert (folder / name).read_bytes() == (other / name).read_bytes()
    assert tiny.metrics(folder) == tiny.metrics(other) and len(tiny.metrics(other)) == STEPS + 1
    assert (folder / "loss.png").read_bytes() == (other / "loss.png").read_bytes()


def blows(seed):
    """Return signals at rising steps, all kinds of them, in an order of the seed; the last two are kill -9."""
    draw = random.Random(seed)
    first, second, third = sorted(draw.sample(range(STEPS - 1), 3))
    told = draw.sample([signal.SIGTERM, signal.SIGUSR1], 2)
    return [
        (told[0], first, "step"),
        (signal.SIGKILL, second, draw.choice(["step", "checkpoint"])),
        (told[1], third, "step"),
        (signal.SIGKILL, STEPS - 1, "step"),
    ]


@pytest.mark.parametrize("seed", [4, pytest.param(11, marks=pytest.mark.slow)])
def test_t25_stopped_and_killed_at_random_steps_it_ends_in_the_same_bits(warm, tmp_path, hard, undisturbed, seed):
    for number, step, place in blows(seed):
        command = warm.start(tmp_path, "train", *hard, blow=(int(number), step, place))
        assert command.wait() == CODES[number], command.err
        folder = tiny.folder_of(tmp_path)
        assert not (folder / "done.json").exists()
        if number != signal.SIGKILL:
            stopped = f"{number.name}: stopped at step {step + 1} of {STEPS}; the same command goes on from there\n"
            assert command.out == stopped
        elif place == "checkpoint":  # its half is not taken for a checkpoint
            assert list(folder.glob("checkpoints/.*.half"))
    last = warm.start(tmp_path, "train", *hard)
    assert last.wait() == 0, last.err
    assert f"going on after step {STEPS - 1}" in last.err
    assert_same(tiny.folder_of(tmp_path), undisturbed)


@pytest.mark.slow
def test_killed_while_the_result_is_written_it_is_written_again(warm, tmp_path, hard, undisturbed):
    """And from no checkpoint at all it starts anew: a first kill comes before one is written."""
    rarely = [*hard, "trainer.checkpoint_minutes=60"]
    assert warm.start(tmp_path, "train", *rarely, blow=(signal.SIGKILL, 1, "step")).wait() == -9
    command = warm.start(tmp_path, "train", *rarely, blow=(signal.SIGKILL, 0, "result"))
    assert command.wait() == -9 and "going on" not in command.err
    folder = tiny.folder_of(tmp_path)
    assert not (folder / "done.json").exists() and not (folder / "adapter_model.safetensors").exists()
    last = warm.start(tmp_path, "train", *hard)
    assert last.wait() == 0, last.err
    assert_same(folder, undisturbed)
    assert warm.start(tmp_path, "train", *hard, "--quiet").wait() == 0  # and what is done is not done again
    assert_same(folder, undisturbed)


def test_two_ranks_agree_to_stop_whoever_gets_the_signal(warm, tmp_path, hard):
    words = [*hard, *PAIR]
    whole = warm.ranks(tmp_path / "whole", "train", *words)
    assert [rank.wait() for rank in whole] == [0, 0], [rank.err for rank in whole]
    told = (int(signal.SIGTERM), 1, "step")
    for struck, codes in [
        ([None, (signal.SIGUSR1, 2, "base")], [138, 0]),  # before the first step
        ([told], [143, 0]),  # rank 0 alone; its exit code is that of the training
        ([None, (signal.SIGUSR1, 2, "step")], [138, 0]),  # rank 1 alone
        ([(told[0], 3, "step")] * 2, [143, 0]),
    ]:
        ranks = warm.ranks(tmp_path / "cut", "train", *words, blows=struck)
        assert [rank.wait() for rank in ranks] == codes, [rank.err for rank in ranks]
        assert ranks[0].out.count("\n") == 1 and ranks[1].out == ""
    ranks = warm.ranks(tmp_path / "cut", "train", *words)
    assert [rank.wait() for rank in ranks] == [0, 0], [rank.err for rank in ranks]
    assert_same(tiny.folder_of(tmp_path / "cut"), tiny.folder_of(tmp_path / "whole"))
