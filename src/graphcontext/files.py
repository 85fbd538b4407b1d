"""Files that survive a kill: atomic writes, append-only JSONL, canonical JSON and its hash."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from graphcontext.data.records import to_json
from graphcontext.errors import GraphContextError, RunError


def canonical(value: Any) -> str:
    """Return JSON with sorted keys and no blanks: equal values, equal text."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def digest(value: Any) -> str:
    """Return the SHA-256 (hex) of a JSON value in canonical form."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def write_atomic(path: Path, data: bytes | str | Callable[[BinaryIO], Any]) -> None:
    """Write a file so that a reader sees the old or the new content, never a part of it.

    Args:
        path: the file.
        data: its content, or what writes it to a stream.

    Raises:
        RunError: the disk is full; the file that stood there is untouched.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as stream:
            if callable(data):
                data(stream)
            else:
                stream.write(data.encode() if isinstance(data, str) else data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise disk_error(error, path) from error


def append_lines(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Append rows to a JSONL file in one write; a last line cut by a kill is closed off first."""
    if not rows:
        return
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    try:
        with path.open("ab+") as stream:
            if stream.tell() and not _ends_with_newline(stream):
                text = "\n" + text
            stream.write(text.encode())
            stream.flush()
    except OSError as error:
        raise disk_error(error, path) from error


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read a JSONL file; lines that a kill cut short are left out, a missing file is empty."""
    if not path.is_file():
        return []
    rows = []
    for line in path.read_bytes().split(b"\n"):
        with contextlib.suppress(ValueError):  # UnicodeDecodeError and JSONDecodeError
            row = json.loads(line)
            if isinstance(row, dict):
                rows.append(row)
    return rows


def jsonl(records: Sequence[Any]) -> str:
    """Return records (dataclasses or dicts) as JSONL text."""
    rows = [r if isinstance(r, dict) else to_json(r) for r in records]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _ends_with_newline(stream: Any) -> bool:
    stream.seek(-1, os.SEEK_END)
    last = stream.read(1)
    stream.seek(0, os.SEEK_END)
    return last == b"\n"


def disk_error(error: OSError, path: Path) -> GraphContextError:
    """Return the one-line error for a file that could not be written."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return RunError(f"disk full while writing {path}; free some space and run again: it goes on from there")
    return RunError(f"cannot write {path}: {error.strerror}")
