"""What ranks tell each other before they train: two of them in two threads, at a table in memory."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch.distributed import HashStore

from graphcontext import api
from graphcontext.errors import InputError, RunError
from graphcontext.train import fit, ranks
from graphcontext.train.ranks import DONE, TRAIN, Ranks
from graphcontext.train.stop import StopSignal
from graphcontext.train.world import Process


@pytest.fixture
def meet(monkeypatch):
    """Return a function that gives the ranks of a new meeting."""
    monkeypatch.setattr(ranks, "EVERY", 0.001)

    def made(world=2):
        table = HashStore()
        found = []
        for number in range(world):
            one = Ranks()
            one.process, one.table = Process("torchrun", "WORLD_SIZE", world, number, number), table
            found.append(one)
        return found

    return made


@pytest.fixture
def meanwhile():
    """Return a function that calls another in a thread."""
    with ThreadPoolExecutor(4) as threads:
        yield threads.submit


def leave(one, error=None):
    one.__exit__(type(error), error, None)


class TestWords:
    def test_the_others_hear_what_the_first_tells_in_its_order(self, meet, meanwhile):
        first, *others = meet(3)
        heard = [meanwhile(lambda one=one: [one.hear(), one.begin("x")]) for one in others]
        first.tell(TRAIN)
        first.begin("x")
        assert [one.result(10) for one in heard] == [[TRAIN, None]] * 2

    def test_none_begins_before_the_first_has(self, meet, meanwhile):
        first, other = meet()
        waiting = meanwhile(other.begin, "x")
        while not first.table.check(["ready/1"]):
            time.sleep(0.001)
        assert not waiting.done() and not other.has_begun
        first.begin("x")
        waiting.result(10)
        assert other.has_begun

    def test_the_first_stays_until_the_others_have_heard_that_all_is_done(self, meet, meanwhile):
        first, other = meet()
        first.tell(DONE)
        left = meanwhile(leave, first)
        time.sleep(0.05)
        assert not left.done()
        assert other.hear() == DONE
        leave(other)
        left.result(10)

    @pytest.mark.parametrize(
        ("error", "code"), [(InputError("x"), 2), (RunError("x"), 1), (KeyboardInterrupt(), 130), (StopSignal(15), 143)]
    )
    def test_the_others_end_as_the_first_does(self, meet, meanwhile, error, code):
        first, other = meet()
        left = meanwhile(leave, first, error)
        with pytest.raises(SystemExit) as ended:
            other.hear()
        assert ended.value.code == code
        leave(other, ended.value)
        left.result(10)

    def test_the_first_ends_where_another_has(self, meet):
        first, other = meet()
        leave(other, InputError("x"))
        with pytest.raises(RunError, match=r"^rank 1 of this training ended; what it said shows why$"):
            first.begin("x")

    def test_the_first_does_not_wait_for_ever_for_one_that_was_killed(self, meet, monkeypatch):
        monkeypatch.setattr(ranks, "LATE", 0)
        first, _ = meet()
        with pytest.raises(RunError, match="rank 1 of this training has not come so far 0 minutes after the first"):
            first.begin("x")

    def test_a_rank_that_ends_early_ends_the_first_before_its_pairs_are_made(self, meet):
        first, other = meet()
        leave(other, InputError("x"))
        with pytest.raises(RunError, match=r"^rank 1 of this training ended; what it said shows why$"):
            first.gather("up")

    def test_ranks_that_read_other_examples_do_not_train(self, meet, meanwhile):
        first, other = meet()
        waiting = meanwhile(other.begin, "y")
        with pytest.raises(RunError, match="rank 1 has read other examples than the first rank: is the working folder"):
            first.begin("x")
        left = meanwhile(leave, first, RunError("x"))
        with pytest.raises(SystemExit, match="1"):
            waiting.result(10)
        leave(other)
        left.result(10)

    def test_those_that_a_second_training_of_this_process_starts_are_met_at_the_same_table(self, monkeypatch):
        """Each of them is a new process, for which it is the first."""

        class Own:
            def ended(self):
                return None

        for _ in range(2):
            table = HashStore()
            monkeypatch.setattr(torch.distributed, "rendezvous", lambda *_, table=table: iter([(table, 0, 2)]))
            first = Ranks(Own())
            first._meet()
            first.table.set("x", "1")
            assert table.check(["graphcontext/0/x"])

    def test_alone_nothing_is_told(self):
        with Ranks() as alone:
            alone.tell(TRAIN)
            assert alone.hear() == TRAIN and not alone.are_several
            alone.begin("x")


def test_a_rank_reads_the_checkpoint_only_when_the_first_has_made_room(words, tmp_path, meet, monkeypatch, meanwhile):
    """Else it may go on from one that the first is about to throw away, as made from other inputs."""
    with monkeypatch.context() as alone:  # the first rank has made the pairs
        alone.setattr(fit, "fit", lambda *_: {"stopped_by": 15, "said": ""})
        api.train(*words(), root=tmp_path)
    _, other = meet()
    fitted = threading.Event()
    monkeypatch.setattr(fit, "Ranks", lambda _: other)
    monkeypatch.setattr(Ranks, "__enter__", lambda one: one)
    monkeypatch.setattr(fit, "fit", lambda *_: [fitted.set(), {"stopped_by": 15, "said": ""}][1])
    other.table.set("word/0", TRAIN)
    training = meanwhile(api.train, *words(), root=tmp_path)
    other.table.wait(["ready/1"])
    assert not fitted.wait(0.2)
    other.table.set("word/1", ranks.BEGUN)
    training.result(60)
    assert fitted.is_set()
