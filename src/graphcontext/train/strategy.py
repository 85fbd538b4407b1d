"""Devices, precision and strategy: from the settings of a training to Lightning's trainer."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from graphcontext.errors import InputError, RunError
from graphcontext.models import has_gpu
from graphcontext.train.batches import Course, Deal
from graphcontext.train.settings import TrainerSettings
from graphcontext.train.world import check_world, local_rank, process

VARIABLES = (
    "MASTER_ADDR",
    "MASTER_PORT",
    "NODE_RANK",
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
)  # of ranks, while they train
CLOSED = re.compile(r"closed|reset by peer|broken pipe|remote process|got 0 bytes", re.IGNORECASE)  # gloo, NCCL, TCP


@contextlib.contextmanager
def launched() -> Iterator[None]:
    """Take back what processes of a training leave in this one: their group, and variables that name its rank.

    What comes after, another training among it, would wait for ranks that have ended.

    Raises:
        RunError: another rank was killed, or they do not find each other, or no more.
    """
    import torch

    before = {name: os.environ.get(name) for name in VARIABLES}
    try:
        yield
    except RuntimeError as error:
        if not (isinstance(error, torch.distributed.DistError) or "gloo" in str(error)):
            raise
        raise parted(error) from error
    finally:
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def parted(error: Exception) -> RunError:
    """Return what the user is told where the processes of a training do not hear each other.

    That one of them ended is sure only where a connection of their group was closed; else what the error says.
    """
    import torch

    first, *_ = (str(error).strip() or type(error).__name__).splitlines()
    if torch.distributed.is_initialized():
        closed = CLOSED.search(str(error))
        again = "same command goes on from the last checkpoint"
        if closed:
            return RunError(f"another process of this training ended; what it said shows why, and the {again}")
        return RunError(f"the processes of this training no longer hear each other ({first}): the {again}")
    where = ":".join(os.environ.get(name, f"({name} is not set)") for name in VARIABLES[:2])
    return RunError(f"the processes of this training do not meet at {where}: {first}")


def precision_of(settings: TrainerSettings) -> tuple[str, str]:
    """Return ``float32`` or ``bfloat16``, and why where it was not asked for.

    Raises:
        InputError: bfloat16 was asked for and the GPU lacks it.
    """
    import torch

    if settings.accelerator == "cpu":
        if settings.precision == "bfloat16":
            return "bfloat16", ""
        return "float32", "" if settings.precision == "float32" else "bfloat16 is slower than it on a CPU"
    can = torch.cuda.is_available() and torch.cuda.is_bf16_supported(including_emulation=False)
    if settings.precision == "bfloat16" and not can:
        raise InputError("trainer.precision=bfloat16: this GPU has none; trainer.precision=float32")
    if settings.precision == "float32":
        return "float32", ""
    return ("bfloat16", "") if can else ("float32", "this GPU has no bfloat16")


def device_of(settings: TrainerSettings) -> str:
    """Return the torch device of this rank.

    Raises:
        InputError: there is no such GPU.
    """
    if settings.accelerator == "cpu":
        return "cpu"
    if not has_gpu():
        raise InputError("trainer.accelerator=gpu, but torch sees no GPU here; trainer=cpu")
    import torch

    there = torch.cuda.device_count()
    if settings.devices > there:
        raise InputError(f"trainer.devices={settings.devices}, but this machine has {there} GPUs")
    return f"cuda:{local_rank()}"


def lightning_trainer(settings: TrainerSettings, course: Course, deal: Deal, steps: Any, folder: Path) -> Any:
    """Return a Lightning trainer for the steps that are left. All of them are one epoch to it: epochs, validation,
    checkpoints and the order of batches are ours, since its resume in mid-epoch repeats batches.

    Args:
        settings: of the training.
        course: all optimiser steps.
        deal: ranks and micro-batches.
        steps: the callback; its position says how many steps are done.
        folder: for whatever Lightning writes.
    """
    import pytorch_lightning as pl

    check_world(settings)
    device_of(settings)
    precision, _ = precision_of(settings)
    return pl.Trainer(
        accelerator=settings.accelerator,
        devices=settings.devices,
        num_nodes=settings.nodes,
        strategy=_strategy(settings),
        precision="bf16-mixed" if precision == "bfloat16" else "32-true",
        plugins=[environment()],
        max_epochs=1,
        max_steps=course.total - steps.position.step,
        accumulate_grad_batches=deal.passes(course.batch_size),
        limit_val_batches=0,
        num_sanity_val_steps=0,
        callbacks=[steps],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        use_distributed_sampler=False,
        default_root_dir=str(folder),
    )


def environment() -> Any:
    """Return Lightning's view of the launcher that we see: it would choose by other variables."""
    from pytorch_lightning.plugins.environments import LightningEnvironment, SLURMEnvironment, TorchElasticEnvironment

    launcher = process().launcher
    if launcher == "slurm":
        return SLURMEnvironment(auto_requeue=False)
    return TorchElasticEnvironment() if launcher == "torchrun" else LightningEnvironment()


def _strategy(settings: TrainerSettings) -> Any:
    from pytorch_lightning.strategies import DDPStrategy, ModelParallelStrategy

    backend = "gloo" if settings.accelerator == "cpu" else "nccl"
    if settings.strategy == "ddp":
        return DDPStrategy(process_group_backend=backend, broadcast_buffers=False, gradient_as_bucket_view=True)
    if settings.strategy == "fsdp":
        return ModelParallelStrategy(
            data_parallel_size=settings.world,
            tensor_parallel_size=1,
            save_distributed_checkpoint=False,
            process_group_backend=backend,
        )
    return "auto"


class Calm(warnings.catch_warnings):
    """Keep Lightning's advice off the terminal: what it would say is configured or shown by us."""

    def __enter__(self) -> Any:
        entered = super().__enter__()
        for module in ("pytorch_lightning", "lightning_fabric", "transformers"):
            warnings.filterwarnings("ignore", module=module)
        for name in list(logging.root.manager.loggerDict):
            if name.partition(".")[0] in ("pytorch_lightning", "lightning_fabric", "bitsandbytes"):
                logging.getLogger(name).setLevel(logging.WARNING)
        return entered
