"""Which files of a folder are its documents, and what each holds: read once per content, several at a time."""

from __future__ import annotations

import contextlib
import fnmatch
import json
import os
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from graphcontext.data.document import Document, UnreadableError
from graphcontext.data.documents import READERS, read_document
from graphcontext.errors import InputError
from graphcontext.files import digest, write_atomic
from graphcontext.hashes import hash_file
from graphcontext.store import Store

VERSION = 2  # of the readers: raised when what they return changes
UNSEEN = ("Cc", "Zl", "Zp")  # Unicode's control characters and ends of lines
FILES_PER_WORKER = 4  # unread files from which another process pays


@dataclass(frozen=True)
class Listing:
    """The files of a folder.

    Args:
        files: name relative to the folder, with ``/``, → path; sorted by name.
        left_out: what was not taken and why → how often.
        faults: file → why it was refused.
    """

    files: dict[str, Path]
    left_out: dict[str, int]
    faults: dict[str, str]


def list_files(path: Path, exclude: Sequence[str]) -> Listing:
    """Return the documents of a folder, of all folders in it too, or the one file that ``path`` is.

    Hidden files and folders are passed over, as are files of other kinds; a link that leaves the folder is refused,
    linked folders are not followed, and a folder that cannot be opened is a fault.

    Args:
        path: the folder or file.
        exclude: patterns of names relative to the folder, such as ``drafts/*``; of the last part too.

    Raises:
        InputError: a file of a kind that is not read.
    """
    if path.is_file():
        if path.suffix.lower() not in READERS:
            raise InputError(f"{path}: files of this kind are not read; read are {', '.join(READERS)}")
        return Listing({path.name: path}, {}, {})
    root = path.resolve()
    files: dict[str, Path] = {}
    faults: dict[str, str] = {}
    left: Counter[str] = Counter()

    def named(where: str | Path) -> str:
        return _text(Path(where).relative_to(path).as_posix())

    def refused(error: OSError) -> None:
        faults[named(error.filename)] = f"cannot be opened: {error.strerror}"

    for folder, names, found in os.walk(path, onerror=refused, followlinks=False):
        linked = [name for name in names if Path(folder, name).is_symlink()]
        left["linked folders"] += len(linked)
        names[:] = sorted(name for name in names if not name.startswith(".") and name not in linked)
        for file in sorted(found):
            where = Path(folder, file)
            name = named(where)
            if file.startswith("."):
                left["hidden"] += 1
            elif any(fnmatch.fnmatchcase(part, rule) for rule in exclude for part in (name, file)):
                left["excluded"] += 1
            elif where.suffix.lower() not in READERS:
                left[f"of another kind ({where.suffix.lower() or 'no extension'})"] += 1
            elif where.is_symlink() and not where.exists():  # of a ring of links too, which resolve() refuses
                faults[name] = "is a link to nothing"
            elif where.is_symlink() and not where.resolve().is_relative_to(root):
                faults[name] = "is a link out of the folder; not followed"
            elif where.is_symlink():
                left["links to files of the folder itself"] += 1
            elif not where.is_file():
                faults[name] = "is no file"
            else:
                files[name] = where
    return Listing(dict(sorted(files.items())), {k: n for k, n in sorted(left.items()) if n}, faults)


def read_all(
    listing: Listing, store: Store | None, workers: int | None, quiet: bool = False
) -> tuple[dict[str, Document], dict[str, str]]:
    """Read each file; what was read of one is an artefact of the store, so that a stopped reading goes on there.

    Args:
        listing: the files.
        store: where the results lie, None to keep none.
        workers: processes, None for as many as there are cores; few files are read in this one.
        quiet: no progress bar.

    Returns:
        name → document, and name → reason of each file that cannot be read.
    """
    documents: dict[str, Document] = {}
    faults = dict(listing.faults)
    waiting: dict[str, Path] = {}
    for name, path in listing.files.items():
        kept = _stored(store, path)
        if kept is None:
            waiting[name] = path
        else:
            documents[name] = kept
    with _bar(len(listing.files), len(documents), quiet or not waiting) as advance:
        for name, found in _read(waiting, _n_workers(workers, len(waiting))):
            if isinstance(found, str):
                faults[name] = found
            else:
                documents[name] = found
                _keep(store, waiting[name], found)
            advance()
    return {n: documents[n] for n in sorted(documents)}, {n: faults[n] for n in sorted(faults)}


def _read(waiting: dict[str, Path], n_workers: int) -> Iterator[tuple[str, Document | str]]:
    """Yield each file's document or the reason why there is none, in any order."""
    if n_workers < 2:
        for name, path in waiting.items():
            yield name, read_one(path)
        return
    open_ = dict(waiting)
    with _pool(n_workers) as pool:
        with _without_main():
            futures = {pool.submit(read_one, path): name for name, path in open_.items()}
        with contextlib.suppress(BrokenProcessPool):
            for future in as_completed(futures):
                yield futures[future], future.result()
                del open_[futures[future]]
    for name, path in open_.items():  # one of them ended its process: each in one of its own
        with _pool(1) as pool:
            try:
                with _without_main():
                    future = pool.submit(read_one, path)
                found: Document | str = future.result()
            except BrokenProcessPool:
                found = "ended the process that read it (too little memory?)"
        yield name, found


def read_one(path: Path) -> Document | str:
    """Return what a file holds, or in one line why it cannot be read."""
    try:
        document = read_document(path)
        return replace(document, title=_text(document.title))
    except UnreadableError as error:
        return str(error)
    except RecursionError:
        return "is nested too deep to be read"
    except Exception as error:  # noqa: BLE001 - a foreign file may make its parser raise anything: it is told, the rest goes on
        return f"cannot be read ({type(error).__name__}: {error})".splitlines()[0][:300]


def _pool(n_workers: int) -> Executor:
    import multiprocessing

    return ProcessPoolExecutor(n_workers, mp_context=multiprocessing.get_context("spawn"))


@contextlib.contextmanager
def _without_main() -> Iterator[None]:
    """Start processes that do not run the script of this one again: without a guard it would read the folder anew."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _text(name: str) -> str:
    """Return a file's name as text of one line: bytes that are no UTF-8 as ``\\xff``, a line's end as ``\\n``."""
    text = os.fsencode(name).decode(errors="backslashreplace")
    return "".join(repr(c)[1:-1] if unicodedata.category(c) in UNSEEN else c for c in text)


def _n_workers(workers: int | None, n_files: int) -> int:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(workers or cores, n_files // FILES_PER_WORKER) if n_files else 1


def _key(path: Path) -> str:
    return digest(["document", VERSION, _text(path.stem), path.suffix.lower(), hash_file(path)])


def _stored(store: Store | None, path: Path) -> Document | None:
    if store is None:
        return None
    with contextlib.suppress(OSError):
        artefact = store.artefact("documents", _key(path))
        if artefact.finished is not None:
            with contextlib.suppress(ValueError, KeyError, TypeError, FileNotFoundError):
                return Document.from_json(json.loads((artefact.path / "document.json").read_text(encoding="utf-8")))
    return None


def _keep(store: Store | None, path: Path, document: Document) -> None:
    if store is not None:
        artefact = store.artefact("documents", _key(path))
        with artefact.lock():
            write_atomic(artefact.path / "document.json", json.dumps(document.to_json(), ensure_ascii=False))
            artefact.finish({"n_parts": len(document.parts), "n_pages": len(document.pages)})


@contextlib.contextmanager
def _bar(total: int, done: int, hidden: bool) -> Iterator[Callable[[], Any]]:
    from tqdm import tqdm

    with tqdm(total=total, initial=done, desc="documents", unit="file", disable=hidden or None, file=sys.stderr) as bar:
        yield bar.update
