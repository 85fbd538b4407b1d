"""Ranks, worlds, precision and devices, as launchers and settings say them."""

from __future__ import annotations

import os

import pytest
import torch

from graphcontext.errors import InputError
from graphcontext.generate.causal_model import device_map
from graphcontext.train import strategy
from graphcontext.train.strategy import check_world, device_of, launched, local_rank, precision_of, rank
from tests.train.test_settings import settings

NAMES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "SLURM_NTASKS", "SLURM_PROCID", "SLURM_LOCALID")


@pytest.fixture(autouse=True)
def _alone(monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def given(monkeypatch):
    return lambda **values: [monkeypatch.setenv(name, value) for name, value in values.items()]


@pytest.mark.parametrize(
    ("values", "ours", "local"),
    [
        ({}, 0, 0),
        ({"LOCAL_RANK": "1"}, 1, 1),  # Lightning's own launcher
        ({"RANK": "5", "LOCAL_RANK": "1"}, 5, 1),  # torchrun on the third node
        ({"SLURM_NTASKS": "8", "SLURM_PROCID": "6", "SLURM_LOCALID": "2"}, 6, 2),
        ({"SLURM_NTASKS": "1", "SLURM_PROCID": "0", "SLURM_LOCALID": "0"}, 0, 0),  # one task within a Slurm job
    ],
)
def test_ranks(given, values, ours, local):
    given(**values)
    assert (rank(), local_rank()) == (ours, local)


class TestT35:
    """Other numbers of processes than are named: refused, with both, before anything waits for a rank."""

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            ({"WORLD_SIZE": "4"}, r"WORLD_SIZE=4 processes were started, but trainer\.devices=2 × .*nodes=1 are 2"),
            ({"SLURM_NTASKS": "4"}, r"SLURM_NTASKS=4 processes were started, but trainer\.devices=2 .* are 2"),
        ],
    )
    def test_refused(self, given, values, message):
        given(**values)
        with pytest.raises(InputError, match=message):
            check_world(settings(strategy="ddp", devices=2))

    @pytest.mark.parametrize("values", [{}, {"WORLD_SIZE": "2"}, {"WORLD_SIZE": "1"}, {"SLURM_NTASKS": "2"}])
    def test_taken(self, given, values):
        given(**values)
        check_world(settings(strategy="ddp", devices=2))

    def test_several_processes_for_a_training_of_one_are_refused(self, given):
        given(WORLD_SIZE="2", LOCAL_RANK="0")
        with pytest.raises(InputError, match=r"WORLD_SIZE=2 processes were started, but .* are 1"):
            check_world(settings())


class TestT44:
    """Each rank loads on its own GPU, a quantised base too."""

    def test_the_map_is_of_this_rank(self, given):
        given(WORLD_SIZE="2", LOCAL_RANK="1")
        assert device_map("cuda:1", on_gpu=True) == {"": 1}
        assert device_map("auto", on_gpu=True) == {"": 1}

    def test_the_device_is_of_this_rank(self, given, monkeypatch):
        monkeypatch.setattr(strategy, "has_gpu", lambda: True)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
        given(LOCAL_RANK="1")
        assert device_of(settings(accelerator="gpu", strategy="ddp", devices=2)) == "cuda:1"

    def test_a_process_group_of_another_size_is_an_error(self, given, monkeypatch):
        monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
        monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 3)
        given(WORLD_SIZE="2", LOCAL_RANK="0")
        with pytest.raises(InputError, match="the process group has 3 processes, WORLD_SIZE says 2"):
            device_map("auto", on_gpu=True)


class TestDevice:
    def test_a_gpu_that_is_not_there(self, monkeypatch):
        monkeypatch.setattr(strategy, "has_gpu", lambda: False)
        with pytest.raises(InputError, match=r"trainer\.accelerator=gpu, but torch sees no GPU here; trainer=cpu"):
            device_of(settings(accelerator="gpu"))

    def test_more_gpus_than_there_are(self, monkeypatch):
        monkeypatch.setattr(strategy, "has_gpu", lambda: True)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
        with pytest.raises(InputError, match=r"trainer\.devices=8, but this machine has 2 GPUs"):
            device_of(settings(accelerator="gpu", strategy="ddp", devices=8))

    def test_a_cpu(self):
        assert device_of(settings()) == "cpu"


class TestPrecision:
    def test_on_a_cpu_the_reason_is_given(self):
        assert precision_of(settings()) == ("float32", "bfloat16 is slower than it on a CPU")
        assert precision_of(settings(precision="float32")) == ("float32", "")
        assert precision_of(settings(precision="bfloat16")) == ("bfloat16", "")

    @pytest.mark.parametrize("can", [True, False])
    def test_on_a_gpu_it_is_what_the_gpu_can(self, monkeypatch, can):
        wanted = ("bfloat16", "") if can else ("float32", "this GPU has no bfloat16")
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: can)
        assert precision_of(settings(accelerator="gpu")) == wanted
        assert precision_of(settings(accelerator="gpu", precision="float32")) == ("float32", "")
        if not can:
            with pytest.raises(InputError, match="this GPU has none"):
                precision_of(settings(accelerator="gpu", precision="bfloat16"))


def test_a_launcher_leaves_nothing_behind(given):
    given(MASTER_PORT="1", LOCAL_RANK="1")
    with pytest.raises(RuntimeError), launched():
        os.environ.update(MASTER_PORT="2", WORLD_SIZE="2", LOCAL_RANK="0")
        raise RuntimeError
    assert (os.environ["MASTER_PORT"], os.environ["LOCAL_RANK"]) == ("1", "1") and "WORLD_SIZE" not in os.environ
