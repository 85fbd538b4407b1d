"""The way a traversal took, drawn as SVG: question, seeds, evidence on the arrows, passages (KGP, Figures 19, 20)."""

from __future__ import annotations

import html
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from graphcontext.data.records import Passage, Ranking, Step
from graphcontext.path import Branch, Named, Turn, names, one_line, tree

QUESTION, BOX, GAP, SEED_GAP = 210, 260, 236, 44  # widths, pixels
PAD, ROW, LINE = 9, 12, 15  # within a box, between boxes, from line to line
SIZE = 12  # of the letters
N_TEXT, N_TITLE, N_EVIDENCE, N_QUESTION = 3, 2, 6, 14  # lines at most
_CONTROL = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # no character of XML
BOLD = 1.12  # how much wider bold letters are
_WIDTHS = {0.32: "ijl.,:;'|!`·", 0.4: "ftrI /-()[]", 0.84: "wG<>=+~", 1.0: "mMW@%—…", 0.76: "ABCDEHKNOPQRSTUVXYZ&#"}
_WIDTH = {character: width for width, characters in _WIDTHS.items() for character in characters}
_RULES = {
    "text": f"font:{SIZE}px/1 system-ui,'Segoe UI',Helvetica,Arial,sans-serif;fill:#1b1f24",
    ".t": "font-weight:600",
    ".e": "font-style:italic;fill:#3d4650",
    ".r": "fill:#a40e26",
    ".b": "fill:#fff;stroke:#afb8c1",
    ".s": "fill:#eef6ff;stroke:#54a3e8",
    ".q": "fill:#1f4e79;stroke:#1f4e79",
    ".qt": "fill:#fff",
    ".g": "fill:#effaf1;stroke:#1a7f37;stroke-width:2",
    ".gt": "fill:#116329;font-weight:600",
    ".a": "fill:none;stroke:#8c959f;stroke-width:1.2",
    ".h": "fill:#8c959f",
}
STYLE = "".join(f".way {what}{{{how}}}" for what, how in _RULES.items())  # a page's own classes stay as they are


def figure(question: str, ranking: Ranking, passages: Mapping[str, Passage], gold: Collection[str] = ()) -> str:
    """Return the drawing of a ranking with steps, for a page; empty where it has none."""
    if not ranking.steps:
        return ""
    return f'<figure class="path">{svg(question, ranking.steps, names(ranking, passages, gold))}</figure>'


def svg(question: str, steps: Sequence[Step], named: Mapping[str, Named]) -> str:
    """Return the drawing; all text is escaped, nothing is loaded from elsewhere.

    Args:
        question: what was asked, at the left.
        steps: of a ranking.
        named: how each passage is shown (:func:`graphcontext.path.names`).
    """
    drawing = _Drawing(named)
    asked = wrap(question, QUESTION - 2 * PAD, N_QUESTION)
    height = drawing.box(0, 0, QUESTION, asked, "q", "qt")
    y, entries = 0.0, []
    for number, turn in enumerate(tree(steps, question)):
        said = [_Line(line, "e") for line in wrap(turn.evidence, BOX, N_EVIDENCE)]
        said += [_Line(line, "r") for line in wrap(turn.reason or "", BOX, 3)]
        drawing.text(QUESTION + SEED_GAP, y, said)
        y += LINE * len(said)
        drawing.right = max(drawing.right, QUESTION + SEED_GAP + BOX * bool(said))
        for seed in turn.branches:
            entries.append(y + ENTRY)
            y += drawing.branch(seed, QUESTION + SEED_GAP, y, "b" if number and turn.evidence else "s") + ROW
    drawing.fork(QUESTION, ENTRY, QUESTION + SEED_GAP, entries)
    width = max([drawing.right, QUESTION]) + 2
    total = max(height, y) + 2
    label = html.escape(_clean(one_line(question)))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="way" role="img" width="{width:g}" height="{total:g}" '
        f'viewBox="-1 -1 {width:g} {total:g}"><title>{label}</title>'
        f"<style>{STYLE}</style>{''.join(drawing.parts)}</svg>"
    )


ENTRY = PAD + LINE / 2  # where arrows meet a box, below its upper edge


@dataclass(frozen=True)
class _Line:
    """A line of text and its class."""

    text: str
    kind: str = ""


class _Drawing:
    """Elements of the drawing, and how far it reaches to the right."""

    def __init__(self, named: Mapping[str, Named]) -> None:
        self.named, self.parts, self.right = named, [], 0.0

    def branch(self, branch: Branch, x: float, y: float, kind: str) -> float:
        """Draw a passage and all that follows from it, its upper left corner at (x, y); returns the height."""
        one = self.named[branch.passage]
        head = wrap(f"{one.mark} {one.title}", (BOX - 2 * PAD) / BOLD, N_TITLE)
        said = [_Line(line, "t") for line in head]
        said += [_Line(line) for line in wrap(one.text, BOX - 2 * PAD, N_TEXT)]
        said += [_Line("★ gold passage", "gt")] if one.is_gold else []
        height = self.box(x, y, BOX, said, "g" if one.is_gold else kind)
        below = 0.0
        for turn in branch.turns:
            below += self.turn(turn, x + BOX, y, below) + ROW
        return max(height, below - ROW)

    def turn(self, turn: Turn, x: float, y: float, below: float) -> float:
        """Draw the evidence on an arrow from a box that ends at x, and what was chosen; returns the height."""
        inner = GAP - 58
        said = [_Line(line, "e") for line in wrap(turn.evidence, inner, N_EVIDENCE)]
        said += [_Line(line, "r") for line in wrap(turn.reason or "", inner, 3)]
        gap = GAP if said else SEED_GAP
        self.elbow(x, y + ENTRY, x + 22, y + below + ENTRY)
        left, top = x + 26, y + below
        self.text(left, top + PAD, said)
        height, entries = 2 * PAD + LINE * len(said), []
        at = y + below
        for following in turn.branches:
            entries.append(at + ENTRY)
            at += self.branch(following, x + gap, at, "b") + ROW
        if entries:
            start = left + measure(said[0].text) + 6 if said else x + 22
            self.fork(min(start, x + gap - 24), y + below + ENTRY, x + gap, entries)
        self.right = max(self.right, x + gap - 20)
        return max(height, at - ROW - y - below)

    def box(self, x: float, y: float, width: float, said: list, kind: str, text: str = "") -> float:
        """Draw a box with lines of text; returns its height."""
        said = [line if isinstance(line, _Line) else _Line(line, text) for line in said]
        height = 2 * PAD + LINE * len(said) - (LINE - SIZE)
        self.parts.append(f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6"/>')
        self.text(x + PAD, y + PAD, said)
        self.right = max(self.right, x + width)
        return height

    def text(self, x: float, y: float, said: list[_Line]) -> None:
        """Write lines below each other, the upper left corner at (x, y)."""
        for number, line in enumerate(said):
            kind = f' class="{line.kind}"' if line.kind else ""
            where = f'x="{x:g}" y="{y + SIZE - 2 + number * LINE:g}"'
            self.parts.append(f"<text {where}{kind}>{html.escape(line.text, quote=False)}</text>")

    def fork(self, x: float, y: float, to: float, entries: list[float]) -> None:
        """Draw arrows from (x, y) to each height on the line at ``to``, along one upright."""
        stem = to - 16
        for entry in entries:
            self.parts.append(f'<path class="a" d="M{x:g} {y:g}H{stem:g}V{entry:g}H{to - 5:g}"/>')
            self.parts.append(f'<path class="h" d="M{to:g} {entry:g}l-7 -3.5v7z"/>')

    def elbow(self, x: float, y: float, to: float, end: float) -> None:
        """Draw a line without a head."""
        self.parts.append(f'<path class="a" d="M{x:g} {y:g}H{x + 12:g}V{end:g}H{to:g}"/>')


def wrap(text: str, width: float, n: int) -> list[str]:
    """Return a text as lines of at most ``width`` pixels, at most ``n`` of them, an ellipsis where it was cut.

    >>> wrap("one two three", 50, 2), wrap("", 50, 2)
    (['one two', 'three'], [])
    """
    words = [part for word in _clean(text).split() for part in _broken(word, width)]
    found: list[str] = []
    for word in words:
        if found and measure(f"{found[-1]} {word}") <= width:
            found[-1] += f" {word}"
        else:
            found.append(word)
    if len(found) > n:
        last = found[n - 1]
        while last and measure(f"{last}…") > width:
            last = last[:-1]
        found = [*found[: n - 1], f"{last.rstrip()}…"]
    return found


def measure(text: str) -> float:
    """Return about how wide a text is, pixels; rather too much than too little, since fonts differ."""
    return SIZE * sum(_WIDTH.get(c, 0.6 if ord(c) < 0x2E80 else 1.0) for c in text)


def _broken(word: str, width: float) -> list[str]:
    """Return a word in parts that fit the width."""
    parts = [""]
    for character in word:
        if parts[-1] and measure(parts[-1] + character) > width:
            parts.append("")
        parts[-1] += character
    return parts


def _clean(text: str) -> str:
    return _CONTROL.sub("\ufffd", text)
