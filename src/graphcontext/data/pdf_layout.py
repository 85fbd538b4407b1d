"""The geometry of a PDF page: words in lines and segments, ruling lines, and the reading order of its text."""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

JOIN = 0.6  # blank, in font sizes, beyond which two words of a line are two segments (cells)
TOUCH = 3.0  # points between ruling lines that are one
MOST_RULES = 10_000  # on a page, from which they are a drawing and no tables
THIN = 3.0  # points: a rectangle thinner than this is a ruling line
_LEADERS = re.compile(r"[.·…_]{3,}$")
_PRIVATE = re.compile("[\ue000-\uf8ff\x00]")  # bullets of symbol fonts, which no other font shows
_DOTS = frozenset(".·…")


@dataclass(frozen=True, slots=True)
class Box:
    """A text with its place on the page; points from the top left."""

    text: str
    x0: float
    top: float
    x1: float
    bottom: float
    size: float = 0.0
    bold: bool = False

    @property
    def middle(self) -> float:
        return (self.top + self.bottom) / 2


@dataclass(frozen=True, slots=True)
class Rule:
    """A ruling line: at ``at`` (y of a horizontal, x of a vertical one) from ``start`` to ``end``."""

    at: float
    start: float
    end: float


@dataclass(frozen=True)
class Layout:
    """What the finder of tables and the reader of text look at.

    Text of another direction is left out if ``is_cut``, and ruling lines if ``is_drawing``: they are too many.
    """

    words: tuple[Box, ...]
    horizontal: tuple[Rule, ...]
    vertical: tuple[Rule, ...]
    width: float
    height: float
    is_cut: bool = False
    is_drawing: bool = False


def layout(page: Any) -> Layout:
    """Return the words and ruling lines of a pdfplumber page, turned so that most of its text is upright.

    Leader dots are no words, and text of another direction is left out.
    """
    from pdfplumber.utils import extract_words

    turns = [_turn(char) for char in page.chars]
    counts = Counter(n for n, char in zip(turns, page.chars) if char["text"].strip())
    turn = max(range(4), key=lambda n: (counts[n], -n))
    chars = [_turned(char, turn, page) for n, char in zip(turns, page.chars) if n == turn]
    found = extract_words(chars, extra_attrs=["size", "fontname"], use_text_flow=False, keep_blank_chars=False)
    words: list[Box] = []
    for word, dots in _without_leaders(found):
        text = _LEADERS.sub("", word["text"])
        text = _PRIVATE.sub("", text.rstrip(".") if dots else text)
        if text.strip():
            x1 = word["x0"] + len(text) / len(word["text"]) * (word["x1"] - word["x0"])
            bold = "bold" in word["fontname"].lower() or "black" in word["fontname"].lower()
            words.append(Box(text, word["x0"], word["top"], x1, word["bottom"], word["size"], bold))
    horizontal, vertical = _rules([_turned(shape, turn, page) for shape in (*page.lines, *page.rects)])
    width, height = (page.height, page.width) if turn % 2 else (page.width, page.height)
    is_drawing = len(horizontal) + len(vertical) > MOST_RULES
    if is_drawing:
        horizontal, vertical = (), ()
    is_cut = counts.total() > counts[turn]
    return Layout(tuple(words), horizontal, vertical, float(width), float(height), is_cut, is_drawing)


def _turn(char: dict[str, Any]) -> int | None:
    """Return by how many right angles, counter-clockwise, a character is turned; None for any other angle."""
    turn = math.atan2(char["matrix"][1], char["matrix"][0]) / (math.pi / 2)
    return round(turn) % 4 if abs(turn - round(turn)) < 0.05 else None


def _turned(shape: dict[str, Any], turn: int, page: Any) -> dict[str, Any]:
    """Return a character or line as it stands after the page is turned clockwise by so many right angles."""
    if not turn:
        return shape
    x0, top, x1, bottom = (float(shape[key]) for key in ("x0", "top", "x1", "bottom"))
    width, height = float(page.width), float(page.height)
    for _ in range(turn):
        x0, top, x1, bottom = height - bottom, x0, height - top, x1
        width, height = height, width
    place = {"x0": x0, "top": top, "doctop": top, "x1": x1, "bottom": bottom, "upright": True}
    return shape | place | ({"size": bottom - top} if "size" in shape else {})


def _without_leaders(found: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], bool]]:
    """Yield the words that are not two or more dots in a row, and whether such a leader follows."""
    is_dots = [set(word["text"]) <= _DOTS for word in found]
    for n, word in enumerate(found):
        before, after = n > 0 and is_dots[n - 1], n + 1 < len(found) and is_dots[n + 1]
        if not is_dots[n]:
            follows = after and (len(found[n + 1]["text"]) > 1 or (n + 2 < len(found) and is_dots[n + 2]))
            yield word, follows or (after and word["text"].endswith("."))
        elif not before and not after and len(word["text"]) == 1:
            yield word, False


def _rules(shapes: Iterable[dict[str, Any]]) -> tuple[tuple[Rule, ...], tuple[Rule, ...]]:
    """Return horizontal and vertical ruling lines: lines, thin rectangles, and the edges of others."""
    horizontal: list[Rule] = []
    vertical: list[Rule] = []
    for shape in shapes:
        x0, x1, top, bottom = shape["x0"], shape["x1"], shape["top"], shape["bottom"]
        if bottom - top <= THIN and x1 - x0 > THIN:
            horizontal.append(Rule((top + bottom) / 2, x0, x1))
        elif x1 - x0 <= THIN and bottom - top > THIN:
            vertical.append(Rule((x0 + x1) / 2, top, bottom))
        elif x1 - x0 > THIN and bottom - top > THIN and shape["object_type"] == "rect":
            horizontal += [Rule(top, x0, x1), Rule(bottom, x0, x1)]
            vertical += [Rule(x0, top, bottom), Rule(x1, top, bottom)]
    return merged(horizontal), merged(vertical)


def merged(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Join the pieces of one line: nearly the same place, touching ends."""
    groups: list[list[Rule]] = []
    for rule in sorted(rules, key=lambda r: (r.at, r.start)):
        if groups and rule.at - groups[-1][0].at <= TOUCH:
            groups[-1].append(rule)
        else:
            groups.append([rule])
    joined: list[Rule] = []
    for group in groups:
        at = statistics.median(rule.at for rule in group)
        pieces = sorted(group, key=lambda r: r.start)
        start, end = pieces[0].start, pieces[0].end
        for piece in pieces[1:]:
            if piece.start <= end + TOUCH:
                end = max(end, piece.end)
            else:
                joined.append(Rule(at, start, end))
                start, end = piece.start, piece.end
        joined.append(Rule(at, start, end))
    return tuple(joined)


def lines(words: Sequence[Box]) -> list[list[Box]]:
    """Return words as lines from top to bottom, each from left to right: one line where the middles meet."""
    result: list[list[Box]] = []
    for word in sorted(words, key=lambda w: (w.middle, w.x0)):
        line = result[-1] if result else None
        if line is not None and _same_line(line, word):
            line.append(word)
        else:
            result.append([word])
    return [sorted(line, key=lambda w: w.x0) for line in result]


def _same_line(line: list[Box], word: Box) -> bool:
    """Tell whether a word's middle lies in the line, and the other way round for one that is not much smaller."""
    largest = max(line, key=lambda w: w.size)
    return abs(word.middle - largest.middle) <= 0.5 * max(min(word.size, largest.size), 0.45 * largest.size)


def segments(line: Sequence[Box], gap: float = JOIN) -> list[Box]:
    """Join the words of a line that are less than ``gap`` font sizes apart."""
    result: list[list[Box]] = []
    for word in line:
        near = result and word.x0 - result[-1][-1].x1 <= gap * max(word.size, result[-1][-1].size, 1.0)
        if near:
            result[-1].append(word)
        else:
            result.append([word])
    return [joined(group) for group in result]


def joined(words: Sequence[Box]) -> Box:
    """Return the words as one box, their texts joined by blanks."""
    return Box(
        " ".join(word.text for word in words),
        min(word.x0 for word in words),
        min(word.top for word in words),
        max(word.x1 for word in words),
        max(word.bottom for word in words),
        max(word.size for word in words),
        all(word.bold for word in words),
    )


def blocks(words: Sequence[Box]) -> list[list[list[Box]]]:
    """Return blocks of lines in reading order, by recursive cuts at blank gutters and blank bands (XY-cut).

    Columns are read one after the other where a gutter of more than a font size runs through at least three lines
    of both sides; else a block ends at a blank band that is higher than the line spacing.
    """
    if not words:
        return []
    size = statistics.median(word.size for word in words) or 10.0
    at = _gutter(words, size)
    if at is not None:
        left = [word for word in words if word.x1 <= at]
        return blocks(left) + blocks([word for word in words if word.x1 > at])
    at = _band(words, size)
    if at is not None:
        upper = [word for word in words if word.bottom <= at]
        return blocks(upper) + blocks([word for word in words if word.bottom > at])
    return [lines(words)]


def _gutter(words: Sequence[Box], size: float) -> float | None:
    """Return the x of the widest blank gutter between two columns of text, None where there is none."""
    best, found = 0.8 * size, None
    for end, start in _gaps([(word.x0, word.x1) for word in words]):
        left = [word for word in words if word.x1 <= end]
        right = [word for word in words if word.x1 > end]
        if start - end > best and min(len(lines(left)), len(lines(right))) >= 3:
            best, found = start - end, end + (start - end) / 2
    return found


def _band(words: Sequence[Box], size: float) -> float | None:
    """Return the y of the highest blank band, None where no band is higher than the blank between lines."""
    gaps = [(start - end, end) for end, start in _gaps([(word.top, word.bottom) for word in words])]
    if not gaps:
        return None
    blank, end = max(gaps)
    usual = statistics.median(gap for gap, _ in gaps)
    return end + blank / 2 if blank > max(0.45 * size, 1.4 * usual) or blank > 1.5 * size else None


def _gaps(intervals: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the (end, start) of each gap that no interval covers."""
    gaps = []
    reach: float | None = None
    for start, end in sorted(intervals):
        if reach is not None and start > reach:
            gaps.append((reach, start))
        reach = end if reach is None else max(reach, end)
    return gaps
