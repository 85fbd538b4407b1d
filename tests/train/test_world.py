"""Ranks and worlds, as launchers say them."""

from __future__ import annotations

import pytest
import torch

from graphcontext.errors import InputError, RunError
from graphcontext.train import strategy
from graphcontext.train.world import check_group, check_world, local_rank, process, rank
from tests.train.test_settings import settings

NAMES = (
    *("RANK", "LOCAL_RANK", "WORLD_SIZE", "NODE_RANK", "GROUP_RANK", "MASTER_PORT", "TORCHELASTIC_RUN_ID"),
    *("SLURM_NTASKS", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_JOB_NAME", "SLURM_JOB_ID"),
    *("SLURM_NTASKS_PER_NODE", "SLURM_NNODES", "SLURM_STEP_NUM_TASKS"),
)
BATCH = {"SLURM_JOB_ID": "1", "SLURM_JOB_NAME": "foo", "SLURM_NODEID": "0", "SLURM_NODELIST": "localhost"}
FIRST = {"SLURM_PROCID": "0", "SLURM_LOCALID": "0"}
LAST = {"SLURM_NTASKS": "8", "SLURM_STEP_NUM_TASKS": "8", "SLURM_PROCID": "6", "SLURM_LOCALID": "2"}
STEP = {"SLURM_NTASKS": "2", "SLURM_STEP_NUM_TASKS": "2"}
TWO = settings(strategy="ddp", devices=2)


@pytest.fixture(autouse=True)
def _alone(monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def given(monkeypatch):
    return lambda values: [monkeypatch.setenv(name, value) for name, value in values.items()]


@pytest.mark.parametrize(
    ("values", "ours", "local", "launcher"),
    [
        ({}, 0, 0, ""),
        ({"WORLD_SIZE": "6", "RANK": "5", "LOCAL_RANK": "1"}, 5, 1, "torchrun"),  # on the third node
        (LAST, 6, 2, "slurm"),
        ({**LAST, "WORLD_SIZE": "8"}, 6, 2, "slurm"),  # exported by a job's script
        ({**LAST, "WORLD_SIZE": "16", "RANK": "13", "LOCAL_RANK": "1"}, 13, 1, "torchrun"),  # one below each of srun
        ({**BATCH, **FIRST, "SLURM_NTASKS": "1"}, 0, 0, ""),  # one task within a Slurm job
        ({**BATCH, **FIRST, "SLURM_NTASKS": "4"}, 0, 0, ""),  # the script of a job of four
    ],
)
def test_ranks(given, values, ours, local, launcher):
    given(values)
    assert (rank(), local_rank(), process().launcher) == (ours, local, launcher)


class TestT35:
    """Other numbers of processes than are named: refused, with both, before anything waits for a rank."""

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            ({"WORLD_SIZE": "4", "RANK": "3", "LOCAL_RANK": "3"}, "WORLD_SIZE=4 processes were"),
            ({**FIRST, "SLURM_NTASKS": "4", "SLURM_STEP_NUM_TASKS": "4"}, "SLURM_NTASKS=4 processes were"),
            ({**BATCH, **FIRST, "SLURM_NTASKS": "1"}, "SLURM_NTASKS=1 process was"),
            ({**FIRST, "SLURM_NTASKS": "1"}, "SLURM_NTASKS=1 process was"),  # a job without a name
            ({"WORLD_SIZE": "1"}, "WORLD_SIZE=1 process was"),
            ({"WORLD_SIZE": "1", "RANK": "0", "LOCAL_RANK": "0"}, "WORLD_SIZE=1 process was"),  # torchrun's
            ({"LOCAL_RANK": "0"}, "WORLD_SIZE=1 process was"),
        ],
    )
    def test_refused(self, given, values, message):
        given(values)
        with pytest.raises(InputError, match=rf"{message} started, but trainer\.devices=2 × .*nodes=1 are 2; "):
            check_world(TWO)

    @pytest.mark.parametrize(
        "values",
        [
            {},
            {"WORLD_SIZE": "2", "RANK": "1", "LOCAL_RANK": "1"},
            {**STEP, "SLURM_NTASKS_PER_NODE": "2", "SLURM_PROCID": "1", "SLURM_LOCALID": "1"},
            {"SLURM_NTASKS": "1", "SLURM_JOB_NAME": "interactive", **FIRST},  # the other is started here
            {**STEP, "SLURM_STEP_NUM_TASKS": "1", "SLURM_JOB_NAME": "interactive", **FIRST},  # and in salloc's own step
            {"SLURM_NTASKS": "4"},  # a shell of salloc
        ],
    )
    def test_taken(self, given, values):
        given(values)
        check_world(TWO)

    @pytest.mark.parametrize("name", ["bash", "interactive", "foo"])
    def test_a_slurm_shell_of_one_task_trains_in_one_process(self, given, name):
        given({**BATCH, **FIRST, "SLURM_NTASKS": "1", "SLURM_JOB_NAME": name})
        check_world(settings())

    def test_several_processes_for_a_training_of_one_are_refused(self, given):
        given({"WORLD_SIZE": "2", "RANK": "0", "LOCAL_RANK": "0"})
        with pytest.raises(InputError, match=r"WORLD_SIZE=2 processes were started, but .* are 1"):
            check_world(settings())

    @pytest.mark.parametrize(
        ("more", "message"),
        [
            ({}, r"SLURM_NTASKS_PER_NODE is not set, but trainer\.devices=2; srun --nodes=1 --ntasks-per-node=2"),
            ({"SLURM_NTASKS_PER_NODE": "1"}, r"SLURM_NTASKS_PER_NODE is 1, but trainer\.devices=2"),
            ({"SLURM_NTASKS_PER_NODE": "2", "SLURM_NNODES": "2"}, r"SLURM_NNODES=2, but trainer\.nodes=1"),
            ({"SLURM_NTASKS_PER_NODE": "2", "SLURM_NODEID": "1"}, r"SLURM_NODEID=1; allowed: 0 to below .*nodes=1"),
        ],
    )
    def test_spread_over_the_nodes_in_another_way_they_are_refused(self, given, more, message):
        given({**FIRST, **STEP, **more})
        with pytest.raises(InputError, match=message):
            check_world(TWO)

    @pytest.mark.parametrize(
        ("more", "step"),
        [
            ({}, "is not set"),  # of sbatch --ntasks-per-node=2
            ({"SLURM_STEP_NUM_TASKS": "1"}, "is 1"),  # of sbatch from within a step of one task
        ],
    )
    def test_a_jobs_script_is_not_the_first_of_its_tasks(self, given, more, step):
        """Slurm 22.05 gives it number and rank of the first; the others come by srun alone."""
        given({**BATCH, **FIRST, "SLURM_NTASKS": "2", "SLURM_NTASKS_PER_NODE": "2", **more})
        why = rf"^SLURM_NTASKS=2, but this process is none of them \(SLURM_STEP_NUM_TASKS {step}\)"
        with pytest.raises(InputError, match=rf"{why}: start it by srun --nodes=1 --ntasks-per-node=2$"):
            check_world(TWO)
        check_world(settings())  # one process is what it is

    def test_the_nodes_of_a_cluster_need_a_launcher(self):
        with pytest.raises(InputError, match=r"trainer\.nodes=2, but this process has no number among them"):
            check_world(settings(strategy="ddp", nodes=2))


class TestNumbers:
    """A rank that is none: one line, where the others would wait for it or it would train in vain."""

    @pytest.mark.parametrize("name", ["RANK", "LOCAL_RANK", "WORLD_SIZE", "SLURM_NTASKS", "SLURM_PROCID", "NODE_RANK"])
    @pytest.mark.parametrize("value", ["-1", "", "abc", "1.0", " 1", "²", "9" * 5000])
    def test_what_is_no_whole_number(self, given, name, value):
        given({name: value})
        with pytest.raises(InputError, match=f"^{name}=.* in the environment; allowed: a whole number, 0 and more"):
            check_world(settings())

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            ({"RANK": "1"}, "RANK=1; allowed: 0, since WORLD_SIZE is not set"),
            ({"LOCAL_RANK": "1"}, "LOCAL_RANK=1; allowed: 0, since WORLD_SIZE is not set"),
            ({"WORLD_SIZE": "0"}, "WORLD_SIZE=0; allowed: 1 and more"),
            ({"WORLD_SIZE": "2", "RANK": "2", "LOCAL_RANK": "0"}, "RANK=2; allowed: 0 to below WORLD_SIZE=2"),
            ({"WORLD_SIZE": "2", "RANK": "1"}, "WORLD_SIZE=2, RANK=1, but LOCAL_RANK is not set"),
            ({"WORLD_SIZE": "2", "LOCAL_RANK": "1"}, "WORLD_SIZE=2, but RANK is not set; torchrun sets both"),
            ({**STEP, "SLURM_PROCID": "2"}, "SLURM_PROCID=2; allowed: 0 to below SLURM_NTASKS=2"),
            ({**LAST, "WORLD_SIZE": "4"}, "WORLD_SIZE=4, but SLURM_NTASKS=8: unset one"),
            ({**LAST, "RANK": "1"}, "RANK=1, but SLURM_PROCID=6: unset one"),
        ],
    )
    def test_what_cannot_be(self, given, values, message):
        given(values)
        with pytest.raises(InputError, match=f"^{message}"):
            rank()


class TestGroup:
    """What Lightning has set up is what batches are dealt out for, or nothing is learnt."""

    def test_no_group_for_two_ranks(self):
        with pytest.raises(RunError, match="this process is rank 0 of 1, but batches are dealt out for rank 0 of 2"):
            check_group(TWO)

    @pytest.mark.parametrize(("number", "good"), [(1, True), (0, False)])
    def test_a_group_with_this_process_at_another_place(self, given, monkeypatch, number, good):
        given({"WORLD_SIZE": "2", "RANK": "1", "LOCAL_RANK": "1"})
        group = {"is_initialized": True, "get_world_size": 2, "get_rank": number}
        for name, value in group.items():
            monkeypatch.setattr(torch.distributed, name, lambda value=value: value)
        if good:
            check_group(TWO)
        else:
            with pytest.raises(RunError, match=r"this process is rank 0 of 2, but .* for rank 1 of 2"):
                check_group(TWO)

    @pytest.mark.parametrize(
        ("values", "wanted"),
        [
            ({}, "LightningEnvironment"),
            ({"SLURM_NTASKS": "1", **FIRST, **BATCH}, "LightningEnvironment"),
            ({"WORLD_SIZE": "2", "RANK": "1", "LOCAL_RANK": "1", "SLURM_NTASKS": "1"}, "TorchElasticEnvironment"),
            ({**LAST, "SLURM_NTASKS_PER_NODE": "4"}, "SLURMEnvironment"),
        ],
    )
    def test_lightning_has_our_view_of_the_launcher(self, given, values, wanted):
        given(values)
        assert type(strategy.environment()).__name__ == wanted
