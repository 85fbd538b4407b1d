"""Precision and devices, as settings say them."""

from __future__ import annotations

import os
import socket
from datetime import timedelta

import pytest
import torch

from graphcontext.errors import InputError, RunError
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
        given(WORLD_SIZE="2", RANK="1", LOCAL_RANK="1")
        assert device_map("cuda:1", on_gpu=True) == {"": 1}
        assert device_map("auto", on_gpu=True) == {"": 1}

    def test_the_device_is_of_this_rank(self, given, monkeypatch):
        monkeypatch.setattr(strategy, "has_gpu", lambda: True)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
        given(WORLD_SIZE="2", RANK="1", LOCAL_RANK="1")
        assert device_of(settings(accelerator="gpu", strategy="ddp", devices=2)) == "cuda:1"

    def test_a_world_that_is_no_number_is_one_line(self, given):
        given(WORLD_SIZE="abc")
        with pytest.raises(InputError, match="WORLD_SIZE='abc' in the environment; allowed: a whole number"):
            device_map("auto", on_gpu=True)

    def test_a_process_group_of_another_size_is_an_error(self, given, monkeypatch):
        monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
        monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 3)
        given(WORLD_SIZE="2", RANK="0", LOCAL_RANK="0")
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


class TestParted:
    """That another process ended is said where a connection of the group was closed, and only there."""

    @staticmethod
    def said(error):
        with pytest.raises(RunError) as caught, launched():
            raise error
        return str(caught.value)

    @pytest.fixture
    def group(self, monkeypatch):
        monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
        monkeypatch.setattr(torch.distributed, "destroy_process_group", lambda: None)

    @pytest.mark.parametrize(
        "text",
        [
            "[gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:2211",
            "[gloo/transport/tcp/pair.cc:534] Read error [127.0.0.1]:2211: Connection reset by peer",
            "[gloo/transport/tcp/buffer.cc:12] writev [127.0.0.1]:2211: Broken pipe",
        ],
    )
    def test_a_closed_connection_of_a_group(self, group, text):
        assert self.said(RuntimeError(text)).startswith("another process of this training ended; ")

    def test_of_nccl(self, group):
        text = "NCCL error: remote process exited or there was a network error\nncclRemoteError: …"
        assert self.said(torch.distributed.DistBackendError(text)).startswith(
            "another process of this training ended; "
        )

    def test_one_that_is_late_may_be_alive(self, group, given):
        given(MASTER_ADDR="node7", MASTER_PORT="29500")
        text = "[gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv"
        said = "the processes of this training no longer hear each other"
        assert self.said(RuntimeError(text)).startswith(f"{said} ({text}): the same command goes on")

    def test_a_port_that_is_taken(self, given):
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            port = other.getsockname()[1]
            given(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
            with pytest.raises(RunError) as caught, launched():
                torch.distributed.TCPStore("127.0.0.1", port, 1, True)
        said = str(caught.value)
        assert said.startswith(f"the processes of this training do not meet at 127.0.0.1:{port}: ")
        assert "EADDRINUSE" in said and "\n" not in said

    def test_one_that_does_not_come(self, given):
        given(MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
        with (
            pytest.raises(RunError, match=r"do not meet at 127\.0\.0\.1:0: Timed out .* 1/2 clients joined"),
            launched(),
        ):
            torch.distributed.TCPStore("127.0.0.1", 0, 2, True, timedelta(seconds=1))

    def test_another_error_is_left_alone(self, group):
        with pytest.raises(RuntimeError, match=r"^out of memory$"), launched():
            raise RuntimeError("out of memory")
