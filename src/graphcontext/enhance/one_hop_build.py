"""An index of one-hop triples, made in one pass over a Wikidata dump or a TSV, in bounded memory."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import hashlib
import io
import itertools
import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graphcontext.enhance.one_hop import INSTANCE_OF, NO_TOPICS
from graphcontext.enhance.one_hop_file import SUFFIXES, read_tsv
from graphcontext.enhance.one_hop_index import FORMAT
from graphcontext.enhance.surface_form import normalise
from graphcontext.enhance.wikidata_dump import Entity, read_dump
from graphcontext.errors import InputError
from graphcontext.files import disk_error
from graphcontext.lease import Lease

BATCH = 20_000  # entities per transaction

_TABLES = """
    CREATE TABLE facts (key TEXT PRIMARY KEY, value TEXT);
    CREATE TABLE names (name TEXT, rank INTEGER, entity INTEGER, written TEXT);
    CREATE TABLE triples (head INTEGER, property INTEGER, tail INTEGER);
    CREATE TABLE labels (entity INTEGER PRIMARY KEY, label TEXT);
    CREATE TABLE properties (property INTEGER PRIMARY KEY, label TEXT);"""
# Names are kept of entities with a triple that has labels: which entity a name means is asked among those alone.
_FINISH = f"""
    DELETE FROM names WHERE entity IN (SELECT head FROM triples WHERE property = {INSTANCE_OF}
        AND tail IN ({", ".join(map(str, sorted(NO_TOPICS)))}));
    CREATE INDEX triples_by_head ON triples (head);
    DELETE FROM names WHERE NOT EXISTS (SELECT 1 FROM triples t
        CROSS JOIN labels l ON l.entity = t.tail CROSS JOIN properties p ON p.property = t.property
        WHERE t.head = names.entity);
    CREATE INDEX names_by_name ON names (name);"""


@dataclass
class _Rows:
    """Rows that are waiting to be written."""

    names: list[tuple[str, int, int, str]] = field(default_factory=list)
    triples: list[tuple[int, int, int]] = field(default_factory=list)
    labels: list[tuple[int, str]] = field(default_factory=list)
    properties: list[tuple[int, str]] = field(default_factory=list)

    def add(self, entity: Entity) -> None:
        if entity.label:
            (self.properties if entity.is_property else self.labels).append((entity.number, entity.label))
        if entity.is_property or not entity.statements:
            return
        self.triples += [(entity.number, p, tail) for p, tail in entity.statements]
        written = [(0, entity.label), *((1, alias) for alias in entity.aliases)]
        self.names += [(normalise(w), rank, entity.number, w) for rank, w in written if w and normalise(w)]

    def write(self, database: sqlite3.Connection) -> None:
        database.executemany("INSERT INTO names VALUES (?, ?, ?, ?)", self.names)
        database.executemany("INSERT INTO triples VALUES (?, ?, ?)", self.triples)
        database.executemany("INSERT OR IGNORE INTO labels VALUES (?, ?)", self.labels)
        database.executemany("INSERT OR IGNORE INTO properties VALUES (?, ?)", self.properties)
        database.commit()
        self.__init__()  # type: ignore[misc]


def build_index(source: Path, target: Path, language: str, say: Callable[[str], None] = print) -> None:
    """Make the index ``target`` from ``source``; it appears whole or not at all.

    Args:
        source: JSON dump (``.json``, ``.json.gz``, ``.json.bz2``: one entity a line) or TSV (:func:`read_tsv`).
        target: the SQLite file; several processes may ask for it, one makes it.
        language: of labels and aliases; a TSV is taken to be in it.
        say: told how far it is.

    Raises:
        InputError: the source is damaged, or holds no triple.
        RunError: the disk is full.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with Lease(target.with_name(f"{target.name}.lock")):
        if target.is_file():
            return
        temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        try:
            _fill(temporary, source, language, say)
            os.replace(temporary, target)
        except sqlite3.OperationalError as error:  # the disk is full, or cannot be written to
            raise disk_error(OSError(0, str(error)), target) from error
        finally:
            for leftover in (temporary, temporary.with_name(f"{temporary.name}-journal")):
                leftover.unlink(missing_ok=True)


def _fill(path: Path, source: Path, language: str, say: Callable[[str], None]) -> None:
    path.unlink(missing_ok=True)
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -65536;")
        database.executescript(_TABLES)
        rows, n = _Rows(), 0
        with contextlib.closing(_Hashed(source)) as raw:
            opened = io.BufferedReader(raw, 1 << 20)  # closes the file when it goes out of scope
            for n, entity in enumerate(_read(source, opened, language), 1):
                rows.add(entity)
                if n % BATCH == 0:
                    rows.write(database)
                    say(f"{n:,} entities, {raw.share:.0%} of {source.name}")
            content = raw.content()
        rows.write(database)
        if database.execute("SELECT 1 FROM triples LIMIT 1").fetchone() is None:
            raise InputError(f"{source}: no statement between entities in it ({n} entities read)")
        say("sorting")
        database.executescript(_FINISH)
        counts = {t: database.execute(f"SELECT COUNT(*) FROM {t}").fetchone()[0] for t in ("names", "triples")}
        known = {"source": source.name, "language": language, "format": FORMAT, **counts}
        known["content"] = hashlib.sha256(json.dumps([content, language, FORMAT]).encode()).hexdigest()
        database.executemany("INSERT INTO facts VALUES (?, ?)", [(k, str(v)) for k, v in known.items()])
        database.commit()


class _Hashed(io.RawIOBase):
    """A file that is hashed while it is read."""

    def __init__(self, path: Path) -> None:
        self._stream, self._hash = path.open("rb"), hashlib.sha256()
        self._size, self._n = path.stat().st_size, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        n = self._stream.readinto(buffer)
        self._hash.update(memoryview(buffer)[:n])
        self._n += n
        return n

    @property
    def share(self) -> float:
        return self._n / max(1, self._size)

    def content(self) -> str:
        """Return the hash of the whole file, what was not read yet included."""
        while data := self._stream.read(1 << 20):
            self._hash.update(data)
        return self._hash.hexdigest()

    def close(self) -> None:
        self._stream.close()
        super().close()


def _read(source: Path, opened: io.BufferedReader, language: str) -> Iterator[Entity]:
    name = source.name.lower()
    if name.endswith(SUFFIXES):
        return _tsv_entities(source)
    if name.endswith(".gz"):
        return read_dump(gzip.GzipFile(fileobj=opened), str(source), language)
    if name.endswith(".bz2"):
        return read_dump(bz2.BZ2File(opened), str(source), language)
    return read_dump(opened, str(source), language)


def _tsv_entities(source: Path) -> Iterator[Entity]:
    """Yield each run of rows with one head as an entity, and the labels of its properties and tails."""
    for (head, label), rows in itertools.groupby(read_tsv(source), key=lambda row: (row[1].head, row[0])):
        statements = [statement for _, statement in rows]
        yield Entity(head, False, label, (), tuple((s.property, s.tail) for s in statements))
        for statement in statements:
            yield Entity(statement.property, True, statement.relation)
            yield Entity(statement.tail, False, statement.tail_label)
