"""What a run was made with: versions, git state, models, hardware, seconds and memory per stage."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import os
import platform
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from graphcontext import __version__
from graphcontext.component import fingerprint, locate, used
from graphcontext.files import digest

LIBRARIES = (
    *("torch", "transformers", "accelerate", "peft", "pytorch-lightning", "bitsandbytes", "numpy", "scipy"),
    *("tokenizers", "hydra-core", "omegaconf", "spacy", "rouge-score-rs", "lxml", "numba"),
)


def reset_peak_memory() -> None:
    """Start a new peak for :func:`peak_memory`, where the system can."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")


def peak_memory() -> int:
    """Return the peak resident memory of this process, MiB: since :func:`reset_peak_memory` on Linux."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) // 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak // (1024 * 1024 if sys.platform == "darwin" else 1024)


def provenance() -> dict[str, Any]:
    """Return what this process computes with: package, commit, Python, libraries, hardware, servers that it started."""
    module = sys.modules.get("graphcontext.generate.server")
    servers = module.versions() if module is not None else {}
    return {
        "graphcontext": __version__,
        "git": git_state(),
        "python": platform.python_version(),
        "libraries": {name: v for name in LIBRARIES if (v := library_version(name)) is not None},
        "hardware": hardware(),
        **({"servers": servers} if servers else {}),
    }


def manifest(config: dict[str, Any], stages: dict[str, dict[str, Any]], corpora: list[str]) -> dict[str, Any]:
    """Describe a run: everything needed to tell why a number differs from another machine's.

    Package, commit, libraries and hardware are those that made the predictions; a stage that was made with
    others says so in its own ``made_with``.

    Args:
        config: the resolved config.
        stages: stage → its key and facts (seconds, peak memory, made_with).
        corpora: content ids of the corpora.
    """
    made_with = stages["prediction"].get("made_with", {})
    shown = {
        name: {k: v for k, v in facts.items() if k != "made_with" or v != made_with} for name, facts in stages.items()
    }
    return {
        **made_with,
        "models": models(config),
        "prompts": _prompts(config),
        "corpora": corpora,
        "seeds": {
            "seed": config["seed"],
            "sample_index": config["sample_index"],
            "dataset": config["dataset"].get("seed"),
        },
        "batch_sizes": _named(config, "batch_size"),
        "dtypes": _named(config, "dtype"),
        "stages": shown,
    }


def library_version(name: str) -> str | None:
    """Return the installed version of a distribution, None where it is absent."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


@functools.cache
def git_state() -> dict[str, Any]:
    """Return the commit and dirty flag of the checkout this package runs from; empty when it is installed."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return {}
    try:
        sha = _git(root, "rev-parse", "HEAD")
        dirty = bool(_git(root, "status", "--porcelain", "--untracked-files=no"))
    except (OSError, subprocess.SubprocessError):
        return {}
    return {"sha": sha, "dirty": dirty}


def _git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()


def hardware() -> dict[str, Any]:
    """Return machine, cores and GPUs; torch is asked only where something else has loaded it."""
    facts: dict[str, Any] = {"machine": platform.machine(), "system": platform.system(), "cores": os.cpu_count()}
    torch = sys.modules.get("torch")
    if torch is not None:
        facts["threads"] = torch.get_num_threads()
        if torch.cuda.is_available():
            facts["gpus"] = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return facts


def models(config: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return model → what names its weights, for every component that a run of this config uses."""
    found: dict[str, dict[str, Any]] = {}
    for node in used(config):
        cls = locate(node["_target_"])
        if node.get("model") and hasattr(cls, "identity"):
            found[str(node["model"])] = {**cls.identity(node), "revision": node.get("revision")}
    return found


def _prompts(config: dict[str, Any]) -> dict[str, str]:
    """Return config path → hash of the prompt's texts, those of a file included."""
    return {path: digest(fingerprint(node)) for path, node in _nodes(config) if path.endswith("prompt")}


def _named(config: dict[str, Any], key: str) -> dict[str, Any]:
    return {path: node[key] for path, node in _nodes(config) if key in node}


def _nodes(config: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (dotted config path, node) of every component that a run of this config uses."""
    in_use = [id(node) for node in used(config)]
    stack: list[tuple[str, Any]] = [(name, node) for name, node in config.items() if name != "roles"]
    while stack:
        path, node = stack.pop(0)
        if isinstance(node, dict):
            if id(node) in in_use:
                yield path, node
            stack += [(f"{path}.{key}", value) for key, value in node.items()]
