"""The store: artefacts by key, written atomically, resumed after a kill, computed once by many processes.

An artefact is a folder ``store/<stage>/<key>/``. It is finished when it holds ``done.json``, which lists the
SHA-256 of its files and of the inputs it was made from. Long stages append one JSONL line per item to a
``.part`` file and go on from there; a line cut by a kill is ignored and its item computed again.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import socket
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from graphcontext.data.records import from_json, to_json
from graphcontext.errors import GraphContextError, RunError
from graphcontext.models import hash_file

HEARTBEAT = 5.0  # seconds between two signs of life of a lock's owner
STALE = 60.0  # seconds without one after which others take the lock over

T = TypeVar("T")
R = TypeVar("R")


def canonical(value: Any) -> str:
    """Return JSON with sorted keys and no blanks: equal values, equal text."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def digest(value: Any) -> str:
    """Return the SHA-256 (hex) of a JSON value in canonical form."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def write_atomic(path: Path, data: bytes | str) -> None:
    """Write a file so that a reader sees the old or the new content, never a part of it.

    Raises:
        RunError: the disk is full; the file that stood there is untouched.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        with temporary.open("wb") as stream:
            stream.write(data.encode() if isinstance(data, str) else data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise _disk_error(error, path) from error


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
        raise _disk_error(error, path) from error


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


def _disk_error(error: OSError, path: Path) -> GraphContextError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return RunError(f"disk full while writing {path}; free some space and run again: it goes on from there")
    return RunError(f"cannot write {path}: {error.strerror}")


class Lease:
    """An exclusive-create lock file with host, pid, job and heartbeat; works on NFS and Lustre (no flock).

    Waits while another process holds it; takes it over when its owner is dead (same host) or has given no
    sign of life for ``STALE`` seconds.
    """

    def __init__(self, path: Path):
        self.path = path
        self.nonce = uuid.uuid4().hex
        self._stop = threading.Event()

    def __enter__(self) -> Lease:
        told = False
        while not self._create():
            owner = self._owner()
            if owner is not None and self._is_stale(owner):
                self._take_away(owner)
                continue
            if owner is not None and not told:
                where = f"{owner.get('host')} pid {owner.get('pid')}"
                print(f"waiting for {self.path.parent.name}/{self.path.stem}, computed by {where}", file=sys.stderr)
                told = True
            time.sleep(0.2)
        threading.Thread(target=self._beat, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        owner = self._owner()
        if owner is not None and owner.get("nonce") == self.nonce:
            self.path.unlink(missing_ok=True)

    def _create(self) -> bool:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        facts = {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "started": _process_start(os.getpid()),
            "job": os.environ.get("SLURM_JOB_ID"),
            "nonce": self.nonce,
        }
        # The content is complete before the name exists: link() fails where the name is taken.
        temporary = self.path.with_name(f".{self.path.name}.{self.nonce}.tmp")
        try:
            temporary.write_text(json.dumps(facts))
            os.link(temporary, self.path)
        except FileExistsError:
            return False
        except OSError as error:
            raise _disk_error(error, self.path) from error
        finally:
            temporary.unlink(missing_ok=True)
        return True

    def _owner(self) -> dict[str, Any] | None:
        try:
            owner = json.loads(self.path.read_text())
            owner["age"] = time.time() - self.path.stat().st_mtime
        except (FileNotFoundError, ValueError):
            return None
        return owner

    @staticmethod
    def _is_stale(owner: dict[str, Any]) -> bool:
        if owner["age"] > STALE:
            return True
        same_host = owner.get("host") == socket.gethostname()
        return same_host and _process_start(int(owner["pid"])) != owner.get("started")

    def _take_away(self, owner: dict[str, Any]) -> None:
        """Remove a stale lock by renaming it; a fresh lock that was caught by mistake is put back."""
        caught = self.path.with_name(f".{self.path.name}.{self.nonce}.stale")
        try:
            os.rename(self.path, caught)
        except FileNotFoundError:
            return
        if json.loads(caught.read_text()).get("nonce") != owner.get("nonce"):
            with contextlib.suppress(FileExistsError):
                os.link(caught, self.path)
        caught.unlink(missing_ok=True)

    def _beat(self) -> None:
        while not self._stop.wait(HEARTBEAT):
            with contextlib.suppress(FileNotFoundError):
                os.utime(self.path)


def _process_start(pid: int) -> str | None:
    """Return what tells this process from a later one with its pid; None where it is gone or unknown."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except FileNotFoundError:
        if sys.platform.startswith("linux"):
            return None
    try:  # no /proc: alive is all that can be told
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        return "alive"
    return "alive"


class Artefact:
    """One folder of the store. ``finished`` is None until :meth:`finish` was called."""

    def __init__(self, stage: str, key: str, path: Path):
        self.stage, self.key, self.path = stage, key, path

    @property
    def finished(self) -> dict[str, Any] | None:
        """The content of ``done.json``: facts, files with their SHA-256, inputs; None where it is not done."""
        done = self.path / "done.json"
        return json.loads(done.read_text()) if done.is_file() else None

    def is_current(self, inputs: dict[str, str]) -> bool:
        """Tell whether it is finished, was made from these inputs' bytes, and has no failed item to retry."""
        done = self.finished
        return done is not None and done["inputs"] == inputs and not done["facts"].get("n_failed")

    @contextlib.contextmanager
    def lock(self) -> Iterator[Artefact]:
        """Hold the lease on this artefact; others wait, and find it finished when they get it."""
        with Lease(self.path.with_name(f"{self.key}.lock")):
            self.path.mkdir(parents=True, exist_ok=True)
            yield self

    def finish(self, facts: dict[str, Any] | None = None, inputs: dict[str, str] | None = None) -> None:
        """Mark the artefact as done: from here on its files do not change unless its inputs do."""
        files = {
            p.name: hash_file(p)
            for p in sorted(self.path.iterdir())
            if p.is_file() and not p.name.startswith(".") and p.name not in ("done.json", "calls.jsonl")
        }
        done = {"stage": self.stage, "key": self.key, "facts": facts or {}, "inputs": inputs or {}, "files": files}
        write_atomic(self.path / "done.json", json.dumps(done, indent=1, ensure_ascii=False))

    def content(self) -> str:
        """Return the hash of the finished artefact's files: what a later stage is made from."""
        done = self.finished
        if done is None:
            raise RunError(f"{self.stage}/{self.key} is not finished")
        return digest(done["files"])


class Store:
    """All artefacts below one folder (default ``./store``)."""

    def __init__(self, root: Path | str = "store"):
        self.root = Path(root)

    def artefact(self, stage: str, key: str) -> Artefact:
        return Artefact(stage, key, self.root / stage / key)


class CallLog:
    """The LLM calls of one stage: ``calls.jsonl``, one line per call, the unit of resume.

    A call that was answered is never asked again; a failed one is. One call is named by role, item and
    fingerprint (model, decoding, messages).
    """

    def __init__(self, path: Path, on_append: Callable[[int], None] | None = None):
        self.path = path
        self._on_append = on_append
        self._lock = threading.Lock()
        self._rows = {self._name(row): row for row in read_lines(path) if "fingerprint" in row}

    @staticmethod
    def _name(row: dict[str, Any]) -> tuple[str, str, str]:
        return str(row.get("role")), str(row.get("item")), str(row["fingerprint"])

    def get(self, role: str, item: str, fingerprint: str) -> dict[str, Any] | None:
        """Return the recorded call if it was answered (ok or empty), else None."""
        row = self._rows.get((role, item, fingerprint))
        return row if row is not None and row.get("status") != "failed" else None

    def append(self, row: dict[str, Any]) -> None:
        """Record one call; safe from several threads."""
        with self._lock:
            append_lines(self.path, [row])
            self._rows[self._name(row)] = row
        if self._on_append is not None:
            self._on_append(len(self._rows))


@dataclass
class Workspace:
    """What a component may use while it runs. It carries no setting: those are constructor arguments.

    Args:
        store: where embeddings and other shared artefacts lie.
        calls: the call log of the stage in progress, None between stages.
        seed: the run's seed, for components that draw random numbers and say so.
        sample_index: which of several samples at one seed.
    """

    store: Store
    calls: CallLog | None = None
    seed: int = 0
    sample_index: int = 0
    quiet: bool = False
    bar: Any = field(default=None, repr=False)

    @contextlib.contextmanager
    def stage(self, artefact: Artefact, total: int) -> Iterator[Callable[[int], None]]:
        """Open a stage's call log and its progress bar; yields the function that advances the bar."""
        from tqdm import tqdm

        hidden = self.quiet or not sys.stderr.isatty()
        with tqdm(total=total, desc=artefact.stage, unit="item", disable=hidden, file=sys.stderr) as bar:
            self.calls = CallLog(artefact.path / "calls.jsonl", lambda n: bar.set_postfix_str(f"calls={n}"))
            try:
                yield bar.update
            finally:
                self.calls = None


def run_items(
    path: Path,
    items: Sequence[Any],
    compute: Callable[[list[Any]], list[Any]],
    cls: type,
    chunk: int = 64,
    advance: Callable[[int], None] = lambda n: None,
) -> list[Any]:
    """Compute one record per item, resumably, and write them to ``path`` in the order of ``items``.

    The items are cut into fixed chunks. A chunk with a missing or failed record is computed whole, so that
    it has the bytes of an undisturbed run, and only its missing lines are appended to ``<path>.part``.

    Args:
        path: the finished JSONL file.
        items: things with an ``id``.
        compute: a list of items → a list of ``cls``, by index.
        cls: class of the records, which have ``id``, ``status`` and ``reason``.
        chunk: items per call of ``compute``.
        advance: told how many items are done.
    """
    part = path.with_name(path.name + ".part")
    known = {row["id"]: row for row in [*read_lines(path), *read_lines(part)] if row.get("status") != "failed"}
    records: list[Any] = []
    for start in range(0, len(items), chunk):
        batch = list(items[start : start + chunk])
        missing = [item.id for item in batch if item.id not in known]
        if missing:
            computed = _compute(compute, batch, cls)
            fresh = {r.id: to_json(r) for r in computed if r.id in set(missing)}
            append_lines(part, list(fresh.values()))
            known.update(fresh)
        records += [from_json(cls, known[item.id]) for item in batch]
        advance(len(batch))
    write_atomic(path, jsonl(records))
    part.unlink(missing_ok=True)
    return records


def _compute(compute: Callable[[list[Any]], list[Any]], batch: list[Any], cls: type) -> list[Any]:
    """Compute a chunk; where that raises, item by item, so that one bad item is recorded and not the run lost."""
    try:
        return _checked(compute(batch), batch)
    except GraphContextError:
        raise
    except Exception as error:  # noqa: BLE001 - any component's fault becomes a counted failure below
        if len(batch) == 1:
            return [_failed(cls, batch[0], error)]
    records: list[Any] = []
    for item in batch:
        records += _compute(compute, [item], cls)
    return records


def _checked(records: list[Any], batch: list[Any]) -> list[Any]:
    ids, wanted = [r.id for r in records], [item.id for item in batch]
    if ids != wanted:
        raise RunError(f"a component returned {len(ids)} records for {len(wanted)} items, or in another order")
    return records


def _failed(cls: type, item: Any, error: Exception) -> Any:
    reason = f"{type(error).__name__}: {error}".splitlines()[0][:300]
    empty = {
        "Ranking": {"passages": ()},
        "Context": {"units": ()},
        "Prediction": {"question": getattr(item, "text", ""), "prediction": "", "references": item.references}
        if hasattr(item, "references")
        else {},
    }[cls.__name__]
    return cls(id=item.id, status="failed", reason=reason, **empty)
