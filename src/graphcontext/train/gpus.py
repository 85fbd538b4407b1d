"""GPUs that ``plan`` knows by name, and how much memory there is on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from graphcontext.errors import InputError, did_you_mean


@dataclass(frozen=True)
class Gpu:
    """A GPU by its maker's data sheet.

    Args:
        memory: GiB that a program finds free on it, about.
        bfloat16: dense TFLOPS of matrix products in bfloat16, None where it has none.
        float32: TFLOPS in float32, without TF32.
    """

    memory: float
    bfloat16: float | None
    float32: float


GPUS = {
    "T4": Gpu(14.5, None, 8.1),
    "A10G": Gpu(22.0, 70.0, 35.0),
    "RTX-3090": Gpu(23.5, 71.0, 35.6),
    "RTX-4090": Gpu(23.5, 165.2, 82.6),
    "V100-32GB": Gpu(31.5, None, 15.7),
    "A100-40GB": Gpu(39.0, 312.0, 19.5),
    "L40S": Gpu(44.0, 362.0, 91.6),
    "A100-80GB": Gpu(79.0, 312.0, 19.5),
    "H100-80GB": Gpu(79.0, 989.0, 67.0),
    "H200": Gpu(139.0, 989.0, 67.0),
}


def gpu(name: object) -> Gpu:
    """Return a GPU by its name.

    Raises:
        InputError: an unknown name; a number is none.
    """
    if not isinstance(name, str) or name not in GPUS:
        raise InputError(f"trainer.gpu={name}{did_you_mean(name, GPUS)}")
    return GPUS[name]


def free_gpu_gib() -> tuple[str, float, bool] | None:
    """Return name, free memory and whether it computes in bfloat16, of this machine's GPU; None without one."""
    from graphcontext.models import has_gpu

    if not has_gpu():
        return None
    import torch

    from graphcontext.train.world import local_rank

    torch.cuda.set_device(local_rank())  # no context on another rank's GPU
    free, _ = torch.cuda.mem_get_info()
    return torch.cuda.get_device_name(), free / 2**30, torch.cuda.is_bf16_supported(including_emulation=False)


def free_memory_gib(root: Path = Path("/")) -> float | None:
    """Return the memory that a process can still get here: of the machine, or of its cgroup where that is less.

    Args:
        root: of the file system; None is returned where it has no /proc/meminfo.
    """
    try:
        lines = (root / "proc/meminfo").read_text(encoding="ascii").splitlines()
        free = next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")) / 2**20
    except (OSError, StopIteration, ValueError, IndexError):
        return None
    limits = [left for left in map(_left, _cgroups(root)) if left is not None]
    return min([free, *limits])


def _cgroups(root: Path) -> list[Path]:
    """Return the folders of this process' memory cgroups, the innermost first."""
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers in ("", "memory"):
            top = root / "sys/fs/cgroup" / controllers
            inner = top / path.strip("/")
            found += [p for p in (inner, *inner.parents) if p == top or top in p.parents]
    return found


def _left(folder: Path) -> float | None:
    """Return what a cgroup's limit leaves, in GiB; pages of files do not count, they are given back."""
    for name in ("memory.max", "memory.limit_in_bytes"):
        try:
            limit = int((folder / name).read_text(encoding="ascii"))
            stat = dict(line.split() for line in (folder / "memory.stat").read_text(encoding="ascii").splitlines())
            return max(limit - int(stat.get("anon") or stat.get("total_rss") or 0), 0) / 2**30
        except (OSError, ValueError):  # no such file, or "max": no limit
            continue
    return None
