"""HTML of a post to plain text: code kept verbatim on its own lines, list items, links as their text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

_PARAGRAPHS = frozenset(("p", "blockquote", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "table"))
_BLOCKS = _PARAGRAPHS | {"div", "ul", "ol", "li", "dl", "dt", "dd", "tr", "hr", "br", "section", "article"}
_SKIPPED = frozenset(("script", "style"))
_SPACE = re.compile(r"[ \t\r\n\f\xa0]+")
_URL = re.compile(r"\b(?:https?|ftp)://\S+|\bwww\.\S+", re.IGNORECASE)


def html_to_text(html: str) -> str:
    """Return the text of an HTML fragment as a reader sees it; entities resolved, images as their alt text.

    Inside ``<pre>`` every character is kept; elsewhere runs of white space are one space, a paragraph ends
    with an empty line, a list item starts with ``- `` (``1. `` in an ordered list).
    """
    return _parse(html).text()


def text_beside_links(html: str) -> str:
    """Return the text outside of ``<a>`` elements and without bare URLs: what an answer says itself."""
    return _URL.sub(" ", _parse(html, with_links=False).text()).strip()


def has_link(html: str) -> bool:
    """Tell whether an HTML fragment holds a link or a bare URL."""
    return "<a " in html or _URL.search(html) is not None


def n_words(text: str) -> int:
    """Return the number of words, separated by white space."""
    return len(text.split())


def lengths(texts: Sequence[str]) -> dict[str, float]:
    """Return the mean and the largest number of words of some texts, 0 without any."""
    words = [n_words(text) for text in texts] or [0]
    return {"mean": round(sum(words) / len(words), 1), "max": max(words)}


class _TextTarget:
    """Collects text from parser events; the parser itself mends unclosed and misnested tags."""

    def __init__(self, with_links: bool = True) -> None:
        self._with_links = with_links
        self._lines: list[str] = []
        self._line: list[str] = []
        self._marker = ""  # of a list item whose text has not begun
        self._lists: list[int | None] = []  # per open list: next number, None when unordered
        self._pre = self._skip = 0

    def start(self, tag: str, attrib: dict[str, str]) -> None:
        if self._is_skipped(tag):
            self._skip += 1
        if tag in _BLOCKS:
            self._break(paragraph=tag in _PARAGRAPHS and not self._marker)
        if tag == "pre":
            self._pre += 1
        elif tag in ("ul", "ol"):
            self._lists.append(1 if tag == "ol" else None)
        elif tag == "li":
            self._marker = self._next_marker()
        elif tag in ("td", "th") and self._line:
            self._line.append(" | ")
        elif tag == "img" and not self._skip:
            self._line.append(attrib.get("alt") or "")

    def end(self, tag: str) -> None:
        if self._is_skipped(tag):
            self._skip = max(0, self._skip - 1)
        if tag in _BLOCKS and tag != "br":
            self._break(paragraph=tag in _PARAGRAPHS or (tag in ("ul", "ol") and len(self._lists) == 1))
        if tag == "pre":
            self._pre = max(0, self._pre - 1)
        elif tag in ("ul", "ol") and self._lists:
            self._lists.pop()

    def data(self, data: str) -> None:
        if self._skip:
            return
        if not self._pre:
            self._line.append(data)
            return
        first, *rest = data.split("\n")
        self._line.append(first)
        for line in rest:
            self._lines.append(self._take_marker() + "".join(self._line).rstrip())
            self._line = [line]

    def comment(self, data: str) -> None:
        """Comments are no text."""

    def close(self) -> _TextTarget:
        return self

    def text(self) -> str:
        self._break()
        return "\n".join(self._lines).strip("\n").rstrip()

    def _is_skipped(self, tag: str) -> bool:
        return tag in _SKIPPED or (tag == "a" and not self._with_links)

    def _next_marker(self) -> str:
        indent = "  " * (len(self._lists) - 1)
        if not self._lists or self._lists[-1] is None:
            return f"{indent}- "
        number = self._lists[-1]
        self._lists[-1] = number + 1
        return f"{indent}{number}. "

    def _take_marker(self) -> str:
        marker, self._marker = self._marker, ""
        return marker

    def _break(self, paragraph: bool = False) -> None:
        """End the line in progress, and leave an empty line after a paragraph."""
        line = "".join(self._line)
        line = line.rstrip() if self._pre else _SPACE.sub(" ", line).strip()
        if line:
            self._lines.append(self._take_marker() + line)
        self._line = []
        if paragraph and self._lines and self._lines[-1]:
            self._lines.append("")


@cache
def _html_parser() -> Any:
    from lxml import etree

    return etree.HTMLParser


def _parse(html: str, with_links: bool = True) -> _TextTarget:
    target = _TextTarget(with_links)
    if html.strip():
        parser = _html_parser()(target=target, no_network=True)
        parser.feed(html)
        parser.close()
    return target
