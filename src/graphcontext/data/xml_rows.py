"""Stream the rows of a Stack Exchange dump's XML files, in constant memory; what is no row is refused."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from pathlib import Path

from graphcontext.data.packed import DAMAGE, open_bytes
from graphcontext.errors import InputError

CHUNK = 1 << 18  # bytes fed to the parser at once
MEND = "fetch the file again; a part of a dump is never read as if it were whole"


def rows(path: Path, root: str) -> Iterator[dict[str, str]]:
    """Yield the attributes of every ``<row>`` below ``<root>`` of an XML file, in constant memory.

    Raises:
        InputError: the file is empty, is no XML, is cut or malformed (with the row and byte reached), has another
            root element, or declares a DOCTYPE, which is how entity bombs come.
    """
    from lxml import etree

    target = _RowTarget(path, root)
    # "internal" resolves &amp; and its like; False leaves it as &#38; in attributes. No others can be declared.
    parser = etree.XMLParser(target=target, resolve_entities="internal", no_network=True)
    n_bytes = 0
    try:
        with open_bytes(path) as stream:
            while chunk := stream.read(CHUNK):
                parser.feed(chunk)
                n_bytes += len(chunk)
                yield from target.take()
        parser.close()
        yield from target.take()
    except (etree.XMLSyntaxError, *DAMAGE) as fault:
        reason = re.sub(r"\(<string>, line \d+\)$", "", " ".join(str(fault).split())).strip()
        if target.root_is_missing and not isinstance(fault, EOFError | zlib.error):
            reason = reason if path.stat().st_size else "it is empty"
            raise InputError(f"{path} is no XML dump: {reason}; fetch it again, or name another file") from fault
        raise InputError(
            f"{path} is cut or malformed after row {target.n_rows} (last whole row: {target.last_id}), "
            f"near byte {n_bytes}: {reason}; {MEND}"
        ) from fault


class _RowTarget:
    """Parser target that holds the rows of one chunk."""

    def __init__(self, path: Path, root: str) -> None:
        self._path, self._root = path, root
        self._rows: list[dict[str, str]] = []
        self._depth = 0
        self.root_is_missing = True
        self.n_rows = 0
        self._last: dict[str, str] | None = None

    def start(self, tag: str, attrib: dict[str, str]) -> None:
        self._depth += 1
        if self._depth == 1:
            if tag != self._root:
                raise InputError(f"{self._path}: got root element <{tag}>, expected <{self._root}>: another file")
            self.root_is_missing = False
        elif tag == "row" and self._depth == 2:
            self.n_rows += 1
            self._rows.append(attrib)
        else:
            raise InputError(f"{self._where()} comes <{tag[:40]}>, expected <row> below <{self._root}>; {MEND}")

    def end(self, tag: str) -> None:
        self._depth -= 1

    def data(self, data: str) -> None:
        """Refuse text: rows carry attributes only, so that it is what is left of a damaged row."""
        if not data.isspace():
            raise InputError(f"{self._where()} comes text, {data.strip()[:40]!r}, expected a <row>; {MEND}")

    def doctype(self, name: str, *ids: str | None) -> None:
        raise InputError(f"{self._path} declares a DOCTYPE ({name}): refused, a dump has none (entity bomb)")

    def take(self) -> list[dict[str, str]]:
        taken, self._rows = self._rows, []
        if taken:
            self._last = taken[-1]
        return taken

    def close(self) -> None:
        """Nothing is built."""

    @property
    def last_id(self) -> str:
        row = self._rows[-1] if self._rows else self._last
        return "none" if row is None else f"Id {row.get('Id', '?')[:40]}"

    def _where(self) -> str:
        return f"{self._path} is malformed: after row {self.n_rows}"
