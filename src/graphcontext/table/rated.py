"""The judgements of one row: how often it won, how it was rated, how far its raters agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from graphcontext.evaluate.agreement import Agreement, agreement
from graphcontext.table.study import PAIR, RATING, Item, Study

EVEN = 0.5
WINS = {"won": 1.0, "tie": EVEN, "lost": 0.0}


@dataclass(frozen=True)
class Panel:
    """All judgements of one row on one data set.

    Args:
        row, column: ids in the table.
        wins: question → its win score in [0, 1], averaged over raters.
        ratings: question → its rating, averaged over raters.
        sides: how many judgements were ``won``, ``lost`` and ``tie``.
        levels: how many ratings each level has, from 1 up.
        agreements: of the pairs and of the ratings.
    """

    row: str
    column: str
    wins: dict[str, float]
    ratings: dict[str, float]
    sides: dict[str, int]
    levels: tuple[int, ...]
    agreements: dict[str, Agreement]

    @property
    def mode(self) -> int | None:
        """Return the most frequent rating, the lower one of two; None without ratings."""
        return self.levels.index(max(self.levels)) + 1 if any(self.levels) else None


def panel_of(study: Study, column: str, row: str) -> Panel:
    """Bring together what raters said of a row on one data set."""
    pairs, ratings = (study.of(column, kind, row) for kind in (PAIR, RATING))
    won = {rater: {item: _outcome(item, label, row) for item, label in given.items()} for rater, given in pairs.items()}
    sides = Counter(outcome for given in won.values() for outcome in given.values())
    counted = Counter(label for given in ratings.values() for label in given.values())
    levels = study.labels[RATING]
    named = {
        kind: {rater: {item.item: label for item, label in of.items()} for rater, of in given.items()}
        for kind, given in ((PAIR, won), (RATING, ratings))
    }
    return Panel(
        row,
        column,
        _per_question({r: {i: WINS[o] for i, o in g.items()} for r, g in won.items()}),
        _per_question({r: {i: float(label) for i, label in g.items()} for r, g in ratings.items()}),
        {side: sides[side] for side in ("won", "lost", "tie")},
        tuple(counted[level] for level in levels),
        {
            PAIR: agreement(named[PAIR], ("won", "lost", "tie"), ordered=False),
            RATING: agreement(named[RATING], levels, ordered=True),
        },
    )


def _outcome(item: Item, label: str, row: str) -> str:
    """Return what a label of a pair means for a row."""
    if label == "tie":
        return "tie"
    return "won" if item.rows["AB".index(label)] == row else "lost"


def _per_question(given: Mapping[str, Mapping[Item, float]]) -> dict[str, float]:
    """Average each question over its raters."""
    values: dict[str, list[float]] = {}
    for labels in given.values():
        for item, value in labels.items():
            values.setdefault(item.question, []).append(value)
    return {question: float(np.mean(values[question])) for question in sorted(values)}
