"""Running a stage once per store: current or computed under its lease, read whole, remembered as it was read.

What a run reads of an artefact and the hash that names it are taken together. A later stage is made from what
this run holds in memory, so it records that hash, even if another process has changed the artefact since.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from graphcontext.errors import InputError, RunError
from graphcontext.files import digest
from graphcontext.hashes import SHOWN, changed_file
from graphcontext.manifest import peak_memory, provenance, reset_peak_memory
from graphcontext.store import Artefact, Workspace

LATE = 60.0  # seconds after which what another process has made is not there
ATTEMPTS = 5  # to read an artefact that others may be making again at the same time
T = TypeVar("T")


@dataclass(frozen=True)
class Seen:
    """An artefact as a run read it.

    Args:
        artefact: where it lies.
        facts: of the stage: counts, seconds, peak memory, what it was made with.
        content: hash of its files.
    """

    artefact: Artefact
    facts: dict[str, Any]
    content: str


class Stages:
    """The stages one run has read so far; computes what the store lacks.

    Args:
        workspace: the store.
        makes: False for one of several processes: another has made what it reads, with what failed in it.
    """

    def __init__(self, workspace: Workspace, makes: bool = True):
        self.workspace, self.makes = workspace, makes
        self.seen: dict[str, Seen] = {}

    def run(
        self,
        name: str,
        key: str,
        inputs: Sequence[str],
        make: Callable[[Artefact], dict[str, Any]],
        read: Callable[[Path], T],
    ) -> T:
        """Make the artefact ``<stage>/<key>`` unless it is current, and read it.

        Args:
            name: ``stage``, or ``stage:part`` where a run has several of one stage.
            key: its cache key.
            inputs: names of the stages whose bytes it is made from; read by this run before.
            make: fills the artefact's folder and returns facts.
            read: the artefact's folder → what this run uses of it.

        Raises:
            RunError: what was written does not read back.
        """
        artefact = self.workspace.store.artefact(name.partition(":")[0], key)
        made_from = {i: self.seen[i].content for i in inputs}
        if not self.makes:
            value, self.seen[name] = self._await(artefact, made_from, read)
            return value
        for _ in range(ATTEMPTS):
            found = self._read(artefact, read) if artefact.is_current(made_from) else None
            if found is None:
                with artefact.lock():
                    if not artefact.is_current(made_from) or damaged(artefact):
                        self._make(artefact, made_from, make)
                    found = self._read(artefact, read)
            if found is not None:
                value, self.seen[name] = found
                return value
        raise RunError(f"{artefact.path}: what is written there does not read back; is the disk sound?")

    def _await(self, artefact: Artefact, made_from: dict[str, str], read: Callable[[Path], T]) -> tuple[T, Seen]:
        """Read what another process has made; a folder shared over a network may show it late."""
        until = time.monotonic() + LATE
        while True:
            done = artefact.finished
            if done is not None and done["inputs"] == made_from and (found := self._read(artefact, read)) is not None:
                return found
            if time.monotonic() > until:
                mend = "is the working folder the same for all of them?"
                raise RunError(f"{artefact.path} is not there, which the first process has made: {mend}")
            time.sleep(1)

    def take(self, name: str, artefact: Artefact, command: str) -> None:
        """Note an artefact that another command made, as it is now.

        Raises:
            InputError: it is not finished, or damaged.
        """
        done, lost = artefact.finished, damaged(artefact)
        if done is None or lost is not None:
            what = f"{artefact.path}: {lost or 'done.json'} is not what was stored"
            raise InputError(f"{what}; it is made again by: {command}")
        self.seen[name] = Seen(artefact, done["facts"], weights_digest(artefact))

    def _make(self, artefact: Artefact, made_from: dict[str, str], make: Callable[[Artefact], dict[str, Any]]) -> None:
        lost = damaged(artefact)
        if lost:
            where = f"{artefact.stage}/{artefact.key[:12]}"
            print(f"{where}: {lost} is not what was stored; computing it again", file=sys.stderr)
            artefact.clear()
        artefact.begin(made_from)
        start = time.perf_counter()
        reset_peak_memory()
        facts = make(artefact)
        facts |= {"seconds": round(time.perf_counter() - start, 4), "peak_mib": peak_memory()}
        artefact.finish({**facts, "made_with": provenance()}, made_from)

    @staticmethod
    def _read(artefact: Artefact, read: Callable[[Path], T]) -> tuple[T, Seen] | None:
        """Read an artefact; None where it is damaged or was changed while it was read."""
        done = artefact.finished
        if done is None or damaged(artefact):
            return None
        value = read(artefact.path)
        again = artefact.finished
        if again is None or again["files"] != done["files"]:
            return None
        return value, Seen(artefact, done["facts"], digest(done["files"]))


def weights_digest(artefact: Artefact) -> str:
    """Return the hash of the weights of a finished training, apart from its curves and manifest.

    An encoder's is of its tokenizer, lengths and pooling too, unless it was finished before folders were hashed.
    """
    files = (artefact.finished or {"files": {}})["files"]
    if "1_Pooling/config.json" in files:
        return digest({file: known for file, known in files.items() if file not in (*SHOWN, "manifest.json")})
    return digest({file: known for file, known in files.items() if file.startswith(("adapter_", "model"))})


def damaged(artefact: Artefact) -> str | None:
    """Return the name of a file of a finished artefact that is not there or not what was stored, else None."""
    return changed_file(artefact.path, (artefact.finished or {"files": {}})["files"])
