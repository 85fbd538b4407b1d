"""The store: artefacts by key, written atomically, resumed after a kill, computed once by many processes.

An artefact is a folder ``store/<stage>/<key>/``. It is finished when it holds ``done.json``, which lists the
SHA-256 of its files and of the inputs it was made from. Long stages append one JSONL line per item to a
``.part`` file (:mod:`graphcontext.items`) and go on from there.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphcontext.files import append_lines, check_folder, check_held, digest, read_lines, sweep, write_atomic
from graphcontext.hashes import hash_files
from graphcontext.lease import Lease

__all__ = ["Artefact", "CallLog", "Store", "Workspace", "append_lines", "digest", "read_lines", "write_atomic"]

UNHASHED = (  # what is there to go on from, or has seconds, which differ from run to run
    *("done.json", "begun.json", "calls.jsonl", "calls.old.jsonl"),
    *("checkpoints", "wandb"),
)
EVERY = 60.0  # seconds between two lines on a stage in a log
ONCE = ("answer", "grader")  # roles that are asked one question on each item


class Artefact:
    """One folder of the store. ``finished`` is None until :meth:`finish` was called."""

    def __init__(self, stage: str, key: str, path: Path):
        self.stage, self.key, self.path = stage, key, path

    @property
    def finished(self) -> dict[str, Any] | None:
        """The content of ``done.json``: facts, files with their SHA-256, inputs; None where it is not done."""
        try:
            done = json.loads((self.path / "done.json").read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):  # not done, or damaged: as good as not done
            return None
        parts = [done.get(key) for key in ("files", "inputs", "facts")] if isinstance(done, dict) else [None]
        return done if all(isinstance(part, dict) for part in parts) else None

    def is_current(self, inputs: dict[str, str]) -> bool:
        """Tell whether it is finished, was made from these inputs' bytes, and has no failed item to retry."""
        done = self.finished
        if done is None or done["inputs"] != inputs:
            return False
        return not done["facts"].get("n_failed") and not done["facts"].get("n_retry")

    def begin(self, inputs: dict[str, str]) -> None:
        """Start or go on with the work: what was begun from other inputs is thrown away, calls excepted."""
        check_held(self.path)
        begun = self.path / "begun.json"
        if begun.is_file() and self._begun() != inputs:
            self.clear()
        if not begun.is_file():
            write_atomic(begun, json.dumps(inputs))

    def _begun(self) -> Any:
        try:
            return json.loads((self.path / "begun.json").read_text(encoding="utf-8"))
        except ValueError:  # damaged: as good as other inputs
            where = f"{self.stage}/{self.key[:12]}"
            print(f"{where}: begun.json is not what was stored; what was begun there is begun anew", file=sys.stderr)
            return None

    def clear(self) -> None:
        """Throw away all files; answered calls become ``calls.old.jsonl``, from where those in use come back."""
        begun, calls, old = (self.path / n for n in ("begun.json", "calls.jsonl", "calls.old.jsonl"))
        if calls.is_file():
            append_lines(old, read_lines(calls))
        for file in self.path.iterdir():
            check_held(file)
            if file.is_dir():
                shutil.rmtree(file)
            elif file not in (begun, old):
                file.unlink()
        begun.unlink(missing_ok=True)  # last: a kill before it leaves the old inputs named: it is done again

    @contextlib.contextmanager
    def lock(self) -> Iterator[Artefact]:
        """Hold the lease on this artefact; others wait, and find it finished when they get it.

        Nothing more is written below its folder once the lease is lost. What killed processes left is swept.
        """
        with Lease(self.path.with_name(f"{self.key}.lock"), guards=self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            sweep(self.path)
            yield self

    def finish(self, facts: dict[str, Any] | None = None, inputs: dict[str, str] | None = None) -> None:
        """Mark the artefact as done: from here on its files do not change unless its inputs do.

        Raises:
            RunError: the lease on it is lost, before or while its files were hashed; or the disk is full.
        """
        check_held(self.path)
        files = hash_files(self.path, UNHASHED)
        done = {"stage": self.stage, "key": self.key, "facts": facts or {}, "inputs": inputs or {}, "files": files}
        write_atomic(self.path / "done.json", json.dumps(done, indent=1, ensure_ascii=False))


class Store:
    """All artefacts below one folder (default ``./store``)."""

    def __init__(self, root: Path | str = "store"):
        self.root = Path(root)

    def artefact(self, stage: str, key: str) -> Artefact:
        """Return one artefact, there or not.

        Raises:
            InputError: a file stands where a folder of the store is wanted.
        """
        path = self.root / stage / key
        check_folder(path)
        return Artefact(stage, key, path)


class _Told:
    """How far a stage is, as lines of a log: one every ``EVERY`` seconds at most, and that of the end if it was long.

    Before an item is done, where one may need any number of calls, a line counts these alone.
    """

    def __init__(self, name: str, total: int):
        self.name, self.total, self.said = name, total, 0
        self.begun = self.last = time.monotonic()

    def say(self, n: int, calls: int) -> None:
        now = time.monotonic()
        since = self.begun if n == self.total else self.last
        if now - since >= EVERY and not n == self.said == self.total:
            self.last, self.said = now, n
            parts = [f"{n} of {self.total} items"] * (n > 0) + [f"{calls} calls"] * (calls > 0)
            print(f"{self.name}: {', '.join(parts)}", file=sys.stderr, flush=True)


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
        old = read_lines(path.with_name("calls.old.jsonl"))
        self._old = {self._name(row): row for row in old if "fingerprint" in row and row.get("status") != "failed"}
        self.items: set[str] = set()  # those that one call is enough for, and has answered
        for row in self._rows.values():
            self._count(row)

    def __len__(self) -> int:
        return len(self._rows)

    def _count(self, row: dict[str, Any]) -> None:
        if row.get("role") in ONCE and row.get("status") != "failed":
            self.items.add(str(row.get("item")))

    @staticmethod
    def _name(row: dict[str, Any]) -> tuple[str, str, str]:
        return str(row.get("role")), str(row.get("item")), str(row["fingerprint"])

    def get(self, role: str, item: str, fingerprint: str) -> dict[str, Any] | None:
        """Return the recorded call if it was answered (ok or empty), else None."""
        name = (role, item, fingerprint)
        if name in self._old and name not in self._rows:
            self.append(self._old[name])
        row = self._rows.get(name)
        return row if row is not None and row.get("status") != "failed" else None

    def append(self, row: dict[str, Any]) -> None:
        """Record one call; safe from several threads."""
        with self._lock:
            append_lines(self.path, [row])
            self._rows[self._name(row)] = row
            self._count(row)
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
        quiet: no progress bars.
        label: what the bar names besides the stage (a table's row).
    """

    store: Store
    calls: CallLog | None = None
    seed: int = 0
    sample_index: int = 0
    quiet: bool = False
    label: str = ""

    @contextlib.contextmanager
    def stage(self, artefact: Artefact, total: int) -> Iterator[Callable[[int], None]]:
        """Open a stage's call log and its progress bar; yields the function that advances the bar.

        Where nobody looks (a Slurm log), a line a minute takes the bar's place.
        """
        from tqdm import tqdm

        name = f"{artefact.stage} {self.label}".strip()
        is_log = not self.quiet and not sys.stderr.isatty()
        told = _Told(name, total) if is_log else None
        with tqdm(total=total, desc=name, unit="item", disable=self.quiet or is_log, file=sys.stderr) as bar:
            n_done = 0

            def show(_: int = 0) -> None:
                bar.n = n = min(total, max(n_done, len(calls.items)))
                bar.set_postfix_str(f"calls={len(calls)}" if len(calls) else "")
                if told is not None:
                    told.say(n, len(calls))

            def advance(n: int) -> None:
                nonlocal n_done
                n_done += n
                show()

            self.calls = calls = CallLog(artefact.path / "calls.jsonl", show)
            try:
                yield advance
            finally:
                self.calls = None
