"""vLLM as a server: the command line of ``vllm serve``, from whatever environment has ``vllm`` on the PATH.

Requests are computed together as they arrive, which makes it fast; greedy answers can differ in rare tokens from run to
run. Arguments: https://docs.vllm.ai/en/stable/cli/serve
"""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from graphcontext import models
from graphcontext.errors import InputError
from graphcontext.generate.adapters import check_base, template_digest
from graphcontext.whole import load_tokenizer

LIMIT = 1800.0  # seconds until it is up: tens of GB are read, graphs are captured
KEY = "VLLM_API_KEY"
EXECUTABLE = "vllm"
RANKS = (8, 16, 32, 64, 128, 256, 320, 512)  # what --max-lora-rank takes


def version() -> str | None:
    """Return the version of the ``vllm`` on the PATH, None where there is none."""
    found = shutil.which(EXECUTABLE)
    return _version(found, os.stat(found).st_mtime_ns) if found else None


@functools.cache
def _version(executable: str, _: int) -> str:
    """Return the version that lies beside an executable, else what it says itself (in many seconds)."""
    for lib in Path(executable).resolve().parents[1].glob("lib/python3*/site-packages/vllm-*.dist-info"):
        return lib.name.removeprefix("vllm-").removesuffix(".dist-info")
    try:
        done = subprocess.run([executable, "--version"], capture_output=True, text=True, check=False, timeout=120)
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    said = re.findall(r"\d+\.\d+[\w.+]*", done.stdout)
    return said[-1] if said else "unknown"


def lacks(node: dict[str, Any]) -> tuple[str, str] | None:
    """Return what this machine lacks for a config node, and the mend; None where it is ready."""
    if shutil.which(EXECUTABLE) is None:
        mend = "pip install vllm in an environment of its own, and put its bin folder on the PATH"
        return "llm.serve=vllm needs the command vllm", mend
    return None


def check(node: dict[str, Any]) -> None:
    """Check the arguments of a config node.

    Raises:
        InputError: one that vLLM cannot keep.
    """
    if node["quantization"] == "8bit":
        raise InputError("llm.quantization=8bit with llm.serve=vllm; allowed: none, 4bit")


def identity(node: dict[str, Any]) -> dict[str, str]:
    """Return what names the weights: as without a server."""
    return models.identity(node["model"], node.get("revision"))


def command(node: dict[str, Any], port: int, name: str) -> tuple[list[str], dict[str, str]]:
    """Return the command line and what it needs in the environment besides its key."""
    folder = models.resolve(node["model"], node["revision"])
    words = [shutil.which(EXECUTABLE) or EXECUTABLE, "serve", str(folder), "--host", "127.0.0.1", "--port", str(port)]
    words += ["--served-model-name", name, "--dtype", node["dtype"], "--seed", "0", "--generation-config", "vllm"]
    words += ["--tensor-parallel-size", str(_gpus(node["device"])), "--no-enable-prefix-caching"]
    if node["context_window"]:
        words += ["--max-model-len", str(node["context_window"])]
    if node["quantization"] == "4bit":
        words += ["--quantization", "bitsandbytes"]
    if node["adapter"]:
        adapter = Path(os.path.expanduser(node["adapter"]))
        words += ["--enable-lora", "--max-lora-rank", str(_rank(adapter))]
        check_base(adapter, identity(node), template_digest(load_tokenizer(folder)))
        words += ["--lora-modules", f"{name}-adapter={adapter}"]
    quiet = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
    visible = {"CUDA_VISIBLE_DEVICES": node["device"][5:]} if node["device"].startswith("cuda:") else {}
    return words, quiet | visible


def decoding(temperature: float, top_p: float, penalty: float, n_new: int) -> dict[str, Any]:
    """Return the decoding options of a request; vLLM's penalty counts the prompt's tokens too."""
    return {"temperature": temperature, "top_p": top_p, "top_k": -1, "min_p": 0.0, "repetition_penalty": penalty}


def _gpus(device: str) -> int:
    """Return over how many GPUs the model is spread: all that are visible, unless one is named."""
    if device not in ("auto", "cuda") or not models.has_gpu():
        return 1
    import torch

    return max(1, torch.cuda.device_count())


def _rank(adapter: Path) -> int:
    """Return the least rank that vLLM allows for an adapter."""
    try:
        rank = int(json.loads((adapter / "adapter_config.json").read_text(encoding="utf-8"))["r"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        expected = "expected adapter_config.json of a PEFT adapter, with its rank r"
        raise InputError(f"llm.adapter={adapter}: {expected}") from error
    if rank > RANKS[-1]:
        raise InputError(f"llm.adapter={adapter} has rank {rank}; vLLM allows up to {RANKS[-1]}")
    return next(allowed for allowed in RANKS if allowed >= rank)
