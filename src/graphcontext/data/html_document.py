"""HTML pages as titled paragraphs and tables."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from graphcontext.data.document import Document, UnreadableError
from graphcontext.data.plain_documents import WIDEST, Builder, decoded, span

_SKIPPED = frozenset(("script", "style", "noscript", "template", "svg", "nav", "head", "iframe", "object"))
_BLOCKS = frozenset(
    ("p", "div", "li", "dt", "dd", "blockquote", "pre", "section", "article", "ul", "ol", "dl", "br", "hr", "main",
     "header", "footer", "aside", "figure", "figcaption", "body", "html", "caption", "form", "address")
)  # fmt: skip
_HIGHEST = 1000  # rows that a cell may span


def read_html(path: Path) -> Document:
    """Return headings, paragraphs and tables of HTML; scripts are dropped, entities of a file's own are never read."""
    from lxml import etree

    text, notes = decoded(path, may_declare=True)
    text = re.sub(r"<!DOCTYPE[^\[>]*\[.*?\]\s*>", "", text, flags=re.DOTALL | re.IGNORECASE)
    parser = etree.HTMLParser(no_network=True, remove_comments=True, remove_pis=True, huge_tree=True, encoding="utf-8")
    try:
        root = etree.fromstring(text.encode("utf-8", errors="replace"), parser)
    except etree.XMLSyntaxError as error:
        raise UnreadableError(f"is no HTML: {str(error).splitlines()[0]}") from error
    if root is None:
        raise UnreadableError("holds no text")
    fatal = parser.error_log.filter_from_fatals()
    if fatal:
        notes = (*notes, f"what comes after line {fatal[0].line} is lost: {fatal[0].message.split(',')[0]}")
    builder = Builder(path.stem)
    title = root.findtext(".//head/title") or ""
    builder.title = " ".join(title.split())
    etree.strip_elements(root, *_SKIPPED, with_tail=False)
    _walk(root, builder)
    return builder.document(notes)


def _walk(root: Any, builder: Builder) -> None:
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
    open_: dict[int, int] = {}  # column → rows that a cell above still covers
    group = None
    for tr in table.iter("tr"):
        if tr.getparent() is not group:
            group, open_ = tr.getparent(), {}
        row: list[str] = []
        below: dict[int, int] = {}
        for cell in tr:
            if cell.tag in ("td", "th"):
                while len(row) in open_:
                    row.append("")
                columns = range(len(row), len(row) + span(cell.get("colspan"), WIDEST))
                below |= dict.fromkeys(columns, span(cell.get("rowspan"), _HIGHEST) - 1)
                row += [" ".join(_all_text(cell).split()), *[""] * (len(columns) - 1)]
        open_ = {column: n for column, n in ({c: n - 1 for c, n in open_.items()} | below).items() if n > 0}
        rows.append(row)
    return [row for row in rows if row], next(table.iterdescendants("table"), None) is not None


def _all_text(node: Any) -> str:
    return "".join(node.itertext())
