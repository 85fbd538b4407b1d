"""llama.cpp as a server, by the package xllamacpp, in a process of its own.

One slot, no prompt cache: a request is computed alone, so the same request gets the same answer. With eight slots 9 and
10 of 16 greedy answers changed between three runs (SmolLM2, 2 CPU cores), at 5 % more speed: what is computed together
depends on when requests arrive, and with it the last bits of the logits.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
from pathlib import Path
from typing import Any

from graphcontext import models
from graphcontext.errors import InputError

LIMIT = 300.0  # seconds until it is up
KEY = "GRAPHCONTEXT_SERVE_KEY"  # environment variable of the child with its key
PACKAGE = "xllamacpp"


def version() -> str | None:
    """Return the version of the package, None where it is not installed."""
    try:
        return importlib.metadata.version(PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        return None


def lacks(node: dict[str, Any]) -> tuple[str, str] | None:
    """Return what this machine lacks for a config node, and the mend; None where it is ready."""
    if version() is None:
        return f"llm.serve=llama_cpp needs the package {PACKAGE}", "pip install 'graphcontext[llama_cpp]'"
    return None


def check(node: dict[str, Any]) -> None:
    """Check the arguments of a config node.

    Raises:
        InputError: one that llama.cpp cannot keep.
    """
    if node["quantization"] != "none":
        got = f"llm.quantization={node['quantization']} with llm.serve=llama_cpp"
        raise InputError(f"{got}: a GGUF file is quantised as it is; llm.quantization=none")
    if node["adapter"]:
        got = f"llm.adapter={node['adapter']} with llm.serve=llama_cpp"
        raise InputError(f"{got}: it reads no PEFT adapter; llm.serve=null or vllm, or a merged model as GGUF")


def identity(node: dict[str, Any]) -> dict[str, str]:
    """Return what names the weights: the file's hash."""
    return models.gguf_identity(node["model"], node.get("revision"))


def command(node: dict[str, Any], port: int, name: str) -> tuple[list[str], dict[str, str]]:
    """Return the command line and what it needs in the environment besides its key."""
    told = {
        "path": str(models.gguf_file(node["model"], node["revision"])),
        "port": port,
        "name": name,
        "context": node["context_window"] or 0,
        "on_gpu": node["device"] != "cpu",
    }
    visible = {"CUDA_VISIBLE_DEVICES": node["device"][5:]} if node["device"].startswith("cuda:") else {}
    script = Path(__file__).with_name("llama_cpp_process.py")
    return [sys.executable, "-P", str(script), json.dumps(told)], visible


def decoding(temperature: float, top_p: float, penalty: float, n_new: int) -> dict[str, Any]:
    """Return the decoding options of a request.

    The penalty's window are the last ``n_new`` tokens, the prompt's end among them while the answer is shorter:
    llama.cpp cannot leave the prompt out.
    """
    return {
        "temperature": temperature,
        "top_p": top_p,
        "repeat_penalty": penalty,
        "repeat_last_n": n_new,
        "samplers": ["penalties", "temperature", "top_p"],
        "cache_prompt": False,
    }
