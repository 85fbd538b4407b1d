"""Which of a training's processes this one is: what torchrun, srun or the first process say in variables."""

from __future__ import annotations

import os
from dataclasses import dataclass

from graphcontext.errors import InputError, RunError
from graphcontext.train.settings import TrainerSettings

SHELLS = ("bash", "interactive")  # names of Slurm jobs in which a user types: Slurm started the shell, not a rank
ALSO = ("NODE_RANK", "GROUP_RANK", "SLURM_NODEID")  # numbers of the machine


@dataclass(frozen=True)
class Process:
    """One of the processes of a training.

    Args:
        launcher: ``torchrun`` or ``slurm`` where one of them started several; else "": alone.
        said: the variable that has the number of processes; with ``world`` None, of those that srun would start.
        world: processes in all, None where no variable says it.
        rank: the number of this one among them, from 0.
        local_rank: its number on its machine.
    """

    launcher: str
    said: str
    world: int | None
    rank: int
    local_rank: int


def process() -> Process:
    """Return what the variables of a launcher say of this process; torchrun's before Slurm's, in whose jobs it may run.

    Raises:
        InputError: a variable is no whole number, a rank is not below the number of processes, or two contradict.
    """
    world, rank, local = (number(name) for name in ("WORLD_SIZE", "RANK", "LOCAL_RANK"))
    tasks, task = number("SLURM_NTASKS"), number("SLURM_PROCID")
    step = number("SLURM_STEP_NUM_TASKS")  # a job's script has none, the step of a shell (salloc) 1
    typed = os.environ.get("SLURM_JOB_NAME") in SHELLS and (tasks if step is None else step) in (None, 1)
    if tasks is not None and task is not None and None in (world, rank) and not typed:
        seat = number("SLURM_LOCALID") or 0
        pairs = {"WORLD_SIZE": ("SLURM_NTASKS", tasks), "RANK": ("SLURM_PROCID", task)}
        for name, (other, ours) in (pairs | {"LOCAL_RANK": ("SLURM_LOCALID", seat)}).items():
            if number(name) not in (None, ours):
                raise InputError(f"{name}={os.environ[name]}, but {other}={ours}: unset one of them")
        if tasks > 1 and step != tasks:  # Slurm gives a job's script the number and the rank of a first task
            return Process("", "SLURM_NTASKS", None, 0, 0)
        return _checked("slurm", "SLURM_NTASKS", tasks, {"SLURM_PROCID": task, "SLURM_LOCALID": seat})
    if (world, rank, local) == (None, None, None):
        return Process("", "", None, 0, 0)
    if rank is None and (world or 1) > 1:
        raise InputError(f"WORLD_SIZE={world}, but RANK is not set; torchrun sets both")
    if rank is None:
        return _checked("", "WORLD_SIZE", world, {"LOCAL_RANK": local or 0})
    if local is None and (world or 1) > 1:
        raise InputError(f"WORLD_SIZE={world}, RANK={rank}, but LOCAL_RANK is not set; torchrun sets all three")
    return _checked("torchrun", "WORLD_SIZE", world, {"RANK": rank, "LOCAL_RANK": local or 0})


def _checked(launcher: str, said: str, world: int | None, ranks: dict[str, int]) -> Process:
    most = f"0, since {said} is not set" if world is None else f"0 to below {said}={world}"
    world = 1 if world is None else world
    if world < 1:
        raise InputError(f"{said}={world}; allowed: 1 and more")
    for name, value in ranks.items():
        if value >= world:
            raise InputError(f"{name}={value}; allowed: {most}")
    first, *_, last = (*ranks.values(), *ranks.values())
    return Process(launcher if world > 1 else "", said, world, first, last)


def number(name: str) -> int | None:
    """Return a variable of a launcher, None where it is not set.

    Raises:
        InputError: it is no whole number, 0 and more.
    """
    text = os.environ.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise InputError(f"{name}={text!r} in the environment; allowed: a whole number, 0 and more, or unset")
    return int(text)


def rank() -> int:
    """Return the number of this process among all of a training."""
    return process().rank


def local_rank() -> int:
    """Return the number of this process on its machine."""
    return process().local_rank


def check_world(settings: TrainerSettings) -> None:
    """Compare the processes that a launcher started with those that the settings name.

    Raises:
        InputError: with both numbers: a training of other ranks than it was planned for would hang, or leave out the
            examples of those that are not there.
    """
    found = process()
    got = f"trainer.devices={settings.devices} × trainer.nodes={settings.nodes}"
    if found.world is not None and found.world != settings.world:
        mend = f"srun --ntasks-per-node={settings.devices}" if found.said == "SLURM_NTASKS" else "make them equal"
        were = "process was" if found.world == 1 else "processes were"
        raise InputError(f"{found.said}={found.world} {were} started, but {got} are {settings.world}; {mend}")
    if found.said and found.world is None and settings.world > 1:
        why = f"{found.said}={os.environ[found.said]}, but this process is none of them (SLURM_STEP_NUM_TASKS"
        step = os.environ.get("SLURM_STEP_NUM_TASKS")
        mend = f"start it by srun --nodes={settings.nodes} --ntasks-per-node={settings.devices}"
        raise InputError(f"{why} {'is not set' if step is None else f'is {step}'}): {mend}")
    if settings.nodes > 1 and not found.launcher:
        mend = "start it by torchrun or srun, which number the processes of all nodes"
        raise InputError(f"trainer.nodes={settings.nodes}, but this process has no number among them; {mend}")
    if found.local_rank >= settings.devices:
        raise InputError(f"this process has number {found.local_rank} on its machine, but {got}: 0 to below devices")
    for name in ALSO:
        if (number(name) or 0) >= settings.nodes:
            raise InputError(f"{name}={number(name)}; allowed: 0 to below trainer.nodes={settings.nodes}")
    if (port := number("MASTER_PORT")) is not None and port > 65535:
        raise InputError(f"MASTER_PORT={port}; allowed: 0 to 65535")
    if found.launcher == "slurm":
        _check_slurm(settings)


def _check_slurm(settings: TrainerSettings) -> None:
    """Compare how Slurm spread the processes over nodes, which Lightning compares too."""
    each, nodes = number("SLURM_NTASKS_PER_NODE"), number("SLURM_NNODES")
    mend = f"srun --nodes={settings.nodes} --ntasks-per-node={settings.devices}"
    if each != settings.devices:
        said = "is not set" if each is None else f"is {each}"
        raise InputError(f"SLURM_NTASKS_PER_NODE {said}, but trainer.devices={settings.devices}; {mend}")
    if nodes not in (None, settings.nodes):
        raise InputError(f"SLURM_NNODES={nodes}, but trainer.nodes={settings.nodes}; {mend}")


def check_group(settings: TrainerSettings) -> None:
    """Compare the group of processes that Lightning has set up with the one that batches are dealt out for.

    Raises:
        RunError: with both: examples of ranks that are not there would be left out in silence.
    """
    from torch import distributed

    is_one = distributed.is_available() and distributed.is_initialized()
    size, number = (distributed.get_world_size(), distributed.get_rank()) if is_one else (1, 0)
    if (size, number) != (settings.world, rank()):
        dealt = f"batches are dealt out for rank {rank()} of {settings.world}"
        raise RunError(f"this process is rank {number} of {size}, but {dealt}: the launcher's variables mislead")
