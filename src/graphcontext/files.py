"""Files that survive a kill: atomic writes, append-only JSONL, canonical JSON and its hash.

What lies below a folder under a lease (:mod:`graphcontext.lease`) is written only while the lease is held.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import os
import re
import shutil
import stat
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from graphcontext.data.records import to_json
from graphcontext.errors import GraphContextError, InputError, RunError, fault

TEMPORARY = re.compile(r"\..+\.\d+\.[0-9a-f]{8}\.tmp")  # names that :func:`_beside` gives
_HELD: dict[str, Callable[[], None]] = {}  # folder under a lease of this process → what raises where it is lost


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
        RunError: the disk is full, or the lease on its folder is lost; the file that stood there is untouched.
    """
    temporary, raw = _beside(path), None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        raw = _Sink(temporary, "w")
        with io.BufferedWriter(raw) as stream:
            if callable(data):
                data(stream)
            else:
                stream.write(data.encode() if isinstance(data, str) else data)
            stream.flush()
            os.fsync(stream.fileno())
        check_held(path)
        os.replace(temporary, path)
    except OSError as error:
        raise disk_error(error, path) from error
    except RuntimeError as error:
        if raw is None or raw.fault is None:
            raise
        raise disk_error(raw.fault, path) from error  # torch's writer says "enforce fail" of a full disk
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


class _Sink(io.FileIO):
    """A file that remembers why it could not be written: a library may raise something else of it."""

    fault: OSError | None = None

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            self.fault = error
            raise


def _beside(path: Path) -> Path:
    """Return the name of a temporary file, or folder, of this process."""
    return path.with_name(f".{path.name}.{os.getpid()}.{uuid.uuid4().hex[:8]}.tmp")


@contextlib.contextmanager
def put_below(folder: Path) -> Iterator[Path]:
    """Yield an empty folder whose files are put below ``folder`` at the end, each as :func:`write_atomic` would.

    For libraries that write several files by names of their own.

    Raises:
        RunError: the disk is full, or the lease on the folder is lost.
    """
    made = _beside(folder / "files")
    try:
        with writing(folder):
            made.mkdir(parents=True)
            yield made
            open_up(made)
            for file in sorted(p for p in made.rglob("*") if p.is_file()):
                target = folder / file.relative_to(made)
                target.parent.mkdir(parents=True, exist_ok=True)
                with file.open("rb") as stream:
                    os.fsync(stream.fileno())
                check_held(target)
                os.replace(file, target)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def open_up(folder: Path) -> None:
    """Give a folder and what is in it the modes of new files here: tempfile and safetensors let only the owner read."""
    probe = _beside(folder / "mode")
    probe.touch()
    file = stat.S_IMODE(probe.stat().st_mode)
    probe.unlink()
    for path in (folder, *folder.rglob("*")):
        own = stat.S_IMODE(path.stat().st_mode) & 0o7000  # set-group-ID of a shared folder
        path.chmod(own | file | (file >> 2 & 0o111) if path.is_dir() else file)


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what the system refuses while ``path`` is written into one line, also where a library in Rust tells of it.

    Raises:
        RunError: the disk is full, or may not be written to.
    """
    try:
        yield
    except OSError as error:
        raise disk_error(error, path) from error
    except Exception as error:
        said = re.search(r"os error (\d+)|code: (\d+)", str(error))  # of safetensors, of tokenizers
        if said is None or isinstance(error, GraphContextError):
            raise
        code = int(said[1] or said[2])
        raise disk_error(OSError(code, os.strerror(code)), path) from error


def sweep(folder: Path) -> None:
    """Remove the temporary files that killed processes left below a folder; its lease must be held."""
    for path in sorted(folder.rglob(".*.tmp"), reverse=True):
        if TEMPORARY.fullmatch(path.name):
            with contextlib.suppress(OSError):
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


@contextlib.contextmanager
def held(folder: Path, check: Callable[[], None]) -> Iterator[None]:
    """Let ``check`` be called before each write below a folder; it raises where the lease on it is lost."""
    name = os.path.abspath(folder)
    _HELD[name] = check
    try:
        yield
    finally:
        if _HELD.get(name) is check:
            del _HELD[name]


def check_held(path: Path) -> None:
    """Raise a RunError where ``path`` lies below a folder whose lease this process has lost.

    Between this and the write that it stands before, microseconds pass, in which a process may be put to sleep all the
    same: no file system here can do both at once.
    """
    if not _HELD:
        return
    whole = Path(os.path.abspath(path))
    for folder in (whole, *whole.parents):
        check = _HELD.get(str(folder))
        if check is not None:
            check()


def check_folder(path: Path) -> None:
    """Check that ``path`` is a folder or can be made.

    Raises:
        InputError: it, or what is above it, is a file or a link to nothing.
    """
    for place in (path, *path.parents):
        if place.is_dir():
            return
        if os.path.lexists(place):
            what = "a link to nothing" if place.is_symlink() and not place.exists() else "a file"
            raise InputError(f"{place} is {what}, where a folder is wanted; move it away, or work in another folder")


def append_lines(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Append rows to a JSONL file in one write; a last line cut by a kill is closed off first."""
    if not rows:
        return
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    check_held(path)
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
    return RunError(f"cannot write {path}: {error.strerror or fault(error)}")
