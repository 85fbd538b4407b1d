"""Run a command for as long as the process that started it lives: ``python guard.py LOG COMMAND …``; no import of ours.

The guard's stdin is a pipe whose other end only its parent holds. When the parent ends, however it ends (kill -9 too),
the pipe closes and the guard stops the command with everything that it started, and removes the log that nobody reads.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys

GRACE = 10.0  # seconds between asking the command to end and ending it
PERIOD = 0.5  # seconds between two looks at parent and command
_PR_SET_PDEATHSIG = 1


def guard(log: str, command: list[str]) -> int:
    """Run ``command`` until it ends or the parent does, which takes ``log`` along; returns its exit code."""
    parent = os.getppid()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=_die_with_guard)
    try:
        while child.poll() is None and _is_alive(parent):
            pass
        code = child.poll()
        if code is None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(log)
            return 0
        return code if code >= 0 else 128 - code  # as a shell says: 137 was kill -9
    finally:
        stop(child)


def _is_alive(parent: int) -> bool:
    """Wait a moment and tell whether the parent is there: its end of the pipe is open, and we are its child."""
    ready, _, _ = select.select([0], [], [], PERIOD)
    return not (ready and not os.read(0, 1)) and os.getppid() == parent


def stop(child: subprocess.Popen[bytes]) -> None:
    """End the command and the processes of its session."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(child.pid, sign)
        except ProcessLookupError:
            return
        try:
            child.wait(timeout=GRACE)
        except subprocess.TimeoutExpired:
            continue


def _die_with_guard() -> None:
    """Ask Linux to end the command when the guard is killed itself."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(guard(sys.argv[1], sys.argv[2:]))
