"""Checkpoints: the trained weights, the optimiser's state and the position, never the frozen base.

One file whatever the strategy: sharded tensors are gathered to rank 0 and dealt out again on reading, so that a
training goes on under another number of ranks. Where it goes on, the data are those of the plan from that step, and
random numbers are derived from it (:mod:`graphcontext.train.tuning`): nothing else has a state.
"""

from __future__ import annotations

import pickle
import zipfile
import zlib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from graphcontext.errors import RunError
from graphcontext.files import write_atomic

FAULTS = (OSError, ValueError, KeyError, TypeError, EOFError, RuntimeError, pickle.UnpicklingError)
FAULTS += (zipfile.BadZipFile, zlib.error)


@dataclass
class Position:
    """How far a training is.

    Args:
        step: optimiser steps done.
        best: lowest held-out loss so far, None before the first validation.
        best_step: when.
        worse: validations since.
        base: held-out loss before the first step.
        rows: the lines of metrics.csv.
        sessions: on what hardware it was computed, from which step on.
    """

    step: int = 0
    best: float | None = None
    best_step: int = 0
    worse: int = 0
    base: float | None = None
    rows: list[dict[str, Any]] = field(default_factory=list)
    sessions: list[dict[str, Any]] = field(default_factory=list)

    def begin(self, **hardware: Any) -> None:
        """Note on what it goes on, where that is another than before."""
        if not self.sessions or {k: v for k, v in self.sessions[-1].items() if k != "from_step"} != hardware:
            self.sessions.append({"from_step": self.step, **hardware})


def gather(network: Any, optimizer: Any | None = None, keep: bool = True) -> dict[str, dict[str, Any]]:
    """Return name → weight, and where an optimiser is given its state, on the CPU; all ranks must call it.

    Args:
        network: the model.
        optimizer: its state is wanted too.
        keep: False on ranks that write nothing: they hand over their shards and keep no copy.
    """
    found: dict[str, dict[str, Any]] = {}
    for name, weight in trained(network):
        state = optimizer.state.get(weight, {}) if optimizer is not None else {}
        whole = {key: _whole(value, keep) for key, value in {"weight": weight, **state}.items()}
        if keep:
            found[name] = whole
    return found


def trained(network: Any) -> list[tuple[str, Any]]:
    """Return (name, weight) of the trained weights, sorted."""
    return sorted((name, weight) for name, weight in network.named_parameters() if weight.requires_grad)


def write(path: Path, state: dict[str, dict[str, Any]], position: Position) -> None:
    """Write a checkpoint atomically."""
    write_atomic(path, lambda stream: torch.save({"state": state, "position": asdict(position)}, stream))


def read(path: Path) -> tuple[dict[str, dict[str, Any]], Position] | None:
    """Read a checkpoint; None where there is none.

    Raises:
        RunError: it is damaged.
    """
    if not path.is_file():
        return None
    try:
        with zipfile.ZipFile(path) as archive:  # torch does not compare the checksums that it writes
            if archive.testzip() is not None:
                raise ValueError("a checksum differs")
        found = torch.load(path, map_location="cpu", weights_only=True)
        return found["state"], Position(**found["position"])
    except FAULTS as error:
        raise RunError(f"{path} is damaged: remove {path.parent}, and the training starts anew") from error


def restore(network: Any, state: dict[str, dict[str, Any]], optimizer: Any | None = None) -> None:
    """Put weights and the optimiser's state back, sharded as the model is; all ranks must call it.

    Raises:
        RunError: the checkpoint is of other weights.
    """
    weights = dict(trained(network))
    if set(weights) != set(state):
        odd = sorted(set(weights) ^ set(state))
        raise RunError(f"the checkpoint is of another model: {len(odd)} weights differ, such as {odd[0]}")
    odd = [name for name, weight in weights.items() if weight.shape != state[name]["weight"].shape]
    if odd:
        raise RunError(f"the checkpoint is of another model: {len(odd)} weights have other shapes, such as {odd[0]}")
    with torch.no_grad():
        for name, weight in weights.items():
            weight.copy_(_like(weight, state[name]["weight"]))
            if optimizer is not None and len(state[name]) > 1:
                kept = {key: value for key, value in state[name].items() if key != "weight"}
                optimizer.state[weight] = {
                    key: value.clone() if value.dim() == 0 else _like(weight, value) for key, value in kept.items()
                }


def _whole(tensor: Any, keep: bool) -> Any:
    if hasattr(tensor, "full_tensor"):
        tensor = tensor.full_tensor()
    if not keep:
        return None
    return tensor.detach().to("cpu", copy=True) if torch.is_tensor(tensor) else torch.tensor(float(tensor))


def _like(weight: Any, whole: Any) -> Any:
    """Return a whole tensor on the weight's device, sharded as it is."""
    if hasattr(weight, "device_mesh"):
        from torch.distributed.tensor import distribute_tensor

        return distribute_tensor(whole.to(weight.device), weight.device_mesh, weight.placements)
    return whole.to(weight.device, copy=True)
