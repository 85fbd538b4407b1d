"""One-hop triples from a TSV file."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from graphcontext.data.packed import DAMAGE, open_text
from graphcontext.enhance.one_hop import (
    EMPTY,
    INSTANCE_OF,
    NO_TOPICS,
    Neighbours,
    Statement,
    id_number,
    meant,
    neighbours_of,
    source_path,
)
from graphcontext.enhance.surface_form import normalise
from graphcontext.errors import InputError
from graphcontext.hashes import hash_file

COLUMNS = ("head_id", "head_label", "property_id", "property_label", "tail_id", "tail_label")
SUFFIXES = (".tsv", ".tsv.gz")


class OneHopFile:
    """Looks up one-hop triples in a TSV file, held in memory: Wikidata's in GraphContextGen §4.3.

    A name is compared with the labels of heads, without regard to case, blanks and the marks around it. Of several
    entities with one label the lowest number is meant (:func:`graphcontext.enhance.one_hop.meant`).

    Args:
        name: names the default folder, and the source of each sentence in a context.
        path: TSV file (``.tsv``, ``.tsv.gz``) or folder of such files, with the columns head_id, head_label,
            property_id, property_label, tail_id, tail_label; null is the folder that the package ships under
            ``name``, else that of this name below ``GRAPHCONTEXT_DATA``. For millions of rows: ``one_hop=index``.

    Raises:
        MissingSourceError: at the first look-up, there is no such file.
        InputError: at the first look-up, a row that is none (with its line).
    """

    version: ClassVar[int] = 1
    execution: ClassVar[frozenset[str]] = frozenset({"path"})

    def __init__(self, name: str, path: str | None = None) -> None:
        self.name, self.path = name, path
        self._names: dict[str, tuple[int, str]] | None = None
        self._statements: dict[int, list[Statement]] = {}

    @classmethod
    def identity(cls, config: dict[str, Any]) -> dict[str, str]:
        """Return the hash of the files: the key follows content, not path."""
        hashes = [hash_file(file) for file in tsv_files(source_path(config["name"], config.get("path")))]
        return {"content": hashlib.sha256(json.dumps(hashes).encode()).hexdigest()}

    def neighbours(self, names: Sequence[str]) -> dict[str, Neighbours]:
        """Return each name → the triples of the entity that it means; a blank one means none."""
        if self._names is None:
            self._names = self._load()
        entities = {name: self._names.get(normalise(name)) for name in names}
        return {
            name: EMPTY if entity is None else neighbours_of(entity[1], self._statements[entity[0]])
            for name, entity in entities.items()
        }

    def prepare(self, say: Callable[[str], None] = print) -> int:
        """Check that the files are here; returns how many sources are ready."""
        files = tsv_files(source_path(self.name, self.path))
        say(f"ready: one-hop triples {self.name} ({', '.join(file.name for file in files)})")
        return 1

    def _load(self) -> dict[str, tuple[int, str]]:
        labels: dict[int, str] = {}
        files = tsv_files(source_path(self.name, self.path))
        for label, statement in itertools.chain.from_iterable(map(read_tsv, files)):
            labels.setdefault(statement.head, label)
            self._statements.setdefault(statement.head, []).append(statement)
        candidates: dict[str, list[tuple[int, int, str]]] = {}
        for entity, label in labels.items():
            if not any(s.property == INSTANCE_OF and s.tail in NO_TOPICS for s in self._statements[entity]):
                candidates.setdefault(normalise(label), []).append((0, entity, label))
        candidates.pop("", None)  # labels of marks alone
        return {name: found for name, several in candidates.items() if (found := meant(several)) is not None}


def tsv_files(path: Path) -> list[Path]:
    """Return the TSV files at ``path``, sorted by name.

    Raises:
        InputError: a folder without any.
    """
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.iterdir() if file.is_file() and file.name.lower().endswith(SUFFIXES))
    if not files:
        raise InputError(f"one_hop.path={path}: no .tsv or .tsv.gz file in this folder")
    return files


def read_tsv(path: Path) -> Iterator[tuple[str, Statement]]:
    """Yield (label of the head, statement) of each row.

    Raises:
        InputError: no header with the six columns, a row of another length, an id that is none, heads and tails
            whose ids begin with different letters, text that is not UTF-8; with the line.
    """
    letters: set[str] = set()
    try:
        with open_text(path, newline="\n") as stream:
            columns = stream.readline().rstrip("\r\n").split("\t")
            if not set(COLUMNS) <= set(columns):
                raise InputError(f"{path}: the first line names {columns[:8]}; needed: {', '.join(COLUMNS)}")
            places = [columns.index(name) for name in COLUMNS]
            for number, line in enumerate(stream, 2):
                cells = line.rstrip("\r\n").split("\t")
                where = f"{path}, line {number}"
                if cells == [""]:
                    continue
                if len(cells) != len(columns):
                    raise InputError(f"{where}: {len(cells)} columns, the first line has {len(columns)}")
                head, label, relation_id, relation, tail, tail_label = (cells[place].strip() for place in places)
                numbers = (id_number(entry, where) for entry in (head, relation_id, tail))
                statement = Statement(next(numbers), next(numbers), relation, next(numbers), tail_label)
                letters |= {head[0], tail[0]}
                if len(letters) > 1:
                    raise InputError(f"{where}: ids begin with {' and '.join(sorted(letters))}; one letter a file")
                if label and relation and tail_label:  # without a label in this language it makes no sentence
                    yield label, statement
    except (UnicodeDecodeError, *DAMAGE) as error:
        raise InputError(f"{path}: cannot be read: {type(error).__name__}: {error}") from error
