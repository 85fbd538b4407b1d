"""PDFs: pages in reading order as paragraphs under headings, and tables with their captions (KGP §3.1)."""

from __future__ import annotations

import logging
import re
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from graphcontext.data.document import Document, Part, UnreadableError, markdown
from graphcontext.data.pdf_layout import Box, Layout, blocks, joined, layout, lines
from graphcontext.data.pdf_tables import Table, find_tables

MARGIN = 0.09  # of a page's height, at its top and bottom, where running heads and page numbers stand
LARGE = 1.12  # times the page's usual size from which a short line is a heading
_MARK = "\x00"  # stands in the place of a table while the page is put into reading order
_POOR_TITLE = re.compile(  # of programs that write PDFs, or of files
    r"\.(?:docx?|indd|qxd|pptx?|xlsx?|pdf|tex|dvi|ps)\b|microsoft|^\W*untitled|^\W*$|"
    r"^\W*(?:anonymous|unspecified|unknown|no title|title|powerpoint presentation|"
    r"(?:presentation|document|slide|slides|book|folie|dokument|präsentation)\s*\d*)\W*$",
    re.IGNORECASE,
)
_PAGE_NUMBER = re.compile(
    r"^[-–—\s]*(?:page\s*)?(?:\d{1,4}|[ivxlc]{1,7}|[A-Z]-\d{1,3})(?:\s*(?:of|/)\s*\d+)?[-–—\s]*$", re.I
)


def read_pdf(path: Path) -> Document:
    """Return the text and tables of a PDF.

    Raises:
        UnreadableError: no PDF, damaged, locked with a password, or without any text (a scan).
    """
    pages: list[Layout] = []
    broken: list[int] = []
    with _opened(path) as pdf:
        title = str((pdf.metadata or {}).get("Title") or "").strip()
        for number, page in enumerate(_pages(pdf), 1):
            found = _layout(page)
            if found is None:
                broken.append(number)
            pages.append(found or Layout((), (), (), 0.0, 0.0))
    if not any(page.words for page in pages):
        if broken:
            raise UnreadableError("damaged: no page can be read; save or download it again")
        raise UnreadableError("holds no text: a scan? make the text with OCR (ocrmypdf) and try again")
    if not title or _POOR_TITLE.search(title) or len(title) > 200:
        title = _largest(pages[0]) or path.stem
    running = _running(pages)
    parts: list[Part] = []
    texts: list[str] = []
    lost: list[int] = []
    heading = ""
    for number, page in enumerate(pages, 1):
        tables = find_tables(page)
        found, text, heading = _read_page(page, tables, number, running, heading)
        lost += [number] if sum(bool(part.rows) for part in found) != len(tables) else []
        parts += [part for part in found if part.text != title]
        texts.append(text)
    blank = [n for n, page in enumerate(pages, 1) if not page.words and n not in broken]
    notes = [f"pages without text: {_listed(blank)}"] if blank else []
    notes += [f"pages that are damaged: {_listed(broken)}"] if broken else []
    cut = [n for n, page in enumerate(pages, 1) if page.is_cut]
    notes += [f"pages with text of another direction, which is left out: {_listed(cut)}"] if cut else []
    drawn = [n for n, page in enumerate(pages, 1) if page.is_drawing]
    notes += [f"pages with too many lines to look for ruled tables: {_listed(drawn)}"] if drawn else []
    notes += [f"pages of which a table is lost: {_listed(lost)}"] if lost else []
    return Document(" ".join(title.split()), tuple(parts), tuple(texts), tuple(notes))


def read_tables(path: Path) -> Iterator[tuple[int, Table]]:
    """Yield the tables of a PDF with their pages, as they were found.

    Raises:
        UnreadableError: as :func:`read_pdf`, but for a scan, which has none.
    """
    with _opened(path) as pdf:
        for number, page in enumerate(_pages(pdf), 1):
            found = _layout(page)
            yield from ((number, table) for table in (find_tables(found) if found else ()))


def _opened(path: Path) -> Any:
    """Open a PDF.

    Raises:
        UnreadableError: it cannot be opened.
    """
    try:
        import pdfplumber
    except ImportError as error:
        raise UnreadableError("PDFs need the package pdfplumber, which is not installed") from error
    from pdfminer.pdfdocument import PDFEncryptionError, PDFPasswordIncorrect

    logging.getLogger("pdfminer").setLevel(logging.ERROR)  # it warns of every odd font
    with path.open("rb") as stream:
        head = stream.read(1024)
    if b"%PDF-" not in head:
        raise UnreadableError("is no PDF, though its name says so")
    try:
        pdf = pdfplumber.open(path)
        len(pdf.pages)
    except Exception as error:
        cause = error.args[0] if error.args and isinstance(error.args[0], Exception) else error
        if isinstance(cause, PDFPasswordIncorrect):
            raise UnreadableError("is locked with a password; save a copy without one") from error
        if isinstance(cause, PDFEncryptionError):
            raise UnreadableError(f"is encrypted in a way that cannot be read ({cause}); save a copy") from error
        raise UnreadableError("is cut or damaged; save or download it again") from error
    if not pdf.pages:
        pdf.close()
        raise UnreadableError("is cut or damaged: it has no page; save or download it again")
    return pdf


def _pages(pdf: Any) -> Iterator[Any]:
    for page in pdf.pages:
        yield page
        page.close()  # what it held is not needed again


def _layout(page: Any) -> Layout | None:
    """Return the layout of a page, None where it cannot be read."""
    try:
        return layout(page)
    except Exception:  # noqa: BLE001 - pdfminer raises many kinds on what it cannot parse
        return None


def _read_page(
    page: Layout, tables: Sequence[Table], number: int, running: set[str], heading: str
) -> tuple[list[Part], str, str]:
    """Return the parts of a page in reading order, its whole text, and the heading that goes on."""
    taken = {word for table in tables for word in (*table.captioned, *_inside(table, page))}
    words = [word for word in page.words if word not in taken]
    words = [word for line in lines(words) if not _is_running(line, page, running) for word in line]
    usual = _usual(words)
    marks = [Box(f"{_MARK}{n}", *table.box, size=usual) for n, table in enumerate(tables)]
    parts: list[Part] = []
    for block in blocks([*words, *marks]):
        pending: list[list[Box]] = []
        for line in block:
            rest: list[Box] = []
            for word in line:
                if not word.text.startswith(_MARK):
                    rest.append(word)
                    continue
                heading = _add(parts, [*pending, rest] if rest else pending, number, heading, usual)
                pending, rest = [], []
                table = tables[int(word.text[1:])]
                parts.append(Part("", heading, number, table.rows, table.caption))
            pending += [rest] if rest else []
        heading = _add(parts, pending, number, heading, usual)
    return parts, "\n\n".join(_shown(parts)), heading


def _add(parts: list[Part], block: list[list[Box]], number: int, heading: str, usual: float) -> str:
    """Add a block of lines to the parts, as a heading or a paragraph, and return the heading from there on."""
    at = _headed(block, usual)
    if at:
        heading = " ".join(joined(line).text for line in block[:at])
        block = block[at:]
    text = _paragraph(block)
    if not text:
        return heading
    last = parts[-1] if parts else None
    goes_on = last is not None and not last.rows and last.heading == heading and last.page == number
    if goes_on and last is not None and text[0].islower() and last.text[-1:] not in ".!?:":
        parts[-1] = Part(_hyphenated(last.text, text), heading, number)
    else:
        parts.append(Part(text, heading, number))
    return heading


def _paragraph(block: Sequence[Sequence[Box]]) -> str:
    text = ""
    for line in block:
        text = _hyphenated(text, joined(line).text)
    return text.strip()


def _hyphenated(text: str, more: str) -> str:
    """Join two lines; a hyphen at the end goes where the next line begins with a small letter."""
    if len(text) > 1 and text[-1] in "-‐" and text[-2].isalpha() and more[:1].islower():
        return text[:-1] + more
    return f"{text} {more}".strip()


def _shown(parts: Sequence[Part]) -> Iterator[str]:
    """Yield the texts of a page as a reader sees them: each heading once, tables as Markdown."""
    last = None
    for part in parts:
        if part.heading and part.heading != last and not part.rows:
            yield part.heading
        last = part.heading
        yield f"{part.caption}\n{markdown(part.rows)}".strip() if part.rows else part.text


def _headed(block: Sequence[Sequence[Box]], usual: float) -> int:
    """Return how many lines at the top of a block are its heading: at most three, and unlike the text below them."""
    n = 0
    while n < len(block) and _is_heading(block[n], usual):
        n += 1
    if not n or n > 3:
        return 0
    if n < len(block):
        above, below = joined(block[n - 1]), joined(block[n])
        if above.size < LARGE * below.size and (below.bold or not above.bold):
            return 0
    return n


def _is_heading(line: Sequence[Box], usual: float) -> bool:
    """Tell whether a line may be of a heading: short, larger than the text or bold, no sentence."""
    text = " ".join(word.text for word in line)
    large = min(word.size for word in line) >= LARGE * usual or all(word.bold for word in line)
    return large and len(line) <= 12 and text[-1] not in ".,;:" and any(c.isalpha() for c in text)


def _usual(words: Sequence[Box]) -> float:
    """Return the size of most of the text."""
    return statistics.median([word.size for word in words for _ in word.text]) if words else 10.0


def _inside(table: Table, page: Layout) -> list[Box]:
    x0, top, x1, bottom = table.box
    return [w for w in page.words if x0 - 3 <= (w.x0 + w.x1) / 2 <= x1 + 3 and top <= w.middle <= bottom]


def _largest(page: Layout) -> str:
    """Return the largest text of a page, where it stands alone and is short enough for a title."""
    if not page.words:
        return ""
    size = max(word.size for word in page.words)
    if size < LARGE * _usual(page.words):
        return ""
    title: list[Box] = []
    for line in lines([word for word in page.words if word.size > 0.97 * size]):
        if title and line[0].top - title[-1].bottom > size:
            break
        title += line
    return " ".join(word.text for word in title) if len(title) <= 16 else ""


def _in_margin(line: Sequence[Box], page: Layout) -> bool:
    y = line[0].middle
    return y < MARGIN * page.height or y > (1 - MARGIN) * page.height


def _running(pages: Sequence[Layout]) -> set[str]:
    """Return the texts, digits as #, that stand in the margins of half of the pages, and of three at least."""
    counts: Counter[str] = Counter()
    for page in pages:
        counts.update({_masked(line) for line in lines(page.words) if _in_margin(line, page)})
    return {text for text, n in counts.items() if n >= max(3, len(pages) / 2)}


def _is_running(line: Sequence[Box], page: Layout, running: set[str]) -> bool:
    text = " ".join(word.text for word in line)
    return _in_margin(line, page) and (_masked(line) in running or bool(_PAGE_NUMBER.match(text)))


def _masked(line: Sequence[Box]) -> str:
    return re.sub(r"\d+", "#", " ".join(word.text for word in line))


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers[:10])) + (f", … ({len(numbers)})" if len(numbers) > 10 else "")
