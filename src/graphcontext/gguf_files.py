"""GGUF files of llama.cpp: a model in one file, or in numbered parts."""

from __future__ import annotations

import re
from pathlib import Path

from graphcontext.errors import InputError

DESCRIPTIONS = ("config.json", "config.cfg", "modules.json", "adapter_config.json")  # one is in each other model folder
_PART = re.compile(r"-(\d{5})-of-\d{5}\.gguf$")


def is_gguf(path: Path) -> bool:
    """Tell whether ``path`` is a ``.gguf`` file, or a folder that holds such files and no other model."""
    if path.is_file():
        return path.suffix == ".gguf"
    return path.is_dir() and any(path.glob("*.gguf")) and not any((path / name).is_file() for name in DESCRIPTIONS)


def find(path: Path) -> Path | None:
    """Return the GGUF file at ``path`` (a file, or a folder with one model), the first of its parts; None without one.

    Raises:
        InputError: the folder holds several models, or the file is no GGUF.
    """
    files = [path] if path.is_file() else sorted(path.glob("*.gguf"))
    firsts = [f for f in files if not (part := _PART.search(f.name)) or int(part[1]) == 1]
    if len(firsts) > 1:
        named = ", ".join(f.name for f in firsts[:4]) + (", …" if len(firsts) > 4 else "")
        raise InputError(f"model folder {path} holds {len(firsts)} GGUF models ({named}); name one file")
    if not firsts:
        return None
    with firsts[0].open("rb") as stream:
        if stream.read(4) != b"GGUF":
            raise InputError(f"{firsts[0]} is not a GGUF file")
    return firsts[0]


def parts(file: Path) -> list[Path]:
    """Return all parts of a model, in order."""
    return sorted(file.parent.glob(_PART.sub("-*-of-*.gguf", file.name))) if _PART.search(file.name) else [file]
