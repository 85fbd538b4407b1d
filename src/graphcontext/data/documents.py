"""Markdown, HTML, plain text and .docx as titled paragraphs and tables; PDFs by :mod:`graphcontext.data.pdf`."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from graphcontext.data.document import Document, Part, UnreadableError
from graphcontext.data.pdf import read_pdf

LARGEST_TEXT = 64 * 2**20  # bytes of one text file, and of the text of one .docx when unpacked
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_RULE = re.compile(r"^\s*\|?\s*:?-{1,}:?\s*(?:\|\s*:?-{1,}:?\s*)*\|?\s*$")
_CAPTION = re.compile(r"^\W*(?:table|exhibit)\s+[A-Z]?[-.]?\d+[a-z]?\b", re.IGNORECASE)
_SKIPPED = frozenset(("script", "style", "noscript", "template", "svg", "nav", "head", "iframe", "object"))
_BLOCKS = frozenset(
    ("p", "div", "li", "dt", "dd", "blockquote", "pre", "section", "article", "ul", "ol", "dl", "br", "hr", "main",
     "header", "footer", "aside", "figure", "figcaption", "body", "html", "caption", "form", "address")
)  # fmt: skip


def read_document(path: Path) -> Document:
    """Return what a file holds, read by its extension (:data:`READERS`).

    Raises:
        UnreadableError: it is empty, damaged, locked, of another kind than its name says, or without text.
    """
    try:
        size = path.stat().st_size
        if size == 0:
            raise UnreadableError("is empty (0 bytes)")
        document = READERS[path.suffix.lower()](path)
    except OSError as error:
        raise UnreadableError(f"cannot be opened: {error.strerror or error}") from error
    if not document.parts:
        raise UnreadableError("holds no text")
    return document


# -- plain text and Markdown -------------------------------------------------------------------------------------------


def _text(path: Path) -> tuple[str, tuple[str, ...]]:
    """Return a file's text and, where it is not UTF-8, a note on what it was read as."""
    if path.stat().st_size > LARGEST_TEXT:
        raise UnreadableError(f"is larger than {LARGEST_TEXT // 2**20} MiB of text; split it")
    data = path.read_bytes()
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", errors="replace"), ()
    if b"\x00" in data[:4096]:
        raise UnreadableError("is no text: it holds zero bytes")
    try:
        return data.decode("utf-8-sig"), ()
    except UnicodeDecodeError:
        return data.decode("cp1252", errors="replace"), ("is no UTF-8; read as Windows-1252",)


def read_text(path: Path) -> Document:
    """Return the paragraphs of a plain text; its title is the file's name."""
    text, notes = _text(path)
    parts = [Part(" ".join(block.split())) for block in re.split(r"\n\s*\n", text.replace("\r\n", "\n"))]
    return Document(path.stem, tuple(part for part in parts if part.text), notes=notes)


def read_markdown(path: Path) -> Document:
    """Return paragraphs, headings and pipe tables of Markdown; its first heading is the title; comments are dropped."""
    text, notes = _text(path)
    text = re.sub(r"\A---\n.*?\n---\n", "", text.replace("\r\n", "\n"), flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->|<script\b.*?</script\s*>|<style\b.*?</style\s*>", "", text, flags=re.DOTALL | re.I)
    builder = _Builder(path.stem)
    lines = text.split("\n")
    at, fence = 0, ""
    while at < len(lines):
        line = lines[at]
        mark = re.match(r"^\s{0,3}(```+|~~~+)", line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        elif fence:
            builder.add(line)
        elif heading := re.match(r"^\s{0,3}(#{1,6})\s+(.*?)\s*#*\s*$", line):
            builder.heading(_plain(heading[2]), len(heading[1]))
        elif at + 1 < len(lines) and line.strip() and re.match(r"^\s{0,3}(?:=+|-{3,})\s*$", lines[at + 1]):
            builder.heading(_plain(line), 1 if "=" in lines[at + 1] else 2)
            at += 1
        elif "|" in line and at + 1 < len(lines) and "|" in lines[at + 1] and _RULE.match(lines[at + 1]):
            end = at + 2
            while end < len(lines) and "|" in lines[end]:
                end += 1
            builder.table([[_plain(cell) for cell in _cells(row)] for row in (line, *lines[at + 2 : end])])
            at = end - 1
        elif not line.strip():
            builder.end()
        else:
            builder.add(_plain(re.sub(r"^\s*(?:[-*+>]|\d+[.)])\s+", "", line)))
        at += 1
    return builder.document(notes)


def _cells(line: str) -> list[str]:
    cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip())]
    return cells[1 if not cells[0] else 0 : -1 if len(cells) > 1 and not cells[-1] else None]


def _plain(text: str) -> str:
    """Return a line of Markdown without its marks: links as their text, no emphasis, no tags."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"</?[a-zA-Z][^>]*>", " ", text)
    text = re.sub(r"(\*\*|__|`+)(.+?)\1", r"\2", text)
    return re.sub(r"(?<!\w)([*_])(?!\s)(.+?)(?<!\s)\1(?!\w)", r"\2", text).strip()


class _Builder:
    """Collects paragraphs under headings; the first heading of the top level found is the title."""

    def __init__(self, name: str) -> None:
        self.name, self.title = name, ""
        self.parts: list[Part] = []
        self._lines: list[str] = []
        self._headings: dict[int, str] = {}

    @property
    def _under(self) -> str:
        return " > ".join(text for level, text in sorted(self._headings.items()) if text != self.title)

    def add(self, line: str) -> None:
        if line.strip():
            self._lines.append(" ".join(line.split()))

    def end(self) -> None:
        if self._lines:
            self.parts.append(Part(" ".join(self._lines), self._under))
        self._lines = []

    def heading(self, text: str, level: int) -> None:
        self.end()
        if not text.strip():
            return
        if not self.title and not self.parts:
            self.title = text
        self._headings = {k: v for k, v in self._headings.items() if k < level} | {level: text}

    def table(self, rows: Sequence[Sequence[str]], caption: str = "") -> None:
        """Add a table; a line ``Table 2: …`` right before it is its caption."""
        self.end()
        width = max((len(row) for row in rows), default=0)
        full = [tuple([*row, *[""] * (width - len(row))]) for row in rows if any(row)]
        last = self.parts[-1] if self.parts else None
        if not caption and last is not None and not last.rows and _CAPTION.match(last.text) and len(last.text) < 300:
            caption = self.parts.pop().text
        if full:
            self.parts.append(Part("", self._under, None, tuple(full), caption))

    def document(self, notes: tuple[str, ...] = ()) -> Document:
        self.end()
        return Document(self.title or self.name, tuple(self.parts), notes=notes)


# -- HTML --------------------------------------------------------------------------------------------------------------


def read_html(path: Path) -> Document:
    """Return headings, paragraphs and tables of HTML; scripts are dropped, entities of a file's own are never read."""
    from lxml import etree

    text, notes = _text(path)
    text = re.sub(r"<!DOCTYPE[^\[>]*\[.*?\]\s*>", "", text, flags=re.DOTALL | re.IGNORECASE)
    parser = etree.HTMLParser(no_network=True, remove_comments=True, remove_pis=True, huge_tree=False, encoding="utf-8")
    try:
        root = etree.fromstring(text.encode("utf-8", errors="replace"), parser)
    except etree.XMLSyntaxError as error:
        raise UnreadableError(f"is no HTML: {str(error).splitlines()[0]}") from error
    if root is None:
        raise UnreadableError("holds no text")
    builder = _Builder(path.stem)
    title = root.findtext(".//head/title") or ""
    builder.title = " ".join(title.split())
    etree.strip_elements(root, *_SKIPPED, with_tail=False)
    _walk(root, builder)
    return builder.document(notes)


def _walk(root: Any, builder: _Builder) -> None:
    """Add the text below an element, in document order, without recursion: pages may be nested deep."""
    pending: list[Any] = [root]
    text: list[str] = []

    def flush() -> None:
        builder.add("".join(text))
        builder.end()
        text.clear()

    while pending:
        node = pending.pop()
        if isinstance(node, str):
            text.append(node)
            continue
        if callable(node):
            node()
            continue
        tag = node.tag if isinstance(node.tag, str) else ""
        pending.append(node.tail or "")
        if not tag:
            continue
        if re.fullmatch(r"h[1-6]", tag):
            flush()
            builder.heading(" ".join(_all_text(node).split()), int(tag[1]))
        elif tag == "table":
            flush()
            rows, nested = _html_rows(node)
            caption = " ".join(_all_text(node.find("caption")).split()) if node.find("caption") is not None else ""
            if nested or len(rows) < 2 or max(map(len, rows)) < 2:  # a table for layout
                pending += [*reversed(list(node)), node.text or ""]
            else:
                builder.table(rows, caption)
        else:
            if tag in _BLOCKS or tag in ("tr", "td", "th"):
                flush()
                pending.append(flush)
            pending += [*reversed(list(node)), node.text or ""]
    flush()


def _html_rows(table: Any) -> tuple[list[list[str]], bool]:
    """Return the cells of a table, spanning ones in their first place, and whether another table is inside."""
    rows: list[list[str]] = []
    for tr in table.iter("tr"):
        row: list[str] = []
        for cell in tr:
            if cell.tag in ("td", "th"):
                span = str(cell.get("colspan") or "1")
                row += [" ".join(_all_text(cell).split())]
                row += [""] * (min(int(span), 50) - 1 if span.isdigit() else 0)
        rows.append(row)
    return [row for row in rows if row], next(table.iterdescendants("table"), None) is not None


def _all_text(node: Any) -> str:
    return "".join(node.itertext())


# -- .docx -------------------------------------------------------------------------------------------------------------


def read_docx(path: Path) -> Document:
    """Return headings, paragraphs and tables of a Word document; nothing is unpacked to disk, no entity is read."""
    from lxml import etree

    body = _docx_member(path, "word/document.xml")
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        root = etree.fromstring(body, parser)
    except etree.XMLSyntaxError as error:
        raise UnreadableError(f"is damaged: {str(error).splitlines()[0]}") from error
    if root.getroottree().docinfo.doctype:
        raise UnreadableError("declares entities of its own, which no Word document does; not read")
    builder = _Builder(path.stem)
    for node in root.iterfind(f"{_W}body/*"):
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
            rows = node.iterfind(f"{_W}tr")
            builder.table([[_word_text(cell) for cell in row.iterfind(f"{_W}tc")] for row in rows])
    return builder.document()


def _style(style: Any) -> str:
    return "" if style is None else str(style.get(f"{_W}val") or "").removeprefix("Ü")


def _word_text(node: Any) -> str:
    """Return the text of a paragraph or cell; tabs and breaks are blanks, deleted text is no text."""
    pieces: list[str] = []
    for part in node.iter(f"{_W}t", f"{_W}tab", f"{_W}br", f"{_W}cr", f"{_W}p"):
        pieces.append(part.text or "" if part.tag == f"{_W}t" else " ")
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


READERS: dict[str, Callable[[Path], Document]] = {
    ".pdf": read_pdf,
    ".md": read_markdown,
    ".markdown": read_markdown,
    ".html": read_html,
    ".htm": read_html,
    ".xhtml": read_html,
    ".txt": read_text,
    ".text": read_text,
    ".docx": read_docx,
}

__all__ = ["READERS", "Document", "UnreadableError", "read_document"]
