"""One-hop triples from an SQLite index of Wikidata."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

from graphcontext.data.location import data_root
from graphcontext.enhance.one_hop import EMPTY, Neighbours, Statement, meant, neighbours_of
from graphcontext.enhance.surface_form import normalise
from graphcontext.errors import InputError, MissingSourceError
from graphcontext.models import home

FORMAT = 2  # raised when what an index holds changes
DUMPS = ("latest-all.json.gz", "latest-all.json.bz2")
DUMP_URL = "https://dumps.wikimedia.org/wikidatawiki/entities/latest-all.json.gz"

_NAMED = "SELECT rank, entity, written FROM names WHERE name = ?"
_STATEMENTS = """
    SELECT t.property, p.label, t.tail, l.label FROM triples t
    JOIN labels l ON l.entity = t.tail JOIN properties p ON p.property = t.property WHERE t.head = ?"""


class OneHopIndex:
    """Looks up one-hop triples in an index of all of Wikidata: GraphContextGen §4.3.

    Kept are the best-ranked statements whose value is an entity with a label in the language. A name is compared with
    the labels and aliases of entities that have such statements, without regard to case, blanks and the marks around
    it. Of several entities a label goes before an alias, then the lowest number
    (:func:`graphcontext.enhance.one_hop.meant`). Memory does not grow with the index.

    Args:
        name: the source of each sentence in a context; names the default index.
        language: of labels and aliases.
        path: the index; null is ``$GRAPHCONTEXT_HOME/one_hop/NAME-LANGUAGE.sqlite``.
        dump_path: what :meth:`prepare` makes it from: a JSON dump (``.json``, ``.gz``, ``.bz2``) or a TSV as
            ``one_hop=file`` reads it; null is ``latest-all.json.gz`` or ``.bz2`` in the folder ``wikidata`` below
            ``GRAPHCONTEXT_DATA``.

    Raises:
        MissingSourceError: there is no index yet.
        InputError: it is no index of this program, or one of another format or language.
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset({"path", "dump_path"})

    def __init__(self, name: str, language: str = "en", path: str | None = None, dump_path: str | None = None) -> None:
        self.name, self.language = name, language
        self.path, self.dump_path = index_path(name, language, path), dump_path
        self._opened: sqlite3.Connection | None = None

    @classmethod
    def identity(cls, config: dict[str, Any]) -> dict[str, str]:
        """Return the hash of what the index was made from, which it holds: hashing all of it would take minutes."""
        path = index_path(config["name"], config["language"], config.get("path"))
        with contextlib.closing(open_index(path, config["language"])) as index:
            return {"content": facts(index)["content"]}

    def neighbours(self, names: Sequence[str]) -> dict[str, Neighbours]:
        """Return each name → the triples of the entity that it means; a blank one means none."""
        if self._opened is None:
            self._opened = open_index(self.path, self.language)
        entities = {name: meant(self._opened.execute(_NAMED, (normalise(name),))) for name in names}
        return {name: EMPTY if entity is None else self._neighbours(*entity) for name, entity in entities.items()}

    def _neighbours(self, head: int, written: str) -> Neighbours:
        assert self._opened is not None
        rows = self._opened.execute(_STATEMENTS, (head,))
        return neighbours_of(written, (Statement(head, *row) for row in rows))

    def prepare(self, say: Callable[[str], None] = print) -> int:
        """Make the index where it is not there yet; returns how many are ready.

        Raises:
            MissingSourceError: neither the index nor a dump is here.
            InputError: the index was made from another dump than ``dump_path``, or the dump is none.
        """
        if self.path.is_file():
            with contextlib.closing(open_index(self.path, self.language)) as index:
                made_from = facts(index)["source"]
            if self.dump_path is not None and Path(self.dump_path).name != made_from:
                other = f"it was made from {made_from}, not from {Path(self.dump_path).name}"
                raise InputError(f"{self.path}: {other}; delete it, or name another with one_hop.path=")
        else:
            from graphcontext.enhance.one_hop_build import build_index

            dump = self._dump()
            say(f"indexing {dump.name}; one pass over the whole file")
            build_index(dump, self.path, self.language, say)
        say(f"ready: one-hop index {self.path.name}")
        return 1

    def _dump(self) -> Path:
        if self.dump_path is not None:
            dump = Path(os.path.expanduser(self.dump_path))
            if not dump.is_file():
                raise MissingSourceError(f"no data: one_hop.dump_path={self.dump_path} is no file")
            return dump
        for name in DUMPS:
            if (data_root() / "wikidata" / name).is_file():
                return data_root() / "wikidata" / name
        raise missing(self.path)


def index_path(name: str, language: str, path: str | None) -> Path:
    """Return where the index lies, or will."""
    return Path(os.path.expanduser(path)) if path else home() / "one_hop" / f"{name}-{language}.sqlite"


def missing(path: Path) -> MissingSourceError:
    """Return the error for an index that is not there."""
    how = f"fetch {DUMP_URL}, then graphcontext prepare one_hop=index one_hop.dump_path=FILE"
    ways_out = "one_hop=file, or one_hop=none"
    return MissingSourceError(f"no data: wikidata one-hop index ({ways_out}); looked at {path}; {how}")


def open_index(path: Path, language: str) -> sqlite3.Connection:
    """Open an index for reading; it never changes, so no lock is taken (it may lie on a file server).

    Raises:
        MissingSourceError: there is none.
        InputError: the file is none, or one of another format or language.
    """
    if not path.is_file():
        raise missing(path)
    index = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True, check_same_thread=False)
    try:
        known = facts(index)
    except sqlite3.DatabaseError as error:
        index.close()
        raise InputError(f"{path} is no one-hop index: {error}; make one with: graphcontext prepare") from error
    if known.get("format") != str(FORMAT):
        index.close()
        made = f"{path} has format {known.get('format')}, this version reads {FORMAT}"
        raise InputError(f"{made}; delete it and make it again with: graphcontext prepare")
    if known.get("language") != language:
        index.close()
        raise InputError(f"{path} is in {known.get('language')!r}, one_hop.language={language}")
    return index


def facts(index: sqlite3.Connection) -> dict[str, str]:
    """Return what an index says of itself: source, content, language, counts."""
    return dict(index.execute("SELECT key, value FROM facts"))
