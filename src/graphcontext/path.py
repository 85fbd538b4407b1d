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


def tree(steps: Sequence[Step]) -> tuple[Branch, ...]:
    """Return the seeds with what follows from each, in the order of the steps.

    Evidence that is the question itself, by which the seeds were chosen, is left out, and Markdown of tables in it.
    """
    asked = {step.evidence for step in steps if not step.path}
    by_path: dict[tuple[str, ...], list[Step]] = {}
    for step in steps:
        by_path.setdefault(step.path, []).append(step)
    seeds = [seed for step in by_path.pop((), []) for seed in step.chosen] + [path[0] for path in by_path]

    def branch(path: tuple[str, ...]) -> Branch:
        turns = tuple(
            Turn(
                "" if step.evidence in asked else _TABLE.sub("", step.evidence),
                step.reason,
                tuple(branch((*path, passage)) for passage in step.chosen),
            )
            for step in by_path.get(path, [])
        )
        return Branch(path[-1], turns)

    return tuple(branch((seed,)) for seed in dict.fromkeys(seeds))


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


def lines(ranking: Ranking, passages: Mapping[str, Passage], gold: Collection[str] = ()) -> list[str]:
    """Return the way as text: each seed, what was looked for from there, and the passages that were chosen.

    Args:
        ranking: with steps; without them there are no lines.
        passages: those that are known, by id.
        gold: ids of the gold passages, where known.
    """
    named = names(ranking, passages, gold)
    shown: list[str] = []

    def add(branch: Branch, depth: int) -> None:
        one = named[branch.passage]
        kind = "→" if depth else "seed"
        said = f"{one.mark} {cut(one.title, TEXT)}" + (f": {cut(one.text, TEXT)}" if one.text else "")
        shown.append(f"{'    ' * depth}{kind} {said}{'  (gold)' if one.is_gold else ''}")
        for turn in branch.turns:
            indent = "    " * depth + "  "
            if turn.evidence:
                shown.append(f"{indent}evidence: {cut(one_line(turn.evidence), EVIDENCE)}")
            if turn.reason:
                shown.append(f"{indent}({turn.reason})")
            for following in turn.branches:
                add(following, depth + 1)

    for seed in tree(ranking.steps or ()):
        add(seed, 0)
    return shown
