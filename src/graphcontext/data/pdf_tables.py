"""Tables on a page of a PDF: found by ruling lines or by aligned text, cut into cells by both."""

from __future__ import annotations

import itertools
import re
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from graphcontext.data.pdf_layout import TOUCH, Box, Layout, joined, lines, segments

CAPTION = re.compile(r"^(?:table|exhibit|tab\.)\s*([a-z]{0,2}[-.]?\d+(?:[-.]\d+)*[a-z]?)\b", re.IGNORECASE)
_NUMBER = re.compile(
    r"^[\s*†‡(<>≤≥~±+\-–—−$€£]*(?:\d[\d.,:/ ]*|[–—-]|\(x\)|x|na|n/a|n\.a\.|\*+)[\s%*†‡)a-z²³°$€£]{0,6}$", re.I
)
_MANY_BANDS = 4  # ruled rows from which ruling lines alone tell rows apart, unless values are numbers
_MANY_LINES = 4  # lines of numbers above the first ruling line from which they are no header
_CAPTION_LINES = 4


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


@dataclass(frozen=True)
class _Region:
    """A part of the page that may be a table."""

    x0: float
    top: float
    x1: float
    bottom: float

    def holds(self, word: Box) -> bool:
        inside = self.x0 - TOUCH <= (word.x0 + word.x1) / 2 <= self.x1 + TOUCH
        return inside and self.top <= word.middle <= self.bottom


def find_tables(page: Layout) -> list[Table]:
    """Return the tables of a page from top to bottom.

    Ruled regions (ruling lines that cross, or stand above each other with one extent and columns between them) come
    first, then runs of text lines whose pieces stand in columns. A region without two rows and two columns of text is
    no table.
    """
    tables: list[Table] = []
    free = list(page.words)
    for whole in _ruled_regions(page):
        region = _without_prose(whole, free, page)
        inside = [word for word in free if region.holds(word)]
        rows = _cells(region, inside, page)
        caption = _caption(region, free)
        if _is_table(rows) and (caption or _has_verticals(region, page) or not _is_prose(rows)):
            tables.append(_table(rows, region, caption))
            taken = {*inside, *caption}
            free = [word for word in free if word not in taken]
    for region, inside in _aligned_regions(free, page):
        rows = _cells(region, inside, page)
        caption = _caption(region, free)
        if _is_table(rows) and (caption or (_numeric_share(rows) >= 0.5 and not _is_prose(rows))):
            tables.append(_table(rows, region, caption))
            taken = {*inside, *caption}
            free = [word for word in free if word not in taken]
    return sorted(tables, key=lambda table: (table.box[1], table.box[0]))


def _table(rows: list[list[str]], region: _Region, caption: list[Box]) -> Table:
    text = " ".join(word.text for word in caption)
    match = CAPTION.match(text)
    box = (region.x0, region.top, region.x1, region.bottom)
    return Table(tuple(tuple(row) for row in rows), text, match[1] if match else "", box, tuple(caption))


# -- regions -----------------------------------------------------------------------------------------------------------


def _ruled_regions(page: Layout) -> list[_Region]:
    """Return regions of crossing lines, joined with horizontal lines of their extent where columns stand between."""
    parts = sorted(_crossing(page), key=lambda r: (r.top, r.x0))
    regions: list[_Region] = []
    for part in parts:
        for n, above in enumerate(regions):
            if _same_extent(above, part) and part.top >= above.top and _is_columnar(above, part, page):
                regions[n] = _union(above, part)
                break
        else:
            regions.append(part)
    whole: list[_Region] = []
    for region in regions:  # a part within another is of the same table
        over = [n for n, other in enumerate(whole) if _overlap(other, region)]
        if over:
            whole[over[0]] = _union(whole[over[0]], region)
        else:
            whole.append(region)
    return [r for r in whole if r.bottom - r.top > 2 * TOUCH and r.x1 - r.x0 > 10 * TOUCH]


def _without_prose(region: _Region, words: Sequence[Box], page: Layout) -> _Region:
    """Return a region without the bands of sentences, or of a caption, that it begins or ends with."""
    bands = _bands(region, [word for word in words if region.holds(word)], page)

    def is_prose(band: list[Box]) -> bool:
        pieces = [piece for line in _pieces(band, page) for piece in line]
        has_caption = bool(CAPTION.match(pieces[0].text))
        return has_caption or (len(pieces) == len(lines(band)) and min(len(p.text.split()) for p in pieces) > 4)

    while bands and is_prose(bands[0]):
        bands = bands[1:]
    while bands and is_prose(bands[-1]):
        bands = bands[:-1]
    if not bands:
        return region
    top, bottom = min(word.top for word in bands[0]), max(word.bottom for word in bands[-1])
    return _Region(region.x0, top - TOUCH / 2, region.x1, bottom + TOUCH / 2)


def _crossing(page: Layout) -> list[_Region]:
    """Return the extent of each set of ruling lines that touch; one that touches none is a set of its own."""
    boxes = [(r.start, r.at, r.end, r.at) for r in page.horizontal]
    n_horizontal = len(boxes)
    boxes += [(r.at, r.start, r.at, r.end) for r in page.vertical]
    parent = list(range(len(boxes)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    for h in range(n_horizontal):
        x0, y, x1, _ = boxes[h]
        for v in range(n_horizontal, len(boxes)):
            x, top, _, bottom = boxes[v]
            if x0 - TOUCH <= x <= x1 + TOUCH and top - TOUCH <= y <= bottom + TOUCH:
                parent[root(v)] = root(h)
    sets: dict[int, list[tuple[float, float, float, float]]] = {}
    for i, box in enumerate(boxes):
        if i < n_horizontal or root(i) < n_horizontal:  # a vertical line alone is no part of a table
            sets.setdefault(root(i), []).append(box)
    return [
        _Region(min(b[0] for b in found), min(b[1] for b in found), max(b[2] for b in found), max(b[3] for b in found))
        for found in sets.values()
    ]


def _same_extent(above: _Region, below: _Region) -> bool:
    """Tell whether two sets of lines stand above each other, one perhaps spanning a part of the columns."""
    equal = abs(above.x0 - below.x0) <= 3 * TOUCH and abs(above.x1 - below.x1) <= 3 * TOUCH
    within = above.x0 - TOUCH <= below.x0 and below.x1 <= above.x1 + TOUCH
    return equal or within


def _is_columnar(above: _Region, below: _Region, page: Layout) -> bool:
    """Tell whether the text between two regions stands in columns of short pieces; no text says nothing against it."""
    between = _Region(above.x0, above.bottom, above.x1, below.top)
    found = [segments(line) for line in lines([word for word in page.words if between.holds(word)])]
    if not found:
        return below.top - above.bottom <= 30
    if any(CAPTION.match(" ".join(piece.text for piece in line)) for line in found):
        return False
    pieces = [piece for line in found for piece in line]
    if statistics.median(len(piece.text.split()) for piece in pieces) > 5 or len(found) > 120:
        return False
    return sum(len(line) > 1 for line in found) >= 0.4 * len(found)


def _overlap(a: _Region, b: _Region) -> bool:
    return min(a.x1, b.x1) - max(a.x0, b.x0) > TOUCH and min(a.bottom, b.bottom) - max(a.top, b.top) > TOUCH


def _union(a: _Region, b: _Region) -> _Region:
    return _Region(min(a.x0, b.x0), min(a.top, b.top), max(a.x1, b.x1), max(a.bottom, b.bottom))


def _has_verticals(region: _Region, page: Layout) -> bool:
    return len(_verticals(region, page, 0.3)) > 0


def _verticals(region: _Region, page: Layout, share: float) -> list[float]:
    """Return the x of vertical lines inside a region that run along ``share`` of its height."""
    height = region.bottom - region.top
    found = []
    for rule in page.vertical:
        inside = min(rule.end, region.bottom) - max(rule.start, region.top)
        if region.x0 + TOUCH < rule.at < region.x1 - TOUCH and inside >= share * height:
            found.append(rule.at)
    return sorted(set(found))


def _aligned_regions(words: Sequence[Box], page: Layout) -> list[tuple[_Region, list[Box]]]:
    """Return runs of at least three lines whose pieces stand in columns, with their words.

    One short line of a single piece (a heading of a group of rows) may stand between two lines of a run.
    """
    runs: list[list[list[Box]]] = []
    gap = 0
    for line in lines(words):
        pieces = segments(line, 1.0)
        short = [piece for piece in pieces[1:] if len(piece.text.split()) <= 4]
        if len(pieces) > 1 and len(short) >= 0.6 * (len(pieces) - 1) and len(pieces[0].text.split()) <= 8:
            near = runs and line[0].top - max(w.bottom for w in runs[-1][-1]) <= 2.5 * max(w.size for w in line)
            if near and gap <= 1:
                runs[-1].append(line)
            else:
                runs.append([line])
            gap = 0
        elif runs and len(pieces) == 1 and len(line) <= 4 and line[0].x0 <= min(w.x0 for w in runs[-1][-1]) + 40:
            runs[-1].append(line)
            gap += 1
        else:
            gap = 2
    found = []
    for run in runs:
        while run and len(segments(run[-1], 1.0)) == 1:
            run.pop()
        if sum(len(segments(line, 1.0)) > 1 for line in run) >= 3:
            inside = [word for line in run for word in line]
            whole = joined(inside)
            found.append((_Region(whole.x0, whole.top, whole.x1, whole.bottom), inside))
    return found


def _caption(region: _Region, words: Sequence[Box]) -> list[Box]:
    """Return the words of the caption above a region, else of the one right below it, else none."""
    near = [word for word in words if region.top - 90 < word.middle < region.bottom + 30]
    above = _over([word for word in near if word.middle < region.top], region)
    for start in range(len(above) - 1, max(-1, len(above) - 1 - _CAPTION_LINES), -1):
        if CAPTION.match(" ".join(word.text for word in above[start])):
            return [word for line in above[start:] for word in line]
    below = _over([word for word in near if word.middle > region.bottom], region)
    if below and CAPTION.match(" ".join(word.text for word in below[0])):
        return below[0]
    return []


def _over(words: Sequence[Box], region: _Region) -> list[list[Box]]:
    """Return the lines over or under a region: of each the words up to a blank of two font sizes beside it."""
    found = []
    for line in lines(words):
        at = 0
        pieces = []
        for piece in segments(line, 2.0):
            n = len(piece.text.split())
            pieces += line[at : at + n] if piece.x1 > region.x0 and piece.x0 < region.x1 else []
            at += n
        if pieces:
            found.append(pieces)
    return found


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


def _cells(region: _Region, words: Sequence[Box], page: Layout) -> list[list[str]]:
    """Return the rows of cell texts of a region, empty rows and columns left out."""
    if not words:
        return []
    bands = _bands(region, words, page)
    cut = [_pieces(band, page) for band in bands]
    strips = [region.x0, *_verticals(region, page, 0.5), region.x1]
    ruled = len(strips) > 2 and len(bands) >= _MANY_BANDS
    whole = _Grid(tuple(itertools.pairwise(strips)))
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


def _bands(region: _Region, words: Sequence[Box], page: Layout) -> list[list[Box]]:
    """Return the words between each two horizontal lines that run through the whole region."""
    width = region.x1 - region.x0
    through = [
        rule.at
        for rule in page.horizontal
        if region.top - TOUCH <= rule.at <= region.bottom + TOUCH
        and min(rule.end, region.x1) - max(rule.start, region.x0) >= 0.85 * width
    ]
    edges = [region.top - TOUCH, *sorted(through), region.bottom + TOUCH]
    bands = [[word for word in words if top < word.middle <= bottom] for top, bottom in itertools.pairwise(edges)]
    return [band for band in bands if band]


def _pieces(band: Sequence[Box], page: Layout) -> list[list[Box]]:
    """Return the lines of a band, each cut into pieces by blanks and by the vertical lines that it crosses."""
    found = []
    for line in lines(band):
        y = statistics.median(word.middle for word in line)
        walls = sorted(rule.at for rule in page.vertical if rule.start - 1 <= y <= rule.end + 1)
        groups: dict[int, list[Box]] = {}
        for word in line:
            groups.setdefault(sum(wall < (word.x0 + word.x1) / 2 for wall in walls), []).append(word)
        found.append([piece for _, group in sorted(groups.items()) for piece in segments(group)])
    return found


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


def _rows(band: list[list[Box]], mode: str, grid: _Grid, region: _Region, page: Layout) -> list[list[str]]:
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


def _merged(band: list[list[Box]], grid: _Grid, region: _Region, page: Layout) -> list[list[str]]:
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
