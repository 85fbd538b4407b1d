"""Tables on a page of a PDF: found by ruling lines or by aligned text, cut into cells by both."""

from __future__ import annotations

import itertools
import re
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from graphcontext.data.pdf_layout import TOUCH, Box, Layout
from graphcontext.data.pdf_regions import (
    CAPTION,
    Region,
    aligned_regions,
    bands_of,
    caption_of,
    has_verticals,
    pieces_of,
    ruled_regions,
    verticals,
    without_prose,
)

_NUMBER = re.compile(
    r"^[\s*†‡(<>≤≥~±+\-–—−$€£]*(?:\d[\d.,:/ ]*|[–—-]|\(x\)|x|na|n/a|n\.a\.|\*+)[\s%*†‡)a-z²³°$€£]{0,6}$", re.I
)
_MANY_BANDS = 4  # ruled rows from which ruling lines alone tell rows apart, unless values are numbers
_MANY_LINES = 4  # lines of numbers above the first ruling line from which they are no header


@dataclass(frozen=True)
class Table:
    """One table as rows of cells, with where it stood.

    Args:
        rows: texts of the cells; all rows have one length, a spanning cell stands in its first column.
        caption: the line ``Table 2: …`` above or below it, empty where there is none.
        number: the number in the caption (``2``, ``A-1``), empty where there is none.
        box: x0, top, x1, bottom in points, caption left out.
        captioned: words of the caption, which are no text of the page.
    """

    rows: tuple[tuple[str, ...], ...]
    caption: str
    number: str
    box: tuple[float, float, float, float]
    captioned: tuple[Box, ...] = ()


def find_tables(page: Layout) -> list[Table]:
    """Return the tables of a page from top to bottom.

    Ruled regions (ruling lines that cross, or stand above each other with one extent and columns between them) come
    first, then runs of text lines whose pieces stand in columns. A region without two rows and two columns of text is
    no table.
    """
    tables: list[Table] = []
    free = list(page.words)
    for whole in ruled_regions(page):
        region = without_prose(whole, free, page)
        inside = [word for word in free if region.holds(word)]
        rows = _cells(region, inside, page)
        caption = caption_of(region, free)
        if _is_table(rows) and (caption or has_verticals(region, page) or not _is_prose(rows)):
            tables.append(_table(rows, region, caption))
            taken = {*inside, *caption}
            free = [word for word in free if word not in taken]
    for region, inside in aligned_regions(free, page):
        rows = _cells(region, inside, page)
        caption = caption_of(region, free)
        if _is_table(rows) and (caption or (_numeric_share(rows) >= 0.5 and not _is_prose(rows))):
            tables.append(_table(rows, region, caption))
            taken = {*inside, *caption}
            free = [word for word in free if word not in taken]
    return sorted(tables, key=lambda table: (table.box[1], table.box[0]))


def _table(rows: list[list[str]], region: Region, caption: list[Box]) -> Table:
    text = " ".join(word.text for word in caption)
    match = CAPTION.match(text)
    box = (region.x0, region.top, region.x1, region.bottom)
    return Table(tuple(tuple(row) for row in rows), text, match[1] if match else "", box, tuple(caption))


# -- cells -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Grid:
    """The columns of a table, left to right, as intervals of x."""

    columns: tuple[tuple[float, float], ...]

    def place(self, piece: Box) -> int:
        """Return the column of a piece of text: the first of those it spans, else the one it overlaps most."""
        shares = [min(piece.x1, end) - max(piece.x0, start) for start, end in self.columns]
        spanned = [n for n, (start, end) in enumerate(self.columns) if shares[n] > 0.5 * (end - start)]
        if len(spanned) > 1:
            return spanned[0]
        return max(range(len(shares)), key=lambda n: (shares[n], -n))


def _cells(region: Region, words: Sequence[Box], page: Layout) -> list[list[str]]:
    """Return the rows of cell texts of a region, empty rows and columns left out."""
    if not words:
        return []
    bands = bands_of(region, words, page)
    cut = [pieces_of(band, page) for band in bands]
    strips = [region.x0, *verticals(region, page, 0.5), region.x1]
    whole = _Grid(tuple(itertools.pairwise(strips)))
    ruled = len(strips) > 2 and (len(bands) >= _MANY_BANDS or _is_gridded(region, whole, cut, page))
    first = min(word.x0 for word in words)
    modes = [_mode(pieces, first, ruled, n == 0 and len(bands) > 1) for n, pieces in enumerate(cut)]
    body = [line for pieces, mode in zip(cut, modes) if mode != "merge" for line in pieces]
    grid = _Grid(tuple(part for strip in whole.columns for part in _parts(strip, body)))
    rows: list[list[str]] = []
    for pieces, mode in zip(cut, modes):
        rows += _rows(pieces, mode, grid, region, page)
    rows = [row for row in rows if any(row)]
    kept = [n for n in range(len(grid.columns)) if any(row[n] for row in rows)]
    return [[row[n] for n in kept] for row in rows]


def _is_gridded(region: Region, whole: _Grid, cut: list[list[list[Box]]], page: Layout) -> bool:
    """Tell whether ruling lines stand on all sides of all cells, and each band below the first looks like one row."""
    height, width = region.bottom - region.top, region.x1 - region.x0
    sides = [r for r in page.vertical if min(r.end, region.bottom) - max(r.start, region.top) >= 0.9 * height]
    edges = [r.at for r in page.horizontal if min(r.end, region.x1) - max(r.start, region.x0) >= 0.9 * width]
    left = [side for side in sides if abs(side.at - region.x0) <= TOUCH]
    walls = {at for strip in whole.columns for at in strip}
    body = [line for pieces in cut for line in pieces]
    return (
        len(cut) > 1
        and all(any(abs(at - side.at) <= TOUCH for side in sides) for at in walls)
        and all(any(abs(at - edge) <= TOUCH for edge in edges) for side in left for at in (side.start, side.end))
        and all(_parts(strip, body) == [strip] for strip in whole.columns)
        and all(_is_one_row(band, whole) for band in cut[1:])
    )


def _is_one_row(band: list[list[Box]], grid: _Grid) -> bool:
    """Tell whether few lines of a band fill all columns, and no column has a gap that a line would fit in."""
    held = [{grid.place(piece): piece for piece in line} for line in band]
    for column in range(len(grid.columns)):
        found = [line[column] for line in held if column in line]
        if any(lower.top - upper.bottom > 0.8 * lower.size for upper, lower in itertools.pairwise(found)):
            return False
    return len(band) == 1 or sum(len(line) == len(grid.columns) for line in held) < max(2, len(band) / 2)


def _mode(band: list[list[Box]], first: float, ruled: bool, is_header: bool) -> str:
    """Return how the lines of a band become rows: ``split`` each, ``label`` each with a first cell, ``merge`` all."""
    if len(band) < 2:
        return "split" if not is_header else "merge"
    size = statistics.median(piece.size for line in band for piece in line)
    labelled = sum(line[0].x0 <= first + 4 * size for line in band) / len(band)
    values = [piece.text for line in band for piece in line[1:]]
    many = statistics.mean(len(line) for line in band)
    numeric = sum(bool(_NUMBER.match(value)) for value in values) / max(len(values), 1)
    if values and labelled >= 0.5 and numeric >= 0.6 and (len(band) >= _MANY_LINES or not is_header):
        return "split"
    if ruled or is_header:
        return "merge"
    if labelled >= 0.7 and many >= 0.7 * max(len(line) for line in band) and len(values) >= 0.7 * len(band):
        return "split"
    return "label"


def _parts(strip: tuple[float, float], body: list[list[Box]]) -> list[tuple[float, float]]:
    """Cut a strip between two vertical lines into the columns in which the text of the body's lines stands."""
    inside = [[p for p in line if strip[0] - TOUCH <= (p.x0 + p.x1) / 2 <= strip[1] + TOUCH] for line in body]
    inside = [line for line in inside if line]
    most = max((len(line) for line in inside), default=0)
    if most < 2 or sum(len(line) > 1 for line in inside) < 0.4 * len(inside):
        return [strip]
    full = [line for line in inside if len(line) >= max(2, 0.7 * _typical(inside))]
    spans: list[list[float]] = []
    for start, end in sorted((piece.x0, piece.x1) for line in full for piece in line):
        if spans and start <= spans[-1][1] + 1:
            spans[-1][1] = max(spans[-1][1], end)
        else:
            spans.append([start, end])
    return [(start, end) for start, end in spans] or [strip]


def _typical(body: list[list[Box]]) -> float:
    """Return the number of pieces that lines with more than one mostly have."""
    return statistics.mode(sorted(len(line) for line in body if len(line) > 1))


def _rows(band: list[list[Box]], mode: str, grid: _Grid, region: Region, page: Layout) -> list[list[str]]:
    if mode == "merge":
        return _merged(band, grid, region, page)
    rows: list[list[str]] = []
    for line in band:
        row = _row(line, grid)
        goes_on = not row[0] and rows and not any(_NUMBER.match(cell) for cell in row if cell)
        if goes_on or (mode == "label" and rows and not row[0]):
            rows[-1] = [f"{upper} {lower}".strip() for upper, lower in zip(rows[-1], row)]
        else:
            rows.append(row)
    return rows


def _row(line: list[Box], grid: _Grid) -> list[str]:
    row = [""] * len(grid.columns)
    for piece in line:
        at = grid.place(piece)
        row[at] = f"{row[at]} {piece.text}".strip()
    return row


def _merged(band: list[list[Box]], grid: _Grid, region: Region, page: Layout) -> list[list[str]]:
    """Join the lines of a band into one row, or into one for each line that spans a part of the columns."""
    y0, y1 = min(p.top for line in band for p in line), max(p.bottom for line in band for p in line)
    inner = [rule for rule in page.horizontal if y0 < rule.at < y1 and rule.start < region.x1 and rule.end > region.x0]
    rows: list[list[str]] = [[""] * len(grid.columns)]
    for line in band:
        for piece in line:
            x, y = (piece.x0 + piece.x1) / 2, piece.middle
            level = sum(rule.at < y and rule.start - TOUCH <= x <= rule.end + TOUCH for rule in inner)
            while len(rows) <= level:
                rows.append([""] * len(grid.columns))
            at = grid.place(piece)
            rows[level][at] = f"{rows[level][at]} {piece.text}".strip()
    return rows


# -- is it one? --------------------------------------------------------------------------------------------------------


def _is_table(rows: list[list[str]]) -> bool:
    filled = [sum(map(bool, row)) for row in rows]
    return len(rows) >= 2 and len(rows[0]) >= 2 and sum(n >= 2 for n in filled) >= 2


def _is_prose(rows: Iterable[Sequence[str]]) -> bool:
    """Tell whether the cells beside the first column are sentences rather than values."""
    counts = [len(cell.split()) for row in rows for cell in row[1:] if cell]
    return not counts or statistics.median(counts) > 6


def _numeric_share(rows: Iterable[Sequence[str]]) -> float:
    cells = [cell for row in list(rows)[1:] for cell in row[1:] if cell]
    return sum(bool(_NUMBER.match(cell)) for cell in cells) / max(len(cells), 1)
