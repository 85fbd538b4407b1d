"""Precision and devices, as settings say them."""

from __future__ import annotations

import os

import pytest
import torch

from graphcontext.errors import InputError
from graphcontext.generate.causal_model import device_map
from graphcontext.train import strategy
from graphcontext.train.strategy import device_of, launched, precision_of
from tests.train.test_settings import settings

NAMES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "SLURM_NTASKS", "SLURM_PROCID", "SLURM_LOCALID")


@pytest.fixture(autouse=True)
def _alone(monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def given(monkeypatch):
    return lambda **values: [monkeypatch.setenv(name, value) for name, value in values.items()]


class TestT44:
    """Each rank loads on its own GPU, a quantised base too."""

    def test_the_map_is_of_this_rank(self, given):
        given(WORLD_SIZE="2", LOCAL_RANK="1")
        assert device_map("cuda:1", on_gpu=True) == {"": 1}
        assert device_map("auto", on_gpu=True) == {"": 1}

    def test_the_device_is_of_this_rank(self, given, monkeypatch):
        monkeypatch.setattr(strategy, "has_gpu", lambda: True)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
        given(WORLD_SIZE="2", LOCAL_RANK="1")
        assert device_of(settings(accelerator="gpu", strategy="ddp", devices=2)) == "cuda:1"

    def test_a_world_that_is_no_number_is_one_line(self, given):
        given(WORLD_SIZE="abc")
        with pytest.raises(InputError, match="WORLD_SIZE='abc' in the environment; allowed: a whole number"):
            device_map("auto", on_gpu=True)

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
