"""Several processes learn what one learns: DDP and FSDP over gloo, on CPUs."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import time

import pytest

from graphcontext import lease
from graphcontext.store import Store
from graphcontext.train import checkpoint
from tests.train import tiny
from tests.train.conftest import free_port, trained

pytestmark = pytest.mark.end_to_end
PLAIN = ("adapter.dropout=0", "trainer.epochs=1.0", "trainer.validations=2")
CPU = ("trainer.accelerator=cpu", "trainer.precision=float32")


@pytest.fixture(scope="module")
def plain(data, llama):
    return tiny.words(data, llama, *PLAIN)


@pytest.fixture(scope="module")
def alone(warm, tmp_path_factory, plain):
    return trained(warm, tmp_path_factory.mktemp("alone"), plain)


def together(warm, folder, words, world):
    """Train as ``torchrun`` would start it; returns the folder of the result."""
    ranks = warm.ranks(folder, "train", *words, world=world)
    assert [rank.wait() for rank in ranks] == [0] * world, [rank.err for rank in ranks]
    assert "held-out loss over 5 examples" in ranks[0].out  # T22
    assert [rank.out for rank in ranks[1:]] == [""] * (world - 1)
    return tiny.folder_of(folder)


def rows(folder):
    return checkpoint.read(folder / "checkpoints" / "last.pt")[1].rows


def assert_alike(folder, other):
    """Losses of all steps, held-out ones too, and weights within 1e-5."""
    for ours, theirs in zip(rows(folder), rows(other), strict=True):
        assert ours["step"] == theirs["step"] and ours.get("target_tokens") == theirs.get("target_tokens")
        for name in ("loss", "held_out_loss"):
            assert ours.get(name) == pytest.approx(theirs.get(name), abs=1e-5), name
    ours, theirs = tiny.weights(folder), tiny.weights(other)
    assert set(ours) == set(theirs)
    assert max((ours[name] - theirs[name]).abs().max().item() for name in ours) < 1e-5
    kept = {"adapter_config.json", "adapter_model.safetensors", "manifest.json", "metrics.csv", "done.json"}
    assert {p.name for p in folder.iterdir()} == {p.name for p in other.iterdir()} >= kept
    config = "adapter_config.json"
    assert json.loads((folder / config).read_text()) == json.loads((other / config).read_text())


@pytest.mark.parametrize(
    ("strategy", "world", "micro"), [("ddp", 2, 2), ("fsdp", 2, 1), ("ddp", 3, 1)], ids=["ddp", "fsdp", "three"]
)
def test_t22_ranks_give_the_losses_and_the_adapter_of_one_process(warm, tmp_path, plain, alone, strategy, world, micro):
    more = [f"trainer={strategy}", *CPU, f"trainer.devices={world}", f"trainer.micro_batch_size={micro}"]
    folder = together(warm, tmp_path, [*plain, *more], world)
    assert folder.name == alone.name  # how it is computed is not in the key
    assert_alike(folder, alone)
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["ranks"] == world and manifest["examples"]["validation"]["pairs"] == 5


@pytest.mark.slow
def test_stopped_by_its_own_launcher_under_ddp_it_goes_on_under_fsdp_and_ends_alone(warm, tmp_path, plain, alone):
    """Whoever started the ranks, and however many there are: the checkpoint is one file."""
    told = int(signal.SIGTERM)
    first = warm.start(tmp_path, "train", *plain, "trainer=ddp", *CPU, blow=(told, 0, "step"))
    assert first.wait() == 143, first.err  # Lightning started the other rank, which got no signal
    assert first.out == "SIGTERM: stopped at step 1 of 3; the same command goes on from there\n"
    ranks = warm.ranks(tmp_path, "train", *plain, "trainer=fsdp", *CPU, blows=[(told, 1, "step")])
    assert [rank.wait() for rank in ranks] == [143, 0], [rank.err for rank in ranks]
    last = warm.start(tmp_path, "train", *plain)
    assert last.wait() == 0 and "going on after step 2" in last.err
    assert_alike(tiny.folder_of(tmp_path), alone)


class TestStartedHere:
    """Without a launcher the first process starts the others, when there is something to train."""

    @pytest.fixture(scope="class")
    def ddp(self, plain):
        return [*plain, "trainer=ddp", *CPU]

    def test_a_fault_of_another_process_is_its_own_line_and_exit_code(self, warm, tmp_path, ddp):
        first = warm.start(tmp_path, "train", "--quiet", *ddp, "adapter._target_=tests.train.tiny.OnlyTheFirst")
        assert first.wait(120) == 2
        said = sorted(line for line in first.err.splitlines() if not line.startswith("waiting for "))
        assert said == [
            "error: no adapter here",
            "error: rank 1 of this training ended; what it said shows why",
        ]
        assert not list((tmp_path / "store" / "adapter").glob("*.lock"))

    def test_what_is_wrong_or_done_needs_no_other_process(self, warm, tmp_path, ddp, alone):
        short = warm.start(tmp_path, "train", "--quiet", *ddp, "trainer.max_tokens=8")
        assert short.wait(60) == 2 and short.err.count("error: ") == 1
        shutil.copytree(alone.parents[2] / "store", tmp_path / "store", dirs_exist_ok=True)
        done = warm.start(tmp_path, "train", "--quiet", *ddp)
        assert done.wait(60) == 0 and done.out.startswith("trained before")

    def test_they_learn_what_one_learns_and_none_is_left_behind(self, warm, tmp_path, ddp, alone):
        first = warm.start(tmp_path, "train", *ddp)
        assert first.wait(180) == 0, first.err
        assert_alike(tiny.folder_of(tmp_path), alone)
        assert first.err.count("validation: 5 examples") == 1


def test_a_rank_that_waits_for_the_others_heeds_signals(warm, tmp_path, plain):
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2"}
    words = ["train", "--quiet", *plain, "trainer=ddp", *CPU]
    first = warm.start(tmp_path, *words, **place, RANK="0", LOCAL_RANK="0")
    with socket.socket() as seen:
        while seen.connect_ex(("127.0.0.1", int(place["MASTER_PORT"]))):  # until it listens
            time.sleep(0.1)
    first.send(signal.SIGTERM)
    assert first.wait(20) == 143 and first.out.startswith("SIGTERM: stopped")


@pytest.mark.slow
def test_t43_two_cells_of_two_processes_are_two_folders_with_one_manifest_each(warm, tmp_path, plain):
    more = ["trainer=ddp", *CPU, "trainer.max_steps=1"]
    for seed in (0, 1):
        ranks = warm.ranks(tmp_path, "train", *plain, *more, f"seed={seed}")
        assert [rank.wait() for rank in ranks] == [0, 0], [rank.err for rank in ranks]
    folders = [p for p in (tmp_path / "store" / "adapter").iterdir() if p.is_dir()]
    assert len(folders) == 2
    assert len(list((tmp_path / "store" / "adapter").rglob("manifest.json"))) == 2
    assert len(list((tmp_path / "store" / "adapter").rglob("*.safetensors"))) == 2


def test_a_loss_that_is_no_number_is_one_line_of_one_rank(warm, tmp_path, plain):
    more = ["trainer=ddp", *CPU, "trainer.learning_rate=1e30", "trainer.clip=null"]
    ranks = warm.ranks(tmp_path, "train", "--quiet", *plain, *more)
    assert [rank.wait() for rank in ranks] == [2, 0]
    assert ranks[0].err.count("error: ") == 1 and "at step 2" in ranks[0].err
    others = [line for line in ranks[1].err.splitlines() if not line.startswith("waiting for ")]
    assert others == [] and ranks[0].out == ranks[1].out == ""


def test_a_rank_that_is_killed_ends_the_other_in_one_line(warm, tmp_path, plain):
    blows = [None, (int(signal.SIGKILL), 1, "step")]
    ranks = warm.ranks(tmp_path, "train", "--quiet", *plain, "trainer=ddp", *CPU, blows=blows)
    assert [rank.wait() for rank in ranks] == [1, -9]
    said = [line for line in ranks[0].err.splitlines() if not line.startswith("waiting for ")]
    assert len(said) == 1 and said[0].startswith("error: another process of this training ended; "), said


class TestBefore:
    """What only one rank finds out before the training, all of them follow: none waits for those who went."""

    @pytest.fixture(scope="class")
    def ddp(self, plain):
        return [*plain, "trainer=ddp", *CPU]

    @pytest.fixture
    def artefact(self, alone, tmp_path):
        """The training ``alone``, in a store where it is still to be made."""
        root = alone.parents[2] / "store"
        shutil.copytree(root, tmp_path / "store", ignore=shutil.ignore_patterns(alone.name))
        return Store(tmp_path / "store").artefact("adapter", alone.name)

    @staticmethod
    def ended(ranks, codes):
        assert [rank.wait(120) for rank in ranks] == codes, [rank.err for rank in ranks]
        return ranks[0], *ranks[1:]

    def test_what_is_done_is_not_done_again_by_any(self, warm, tmp_path, ddp, artefact, alone):
        shutil.copytree(alone, artefact.path)
        first, other = self.ended(warm.ranks(tmp_path, "train", "--quiet", *ddp), [0, 0])
        assert first.out.startswith("trained before") and (first.err, other.out, other.err) == ("", "", "")

    def test_while_another_job_trains_the_same_none_of_them_waits(self, warm, tmp_path, ddp, artefact, monkeypatch):
        monkeypatch.setattr(lease, "HEARTBEAT", 0.2)
        with artefact.lock():
            first, other = self.ended(warm.ranks(tmp_path, "train", "--quiet", *ddp), [2, 2])
        holder = f"{socket.gethostname()} pid {os.getpid()}"
        name = f"adapter/{artefact.key}"
        assert first.err == f"error: {name} is computed by {holder}; start again when it has ended\n"
        assert (first.out, other.out, other.err) == ("", "", "")

    def test_the_other_job_ends_just_then(self, warm, tmp_path, ddp, artefact, alone, monkeypatch):
        """The first rank looks at its lock while it finishes: the training is done, for all ranks alike."""
        monkeypatch.setattr(lease, "HEARTBEAT", 1000)
        shutil.copytree(alone, tmp_path / "made")
        with artefact.lock():
            before = artefact.path.parent.stat().st_mtime_ns
            ranks = warm.ranks(tmp_path, "train", "--quiet", *ddp)
            while artefact.path.parent.stat().st_mtime_ns == before:  # the first rank's look at the clock there
                time.sleep(0.05)
            time.sleep(1)
            shutil.copytree(tmp_path / "made", artefact.path, dirs_exist_ok=True)
        first, _ = self.ended(ranks, [0, 0])
        assert first.out.startswith("trained before")

    def test_a_lock_whose_holder_was_killed_is_taken_over(self, warm, tmp_path, ddp, artefact):
        gone = {"host": socket.gethostname(), "namespace": lease._pid_namespace(), "pid": 2**22 + 1, "started": "1"}
        artefact.path.with_name(f"{artefact.key}.lock").write_text(json.dumps(gone))
        self.ended(warm.ranks(tmp_path, "train", "--quiet", *ddp), [0, 0])
        assert artefact.finished is not None

    @pytest.mark.parametrize("word", ["trainer.max_tokens=8", "adapter.targets=[q_porj]"])
    def test_wrong_input_ends_all_in_one_line(self, warm, tmp_path, ddp, word):
        ranks = self.ended(warm.ranks(tmp_path, "train", "--quiet", *ddp, word), [2, 2])
        assert ranks[0].err.startswith("error: ")
        assert all(line.startswith("error: ") for rank in ranks for line in rank.err.splitlines())
        assert all(rank.err.count("\n") <= 1 for rank in ranks)

    def test_a_rank_that_alone_finds_a_fault_ends_the_others(self, warm, tmp_path, ddp):
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2"}
        given = [ddp, [*ddp, "trainer.max_tokens=8"]]
        seats = [place | {"RANK": rank, "LOCAL_RANK": rank} for rank in "01"]
        ranks = [warm.start(tmp_path, "train", "--quiet", *w, **seat) for w, seat in zip(given, seats)]
        first, other = self.ended(ranks, [1, 2])
        assert first.err == "error: rank 1 of this training ended; what it said shows why\n"
        assert other.err.startswith("error: nothing to train on: ")

    def test_a_first_rank_that_was_killed_ends_the_others(self, warm, tmp_path, ddp, artefact, monkeypatch):
        monkeypatch.setattr(lease, "HEARTBEAT", 1000)
        with artefact.lock():
            before = artefact.path.parent.stat().st_mtime_ns
            ranks = warm.ranks(tmp_path, "train", "--quiet", *ddp)
            while artefact.path.parent.stat().st_mtime_ns == before:
                time.sleep(0.05)
            ranks[0].send(signal.SIGKILL)
            _, other = self.ended(ranks, [-9, 1])
        *_, said = other.err.splitlines()  # after what torch says of the connection
        assert said == "error: the first process of this training ended; what it said shows why"

    def test_a_port_that_is_taken_is_named(self, warm, tmp_path, ddp):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = str(taken.getsockname()[1])
            place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2", "RANK": "0", "LOCAL_RANK": "0"}
            first = warm.start(tmp_path, "train", "--quiet", *ddp, **place)
            self.ended([first], [1])
        said = f"error: the processes of this training do not meet at 127.0.0.1:{port}: "
        assert first.err.startswith(said) and "EADDRINUSE" in first.err and first.err.count("\n") == 1, first.err
