"""Which parts of a page of a PDF may be tables: ruled ones, and lines of text whose pieces stand in columns."""

from __future__ import annotations

import itertools
import re
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from graphcontext.data.pdf_layout import TOUCH, Box, Layout, joined, lines, segments

CAPTION = re.compile(r"^(?:table|exhibit|tab\.)\s*([a-z]{0,2}[-.]?\d+(?:[-.]\d+)*[a-z]?)\b", re.IGNORECASE)
_CAPTION_LINES = 4


@dataclass(frozen=True)
class Region:
    """A part of the page that may be a table."""

    x0: float
    top: float
    x1: float
    bottom: float

    def holds(self, word: Box) -> bool:
        inside = self.x0 - TOUCH <= (word.x0 + word.x1) / 2 <= self.x1 + TOUCH
        return inside and self.top <= word.middle <= self.bottom


def ruled_regions(page: Layout) -> list[Region]:
    """Return regions of crossing lines, joined with horizontal lines of their extent where columns stand between."""
    parts = sorted(_crossing(page), key=lambda r: (r.top, r.x0))
    x = np.array([(word.x0 + word.x1) / 2 for word in page.words])
    y = np.array([word.middle for word in page.words])

    def held(r: Region) -> list[Box]:
        inside = (r.x0 - TOUCH <= x) & (x <= r.x1 + TOUCH) & (r.top <= y) & (y <= r.bottom)
        return [page.words[n] for n in np.flatnonzero(inside)]

    regions: list[Region] = []
    for part in parts:
        for n, above in enumerate(regions):
            if _same_extent(above, part) and part.top >= above.top and _is_columnar(above, part, held):
                regions[n] = _union(above, part)
                break
        else:
            regions.append(part)
    whole: list[Region] = []
    for region in regions:  # a part within another is of the same table
        over = [n for n, other in enumerate(whole) if _overlap(other, region)]
        if over:
            whole[over[0]] = _union(whole[over[0]], region)
        else:
            whole.append(region)
    return [r for r in whole if r.bottom - r.top > 2 * TOUCH and r.x1 - r.x0 > 10 * TOUCH]


def without_prose(region: Region, words: Sequence[Box], page: Layout) -> Region:
    """Return a region without the bands of sentences, or of a caption, that it begins or ends with."""
    bands = bands_of(region, [word for word in words if region.holds(word)], page)

    def is_prose(band: list[Box]) -> bool:
        pieces = [piece for line in pieces_of(band, page) for piece in line]
        has_caption = bool(CAPTION.match(pieces[0].text))
        return has_caption or (len(pieces) == len(lines(band)) and min(len(p.text.split()) for p in pieces) > 4)

    while bands and is_prose(bands[0]):
        bands = bands[1:]
    while bands and is_prose(bands[-1]):
        bands = bands[:-1]
    if not bands:
        return region
    top, bottom = min(word.top for word in bands[0]), max(word.bottom for word in bands[-1])
    return Region(region.x0, top - TOUCH / 2, region.x1, bottom + TOUCH / 2)


def _crossing(page: Layout) -> list[Region]:
    """Return the extent of each set of ruling lines that touch; one that touches none is a set of its own."""
    boxes = [(r.start, r.at, r.end, r.at) for r in page.horizontal]
    n_horizontal = len(boxes)
    boxes += [(r.at, r.start, r.at, r.end) for r in sorted(page.vertical, key=lambda r: r.at)]
    at = [box[0] for box in boxes[n_horizontal:]]
    parent = list(range(len(boxes)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    for h in range(n_horizontal):
        x0, y, x1, _ = boxes[h]
        whole = root(h)
        for v in range(n_horizontal + bisect_left(at, x0 - TOUCH), n_horizontal + bisect_right(at, x1 + TOUCH)):
            _, top, _, bottom = boxes[v]
            if parent[v] != whole and top - TOUCH <= y <= bottom + TOUCH:
                parent[whole] = root(v)
                whole = root(v)
    sets: dict[int, list[tuple[float, float, float, float]]] = {}
    for i, box in enumerate(boxes):
        sets.setdefault(root(i), []).append(box)
    return [
        Region(min(b[0] for b in found), min(b[1] for b in found), max(b[2] for b in found), max(b[3] for b in found))
        for found in sets.values()
        if len(found) > 1 or found[0][1] == found[0][3]  # a vertical line alone is no part of a table
    ]


def _same_extent(above: Region, below: Region) -> bool:
    """Tell whether two sets of lines stand above each other, one perhaps spanning a part of the columns."""
    equal = abs(above.x0 - below.x0) <= 3 * TOUCH and abs(above.x1 - below.x1) <= 3 * TOUCH
    within = above.x0 - TOUCH <= below.x0 and below.x1 <= above.x1 + TOUCH
    return equal or within


def _is_columnar(above: Region, below: Region, held: Callable[[Region], list[Box]]) -> bool:
    """Tell whether the text between two regions stands in columns of short pieces; no text says nothing against it."""
    between = Region(above.x0, above.bottom, above.x1, below.top)
    found = [segments(line) for line in lines(held(between))]
    if not found:
        return below.top - above.bottom <= 30
    if any(CAPTION.match(" ".join(piece.text for piece in line)) for line in found):
        return False
    pieces = [piece for line in found for piece in line]
    if statistics.median(len(piece.text.split()) for piece in pieces) > 5 or len(found) > 120:
        return False
    return sum(len(line) > 1 for line in found) >= 0.4 * len(found)


def _overlap(a: Region, b: Region) -> bool:
    return min(a.x1, b.x1) - max(a.x0, b.x0) > TOUCH and min(a.bottom, b.bottom) - max(a.top, b.top) > TOUCH


def _union(a: Region, b: Region) -> Region:
    return Region(min(a.x0, b.x0), min(a.top, b.top), max(a.x1, b.x1), max(a.bottom, b.bottom))


def has_verticals(region: Region, page: Layout) -> bool:
    """Tell whether a vertical line runs inside a region, along some of its height."""
    return len(verticals(region, page, 0.3)) > 0


def verticals(region: Region, page: Layout, share: float) -> list[float]:
    """Return the x of vertical lines inside a region that run along ``share`` of its height."""
    height = region.bottom - region.top
    found = []
    for rule in page.vertical:
        inside = min(rule.end, region.bottom) - max(rule.start, region.top)
        if region.x0 + TOUCH < rule.at < region.x1 - TOUCH and inside >= share * height:
            found.append(rule.at)
    return sorted(set(found))


def aligned_regions(words: Sequence[Box], page: Layout) -> list[tuple[Region, list[Box]]]:
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
            found.append((Region(whole.x0, whole.top, whole.x1, whole.bottom), inside))
    return found


def caption_of(region: Region, words: Sequence[Box]) -> list[Box]:
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


def _over(words: Sequence[Box], region: Region) -> list[list[Box]]:
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


def bands_of(region: Region, words: Sequence[Box], page: Layout) -> list[list[Box]]:
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


def pieces_of(band: Sequence[Box], page: Layout) -> list[list[Box]]:
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
