"""Content hashes of files and folders: what names them in keys, and tells whether they are what was stored."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from pathlib import Path

SHOWN = ("metrics.csv", "loss.png", "config.yaml", "profile.txt", "profile.json")  # a training's, to be looked at


def hash_folder(path: Path) -> str:
    """Return the SHA-256 over the names and bytes of all files below ``path``, in sorted order."""
    digest = hashlib.sha256()
    for file in sorted(p for p in path.rglob("*") if p.is_file()):
        digest.update(str(file.relative_to(path)).encode() + b"\0")
        digest.update(hash_file(file).encode())
    return digest.hexdigest()


def hash_files(folder: Path, but: Collection[str] = ()) -> dict[str, str]:
    """Return path → SHA-256 of the files below ``folder``, without hidden ones and what is named in ``but``."""
    inside = {path.relative_to(folder): path for path in sorted(folder.rglob("*")) if path.is_file()}
    chosen = {name: path for name, path in inside.items() if name.parts[0] not in but}
    return {n.as_posix(): hash_file(p) for n, p in chosen.items() if not any(x.startswith(".") for x in n.parts)}


def changed_file(folder: Path, files: dict[str, str]) -> str | None:
    """Return the first of ``files`` (path below ``folder`` → SHA-256) that is away or another one, else None.

    A training's curves and config, which nothing is computed from, are not looked at.
    """
    for name, stored in files.items():
        path = folder / name
        if name not in SHOWN and (not path.is_file() or hash_file(path) != stored):
            return str(name)
    return None


_HASHES: dict[tuple[str, int, int, int], str] = {}


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file; one process reads an unchanged file (path, inode, size, mtime) once."""
    stat = path.stat()
    memo = (str(path.resolve()), stat.st_ino, stat.st_size, stat.st_mtime_ns)
    if memo not in _HASHES:
        with path.open("rb") as stream:
            _HASHES[memo] = hashlib.file_digest(stream, "sha256").hexdigest()
    return _HASHES[memo]
