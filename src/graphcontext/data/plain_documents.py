"""Plain text and Markdown as titled paragraphs and tables, and what collects these for other formats."""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from pathlib import Path

from graphcontext.data.document import LARGEST_TEXT, Document, Part, UnreadableError

_RULE = re.compile(r"^\s*\|?\s*:?-{1,}:?\s*(?:\|\s*:?-{1,}:?\s*)*\|?\s*$")
_CAPTION = re.compile(r"^\W*(?:table|exhibit)\s+[A-Z]?[-.]?\d+[a-z]?\b", re.IGNORECASE)

_ORDERED = re.compile(r"\s*(\d{1,9})[.)]\s+")
_BREAK = re.compile(r"\s{0,3}([-*_])(?:\s*\1){2,}\s*$")
_TAG = re.compile(
    r"</?(?:a|abbr|acronym|address|article|aside|audio|b|big|blockquote|body|br|button|caption|center|cite|code|col|"
    r"colgroup|dd|del|details|dfn|div|dl|dt|em|figcaption|figure|font|footer|form|h[1-6]|head|header|hr|html|i|iframe|"
    r"img|input|ins|kbd|label|li|link|main|mark|meta|nav|object|ol|p|picture|pre|q|s|samp|section|small|source|span|"
    r"strike|strong|sub|summary|sup|svg|table|tbody|td|tfoot|th|thead|title|tr|tt|u|ul|var|video|wbr)"
    r"(?:\s+(?:[\w:-]+\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s\"'>]+)|open|hidden|checked|disabled|controls|reversed|nowrap))*"
    r"\s*/?>",
    re.IGNORECASE,
)
_AUTOLINK = re.compile(r"<([a-zA-Z][a-zA-Z0-9+.-]+:[^\s<>]*|[^\s<>@]+@[^\s<>@]+)>")
_DECLARED = re.compile(rb"(?:charset|encoding)\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
_NATIONAL = re.compile(r"ascii|big5|cp\d|euc_|gb|hz|iso|koi8|mac|shift_jis|tis")  # no transformation such as punycode
_WIDER = {
    "ascii": "cp1252", "iso8859-1": "cp1252", "iso8859-9": "cp1254", "iso8859-11": "cp874", "tis-620": "cp874",
    "shift_jis": "cp932", "gb2312": "gb18030", "gbk": "gb18030", "euc_kr": "cp949", "big5": "big5hkscs",
}  # fmt: skip
WIDEST = 64  # columns that a cell may span


def span(value: str | None, most: int) -> int:
    """Return a number of columns or rows as a file says it: from 1, at most ``most``."""
    found = re.fullmatch(r"\s*([0-9]+)\s*", value or "")
    return max(1, min(int(found[1][:9]), most)) if found else 1


def decoded(path: Path, may_declare: bool = False) -> tuple[str, tuple[str, ...]]:
    """Return a file's text and a note where its encoding is a guess or does not fit.

    It is UTF-8 or UTF-16; else, if it ``may_declare`` one, what its first 1,024 bytes say; else Windows-1252.
    """
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
        declared = _DECLARED.search(data[:1024]) if may_declare else None
        encoding = _declared(declared[1].decode()) if declared else ""
        if encoding:
            text = data.decode(encoding, errors="replace")
            return text, (f"holds bytes that are no {encoding}",) if "\ufffd" in text else ()
        return data.decode("cp1252", errors="replace"), ("is no UTF-8; read as Windows-1252",)


def _declared(name: str) -> str:
    """Return the encoding of text that is meant by a name, in the wider form that browsers read; empty if unknown."""
    try:
        known = codecs.lookup(name.lower().removeprefix("x-")).name
    except LookupError:
        return ""
    return _WIDER.get(known, known) if _NATIONAL.match(known) else ""


def read_text(path: Path) -> Document:
    """Return the paragraphs of a plain text; its title is the file's name."""
    text, notes = decoded(path)
    parts = [Part(" ".join(block.split())) for block in re.split(r"\n\s*\n", text.replace("\r\n", "\n"))]
    return Document(path.stem, tuple(part for part in parts if part.text), notes=notes)


def read_markdown(path: Path) -> Document:
    """Return paragraphs, headings and pipe tables of Markdown; its first heading is the title; comments are dropped."""
    text, notes = decoded(path)
    text = re.sub(r"\A---\n(?=[\w.-]+[ \t]*:).*?\n---\n", "", text.replace("\r\n", "\n"), flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->|<script\b.*?</script\s*>|<style\b.*?</style\s*>", "", text, flags=re.DOTALL | re.I)
    builder = Builder(path.stem)
    lines = text.split("\n")
    at, fence = 0, ""
    in_list, last = False, 0  # whether the open paragraph is of a numbered list, and the highest number of one
    while at < len(lines):
        line = lines[at]
        mark = re.match(r"^\s{0,3}(```+|~~~+)", line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        elif fence:
            builder.add(line)
        elif heading := re.match(r"^\s{0,3}(#{1,6})\s+(.*?)\s*#*\s*$", line):
            builder.heading(_plain(heading[2]), len(heading[1]))
            in_list, last = False, 0
        elif _BREAK.match(line):
            builder.end()
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
            in_list = False
        else:
            number = _ORDERED.match(line)
            if number and (int(number[1]) == 1 or (int(number[1]) <= last + 1 and (in_list or not builder.is_open))):
                in_list, last = True, max(last, int(number[1]))
                line = line[number.end() :]
            builder.add(_plain(re.sub(r"^\s*[-*+>]\s+", "", line)))
        at += 1
    return builder.document(notes)


def _cells(line: str) -> list[str]:
    cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip())]
    return cells[1 if not cells[0] else 0 : -1 if len(cells) > 1 and not cells[-1] else None]


def _plain(text: str) -> str:
    """Return a line of Markdown without its marks: links as their text, no emphasis, no tags."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = _TAG.sub(" ", _AUTOLINK.sub(r"\1", text))
    text = re.sub(r"(\*\*|__|`+)(.+?)\1", r"\2", text)
    return re.sub(r"(?<!\w)([*_])(?!\s)(.+?)(?<!\s)\1(?!\w)", r"\2", text).strip()


class Builder:
    """Collects paragraphs under headings; the first heading of the top level found is the title."""

    def __init__(self, name: str) -> None:
        self.name, self.title = name, ""
        self.parts: list[Part] = []
        self._lines: list[str] = []
        self._headings: dict[int, str] = {}

    @property
    def _under(self) -> str:
        return " > ".join(text for level, text in sorted(self._headings.items()) if text != self.title)

    @property
    def is_open(self) -> bool:
        """Whether a paragraph has begun."""
        return bool(self._lines)

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
