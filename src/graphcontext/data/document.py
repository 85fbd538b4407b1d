"""A document of any format as titled paragraphs and tables, and the passages it is cut into (KGP §2)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from graphcontext.data.records import Passage, Source, content_id
from graphcontext.errors import InputError

LARGEST_TEXT = 64 * 2**20  # bytes of one text file, and of the text of one .docx when unpacked
LONGEST = 4  # times passage_characters: a sentence beyond it is cut at a blank
_END = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+(?=[\"'“‘(\[]*[A-Z0-9ÄÖÜÉÀ])|\n{2,}")
_ABBREVIATION = re.compile(
    r"\b(?:[A-Z]|Mr|Mrs|Ms|Dr|Prof|Sr|Jr|St|No|Nos|Fig|Figs|Tab|Eq|Vol|vs|etc|al|e\.g|i\.e|cf|approx|pp?|Inc|Ltd|Co|"
    r"Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec|U\.S|U\.K)\.$"
)


class UnreadableError(InputError):
    """One file of a folder holds no text that can be read; the message is the reason, without the file's name."""


@dataclass(frozen=True)
class Part:
    """A paragraph, or a table as its rows.

    Args:
        text: of the paragraph; empty for a table.
        heading: the heading it stands under, empty where there is none.
        page: from 1, None where the format has no pages.
        rows: of a table, all of one length; the first is its header.
        caption: of a table, such as ``Table 2: Ferries``.
    """

    text: str
    heading: str = ""
    page: int | None = None
    rows: tuple[tuple[str, ...], ...] = ()
    caption: str = ""


@dataclass(frozen=True)
class Document:
    """What was read of one file.

    Args:
        title: of the document, the file's name where it has none.
        parts: in reading order.
        pages: the whole text of each page, tables as Markdown; empty where the format has no pages.
        notes: what of it could not be read, one clear line each.
    """

    title: str
    parts: tuple[Part, ...]
    pages: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(row: dict[str, Any]) -> Document:
        parts = [Part(**{**part, "rows": tuple(tuple(cells) for cells in part["rows"])}) for part in row["parts"]]
        return Document(row["title"], tuple(parts), tuple(row["pages"]), tuple(row["notes"]))


@dataclass(frozen=True)
class Cutting:
    """How documents become passages.

    Args:
        passage_characters: sentences are joined up to this length (KGP: 250).
        table_characters: a table whose Markdown is longer is cut between rows, its header repeated.
        license: of the texts, empty where none was said.
    """

    passage_characters: int
    table_characters: int
    license: str = ""


def passages(document: Document, name: str, cutting: Cutting) -> list[Passage]:
    """Return the passages of a document in reading order: per page its page node, then its texts and tables.

    A text is matched on itself and shown as "Title > Heading: text". A page has no text to match and is shown whole.
    A table has its caption and Markdown as both texts.

    Args:
        document: what was read.
        name: of its file, relative to the folder.
        cutting: lengths.
    """
    seen: Counter[tuple[str, ...]] = Counter()

    def passage(kind: Literal["page", "table"] | None, page: int | None, shown: str, matched: str) -> Passage:
        parts = (name, kind or "text", str(page), shown)
        seen[parts] += 1
        source = Source(link=name, license=cutting.license, document=name, page=page)
        return Passage(content_id(*parts, str(seen[parts] - 1)), document.title, matched, shown, source, kind=kind)

    found: list[Passage] = []
    at = 0  # pages that have their node
    for part in _merged(document.parts, cutting.passage_characters):
        while part.page is not None and at < min(part.page, len(document.pages)):
            at += 1
            found.append(passage("page", at, _page(document, at), ""))
        if part.rows:
            found += [passage("table", part.page, t, t) for t in table_texts(part, cutting.table_characters)]
        else:
            about = f"{document.title} > {part.heading}" if part.heading else document.title
            found.append(passage(None, part.page, f"{about}: {part.text}", part.text))
    for rest in range(at + 1, len(document.pages) + 1):
        found.append(passage("page", rest, _page(document, rest), ""))
    return found


def _page(document: Document, number: int) -> str:
    return f"{document.title}, page {number}\n{document.pages[number - 1]}".rstrip()


def _merged(parts: Sequence[Part], limit: int) -> Iterator[Part]:
    """Yield tables as they are, and the sentences of neighbouring paragraphs (one page, one heading) joined."""
    waiting: list[str] = []
    last: Part | None = None
    for part in parts:
        if last is not None and (part.rows or (part.page, part.heading) != (last.page, last.heading)):
            yield from (Part(text, last.heading, last.page) for text in joined(waiting, limit))
            waiting, last = [], None
        if part.rows:
            yield part
        else:
            waiting += sentences(part.text, LONGEST * limit)
            last = part
    if last is not None:
        yield from (Part(text, last.heading, last.page) for text in joined(waiting, limit))


def joined(texts: Sequence[str], limit: int) -> list[str]:
    """Join neighbouring texts by a blank as long as the result has at most ``limit`` characters.

    >>> joined(["One.", "Two.", "Three is longer."], 10)
    ['One. Two.', 'Three is longer.']
    """
    result: list[str] = []
    for text in texts:
        if result and len(result[-1]) + 1 + len(text) <= limit:
            result[-1] += " " + text
        else:
            result.append(text)
    return result


def sentences(text: str, longest: int = 10**9) -> list[str]:
    """Cut a text into sentences, white space collapsed; no data files are needed.

    A sentence ends at ``. ! ?`` before a capital or a digit, not after an initial or a common abbreviation, and at an
    empty line. One of more than ``longest`` characters is cut at blanks.

    >>> sentences("Dr. Ames left at 5 p.m. She was late! Was she?  Yes.")
    ['Dr. Ames left at 5 p.m.', 'She was late!', 'Was she?', 'Yes.']
    """
    found: list[str] = []
    open_ = ""
    start = 0
    for match in (*_END.finditer(text), None):
        piece = " ".join(text[start : match.end() if match else len(text)].split())
        start = match.end() if match else start
        open_ = f"{open_} {piece}".strip()
        is_paragraph = match is None or "\n\n" in match[0]
        if open_ and (is_paragraph or not _ABBREVIATION.search(open_)):
            found += _short(open_, longest)
            open_ = ""
    return found


def _short(text: str, longest: int) -> Iterator[str]:
    while len(text) > longest:
        at = text.rfind(" ", 1, longest + 1)
        at = at if at > 0 else longest
        yield text[:at].strip()
        text = text[at:].strip()
    if text:
        yield text


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as a Markdown table, the first as its header; pipes are escaped, line breaks become blanks.

    >>> print(markdown([["a|b", "n"], ["x", "1"]]))
    | a\\|b | n |
    | --- | --- |
    | x | 1 |
    """
    lines = ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + " --- |" * len(rows[0]), *lines[1:]]) if rows else ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|")


def table_texts(part: Part, limit: int) -> list[str]:
    """Return a table's caption and Markdown, cut between rows into pieces of at most ``limit`` characters.

    Each piece repeats caption and header and says which rows it holds. A row that is longer by itself stays whole.
    """
    whole = f"{part.caption}\n{markdown(part.rows)}".strip()
    if len(whole) <= limit or len(part.rows) < 3:
        return [whole]
    header, body = part.rows[0], part.rows[1:]
    fixed = len(part.caption) + len(markdown([header])) + 40
    pieces: list[list[int]] = []
    used = 0
    for n, row in enumerate(body):
        cost = sum(len(_cell(cell)) + 3 for cell in row) + 2
        if not pieces or used + cost > limit:
            pieces.append([])
            used = fixed
        pieces[-1].append(n)
        used += cost
    texts = []
    for piece in pieces:
        said = f"{part.caption} (rows {piece[0] + 1} to {piece[-1] + 1} of {len(body)})".strip()
        texts.append(f"{said}\n{markdown([header, *(body[n] for n in piece)])}")
    return texts if len(texts) > 1 else [whole]
