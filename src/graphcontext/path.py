"""The way a traversal took: a tree of passages, as lines of text."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from graphcontext.data.records import Passage, Ranking, Step

TEXT = 100  # characters of a passage in a line
EVIDENCE = 160
_TABLE = re.compile(r"^\|(.*)\|\n\|(?: --- \|)+(?:\n\|.*\|$)*", re.MULTILINE)  # in Markdown; the cells of its header


@dataclass(frozen=True)
class Turn:
    """What was looked for from a passage, and where it led; ``reason`` says why nowhere, or what is odd."""

    evidence: str
    reason: str | None
    branches: tuple[Branch, ...]


@dataclass(frozen=True)
class Branch:
    """A passage on the way, and the turns taken from there."""

    passage: str
    turns: tuple[Turn, ...] = ()


@dataclass(frozen=True)
class Named:
    """A passage as it is shown: title and text on one line each, its rank, and whether it is a gold one."""

    title: str
    text: str
    rank: int | None
    is_gold: bool

    @property
    def mark(self) -> str:
        """Return the rank in brackets, a dash where the ranking does not hold it."""
        return f"[{self.rank or '–'}]"


def tree(steps: Sequence[Step], question: str = "") -> tuple[Turn, ...]:
    """Return what was looked for from the question itself, one turn or more, with what follows from each passage.

    Evidence that is the question is left out, and Markdown of tables in it.

    Args:
        steps: of a ranking.
        question: what was asked; "" for the evidence of the first step.
    """
    starts = [step for step in steps if not step.path]
    asked = question or (starts[0].evidence if starts else "")
    by_path: dict[tuple[str, ...], list[Step]] = {}
    for step in steps:
        by_path.setdefault(step.path, []).append(step)
    by_path.pop((), None)

    def turn(step: Step) -> Turn:
        evidence = "" if step.evidence == asked else _TABLE.sub("", step.evidence)
        return Turn(evidence, step.reason, tuple(branch((*step.path, passage)) for passage in step.chosen))

    def branch(path: tuple[str, ...]) -> Branch:
        return Branch(path[-1], tuple(turn(step) for step in by_path.get(path, [])))

    seeds = {seed for step in starts for seed in step.chosen}
    others = dict.fromkeys(path[0] for path in by_path if path[0] not in seeds)  # of no step
    turns = [turn(step) for step in starts]
    return (*turns, Turn("", None, tuple(branch((seed,)) for seed in others))) if others else tuple(turns)


def names(ranking: Ranking, passages: Mapping[str, Passage], gold: Collection[str] = ()) -> dict[str, Named]:
    """Return how each passage of a ranking's steps is shown; one that is not known has its id for a title.

    Args:
        ranking: with steps.
        passages: those that are known, by id.
        gold: ids of the gold passages, where known.
    """
    ranks = {hit.id: rank for rank, hit in enumerate(ranking.passages, 1)}
    ids = dict.fromkeys(i for step in ranking.steps or () for i in (*step.path, *step.chosen))
    found = {}
    for one in ids:
        passage = passages.get(one)
        title, text = ("passage " + one, "") if passage is None else (one_line(passage.title), _body(passage))
        if not title:
            title, text = text, ""
        found[one] = Named(title, text, ranks.get(one), one in gold)
    return found


def _body(passage: Passage) -> str:
    if passage.kind == "page":
        return f"page {passage.source.page}"
    table = _TABLE.search(passage.match_text)
    return one_line(passage.match_text) if table is None else _of_table(passage, table)


def _of_table(passage: Passage, table: re.Match[str]) -> str:
    """Return a table's caption, where it is not the title, and which rows it holds; without either its columns."""
    said = one_line(_TABLE.sub("", passage.match_text))
    beside = said.removeprefix(one_line(passage.title)).strip()
    if not beside:
        return "table of " + ", ".join(cell.strip() for cell in table[1].split(" | ") if cell.strip())
    return beside[1:-1] if beside.startswith("(rows ") and beside.endswith(")") else said


def one_line(text: str) -> str:
    """Return a text with its blanks and line breaks as single blanks."""
    return " ".join(text.split())


def cut(text: str, n: int) -> str:
    """Return the first ``n`` characters of a text, with an ellipsis where some are left out."""
    return text if len(text) <= n else text[: n - 1].rstrip() + "…"


def lines(
    ranking: Ranking, passages: Mapping[str, Passage], gold: Collection[str] = (), question: str = ""
) -> list[str]:
    """Return the way as text: each seed, what was looked for from there, and the passages that were chosen.

    Args:
        ranking: with steps; without them there are no lines.
        passages: those that are known, by id.
        gold: ids of the gold passages, where known.
        question: as of :func:`tree`.
    """
    named = names(ranking, passages, gold)
    shown: list[str] = []

    def add(branch: Branch, depth: int, kind: str) -> None:
        one = named[branch.passage]
        said = f"{one.mark} {cut(one.title, TEXT)}" + (f": {cut(one.text, TEXT)}" if one.text else "")
        shown.append(f"{'    ' * depth}{kind} {said}{'  (gold)' if one.is_gold else ''}")
        for following in branch.turns:
            turn(following, depth + 1, "    " * depth + "  ", "→")

    def turn(turn: Turn, depth: int, indent: str, kind: str) -> None:
        if turn.evidence:
            shown.append(f"{indent}evidence: {cut(one_line(turn.evidence), EVIDENCE)}")
        if turn.reason:
            shown.append(f"{indent}({turn.reason})")
        for following in turn.branches:
            add(following, depth, kind)

    for number, start in enumerate(tree(ranking.steps or (), question)):
        turn(start, 0, "", "→" if number and start.evidence else "seed")
    return shown
