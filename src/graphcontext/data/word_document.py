"""Word documents (.docx) as titled paragraphs and tables."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from graphcontext.data.document import LARGEST_TEXT, Document, UnreadableError
from graphcontext.data.plain_documents import WIDEST, Builder, span

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_AROUND = frozenset(  # what may stand around blocks, rows and cells
    (*(_W + name for name in ("sdt", "sdtContent", "ins", "moveTo", "customXml", "smartTag")),
     f"{_MC}AlternateContent", f"{_MC}Choice")
)  # fmt: skip
_TEXT = frozenset(_W + name for name in ("t", "tab", "br", "cr", "p"))
_NO_TEXT = frozenset((f"{_W}del", f"{_W}moveFrom", f"{_MC}Fallback"))  # gone, or said twice


def read_docx(path: Path) -> Document:
    """Return headings, paragraphs and tables of a Word document; nothing is unpacked to disk, no entity is read."""
    from lxml import etree

    data = _docx_member(path, "word/document.xml")
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise UnreadableError(f"is damaged: {str(error).splitlines()[0]}") from error
    if root.getroottree().docinfo.doctype:
        raise UnreadableError("declares entities of its own, which no Word document does; not read")
    builder = Builder(path.stem)
    body = root.find(f"{_W}body")
    for node in _inner(body) if body is not None else ():
        if node.tag == f"{_W}p":
            style = node.find(f"{_W}pPr/{_W}pStyle")
            level = re.fullmatch(r"(?:heading\s*|berschrift)?([1-6])|title", _style(style), re.IGNORECASE)
            text = _word_text(node)
            if level and text:
                builder.heading(text, int(level[1] or 1))
            else:
                builder.add(text)
                builder.end()
        elif node.tag == f"{_W}tbl":
            builder.table([_cells(row) for row in _inner(node) if row.tag == f"{_W}tr"])
    return builder.document()


def _inner(node: Any) -> Iterator[Any]:
    """Yield the blocks of a body, rows of a table or cells of a row, those within controls and insertions too."""
    for child in node:
        if child.tag in _AROUND:
            yield from _inner(child)
        else:
            yield child


def _cells(row: Any) -> list[str]:
    """Return the cells of a row, each over several columns in its first."""
    cells = [""] * (_number(row, "trPr/gridBefore", 0))
    for cell in _inner(row):
        if cell.tag == f"{_W}tc":
            cells += [_word_text(cell), *[""] * (_number(cell, "tcPr/gridSpan", 1) - 1)]
    return cells


def _number(node: Any, name: str, default: int) -> int:
    found = node.find("/".join(_W + part for part in name.split("/")))
    return default if found is None else span(found.get(f"{_W}val"), WIDEST)


def _style(style: Any) -> str:
    return "" if style is None else str(style.get(f"{_W}val") or "").removeprefix("Ü")


def _word_text(node: Any) -> str:
    """Return the text of a paragraph or cell; tabs and breaks are blanks, deleted or moved text is none."""
    pieces: list[str] = []
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if part.tag in _TEXT:
            pieces.append(part.text or "" if part.tag == f"{_W}t" else " ")
        waiting += [child for child in reversed(part) if child.tag not in _NO_TEXT]
    return " ".join("".join(pieces).split())


def _docx_member(path: Path, name: str) -> bytes:
    """Return one member of the archive, read in memory up to :data:`LARGEST_TEXT`.

    Raises:
        UnreadableError: no archive, damaged, locked, another kind of document, or it unpacks to more.
    """
    with path.open("rb") as stream:
        if stream.read(8) == b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1":
            raise UnreadableError("is an old .doc or locked with a password; save it as .docx without one")
    try:
        with zipfile.ZipFile(path) as archive, archive.open(name) as stream:
            data = stream.read(LARGEST_TEXT + 1)
    except KeyError as error:
        raise UnreadableError("is no Word document: word/document.xml is not in it") from error
    except (zipfile.BadZipFile, EOFError, OSError, RuntimeError, ValueError, NotImplementedError) as error:
        raise UnreadableError(f"is no .docx, or damaged ({type(error).__name__}: {error})") from error
    except zipfile.zlib.error as error:
        raise UnreadableError("is damaged: a block cannot be unpacked") from error
    if len(data) > LARGEST_TEXT:
        raise UnreadableError(f"would unpack to more than {LARGEST_TEXT // 2**20} MiB of text; not read")
    return data
