"""Lease files: one process computes an artefact, the others wait for it."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import sys
import threading
import time
import uuid
from pathlib import Path
from typing import Any, Self

from graphcontext.errors import InputError, RunError
from graphcontext.files import disk_error, held

HEARTBEAT = 5.0  # seconds between two signs of life of a lock's owner
STALE = 60.0  # seconds without one after which others take the lock over
NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS)  # what link() says on a file system without hard links


class Lease:
    """An exclusive-create lock file with host, pid, job and heartbeat; works on NFS and Lustre (no flock).

    Waits while another process holds it; takes it over when its owner is dead (same host) or has given no
    sign of life for ``STALE`` seconds.

    A process that sleeps longer (a suspended job, a stalled file server) loses it: :meth:`check` tells, and stands
    before each write below the folder that it ``guards``.

    Args:
        path: the lock file.
        guards: the folder that is written to by its holder alone.
    """

    def __init__(self, path: Path, guards: Path | None = None):
        self.path = path
        self.guards: contextlib.AbstractContextManager[None]
        self.guards = contextlib.nullcontext() if guards is None else held(guards, self.check)
        self.nonce = uuid.uuid4().hex
        self._stop = threading.Event()

    def __enter__(self) -> Self:
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
        self.guards.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self.guards.__exit__(None, None, None)
        owner = self._owner()
        if owner is not None and owner.get("nonce") == self.nonce:
            self.path.unlink(missing_ok=True)

    def refuse_live(self) -> None:
        """Return when nobody holds the lock, or when its holder has died: by then :meth:`__enter__` takes it.

        Raises:
            InputError: its holder gave a sign of life while we looked, which is within ``HEARTBEAT`` seconds.
        """
        seen: float | None = None
        while (owner := self._owner()) is not None and not self._is_stale(owner):
            seen = owner["beat"] if seen is None else seen
            if owner["beat"] != seen:
                where = f"{owner.get('host')} pid {owner.get('pid')}"
                what = f"{self.path.parent.name}/{self.path.stem} is computed by {where}"
                raise InputError(f"{what}; start again when it has ended")
            time.sleep(0.2)

    def check(self) -> None:
        """Look whether the lock is still this process' own.

        Raises:
            RunError: another process has taken it over, or the lock cannot be read.
        """
        try:
            owner = json.loads(self.path.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):  # it has done its work; or it writes its name just now
            owner = None
        except OSError as error:
            raise RunError(f"cannot read {self.path}: {error.strerror}") from error
        owner = owner if isinstance(owner, dict) else {}
        if owner.get("nonce") == self.nonce:
            return
        other = f"{owner['host']} pid {owner['pid']}" if "host" in owner and "pid" in owner else "another process"
        what = f"{self.path.parent.name}/{self.path.stem} was taken over by {other} while this process slept"
        raise RunError(f"{what}; nothing more is written; the same command waits for it")

    def _create(self) -> bool:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        facts = {
            "host": socket.gethostname(),
            "namespace": _pid_namespace(),
            "pid": os.getpid(),
            "started": _process_start(os.getpid()),
            "job": os.environ.get("SLURM_JOB_ID"),
            "nonce": self.nonce,
        }
        # The content is complete before the name exists: link() fails where the name is taken.
        temporary = self.path.with_name(f".{self.path.name}.{self.nonce}.tmp")
        try:
            temporary.write_text(json.dumps(facts), encoding="utf-8")
            try:
                os.link(temporary, self.path)
            except OSError as error:
                if error.errno not in NO_LINKS:
                    raise
                with self.path.open("x") as stream:
                    stream.write(json.dumps(facts))
        except FileExistsError:
            return False
        except OSError as error:
            raise disk_error(error, self.path) from error
        finally:
            temporary.unlink(missing_ok=True)
        return True

    def _owner(self) -> dict[str, Any] | None:
        """Return who holds the lock, its last sign of life and its age; only these where the file was cut short; None
        without one.
        """
        try:
            beat = self.path.stat().st_mtime
            age = self._now() - beat
            owner = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except ValueError:
            owner = None
        return {**(owner if isinstance(owner, dict) else {}), "beat": beat, "age": age}

    def _now(self) -> float:
        """Return the time by the clock that dates this folder's files: a file server's may differ from ours."""
        probe = self.path.with_name(f".{self.path.name}.{self.nonce}.clock")
        try:
            probe.touch()
            return probe.stat().st_mtime
        except OSError as error:
            raise disk_error(error, probe) from error
        finally:
            probe.unlink(missing_ok=True)

    @staticmethod
    def _is_stale(owner: dict[str, Any]) -> bool:
        if owner["age"] > STALE:
            return True
        same_host = (owner.get("host"), owner.get("namespace")) == (socket.gethostname(), _pid_namespace())
        return same_host and "pid" in owner and _process_start(int(owner["pid"])) != owner.get("started")

    def _take_away(self, owner: dict[str, Any]) -> None:
        """Remove a stale lock; takers go one at a time, so that none removes the fresh lock of another."""
        turn = self.path.with_name(f".{self.path.name}.takeover")
        try:
            turn.touch(exist_ok=False)
        except FileExistsError:
            with contextlib.suppress(FileNotFoundError):
                if self._now() - turn.stat().st_mtime > STALE:  # its taker was killed
                    turn.unlink()
            time.sleep(0.05)
            return
        except OSError as error:
            raise disk_error(error, turn) from error
        try:
            now = self._owner()
            if now is not None and now.get("nonce") == owner.get("nonce") and self._is_stale(now):
                self.path.unlink(missing_ok=True)
        finally:
            turn.unlink(missing_ok=True)

    def _beat(self) -> None:
        while not self._stop.wait(HEARTBEAT):
            with contextlib.suppress(OSError, RunError):  # what is lost is said before the next write
                self.check()
                os.utime(self.path)


def _pid_namespace() -> str | None:
    """Return the pid namespace: in two containers of one host one pid means two processes."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return None


def _process_start(pid: int) -> str | None:
    """Return what tells this process from a later one with its pid; None where it is gone or unknown."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19]
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
