"""Rankings and gold passages as TREC files, which trec_eval, ranx, ir_measures and others read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import quote

import numpy as np

from graphcontext.data.records import Question, Ranking

TAG = "graphcontext"


def run_file(rankings: Sequence[Ranking]) -> str:
    """Return a TREC run: ``question Q0 passage rank score graphcontext``, one line per ranked passage.

    trec_eval orders by score, not by rank, in single precision, and ties by id. So that it sees the ranking's own
    order, a score that is not below the one before it is written as the next smaller number.

    >>> from graphcontext.data.records import Ranking, Scored
    >>> print(run_file([Ranking("q 1", (Scored("b", 0.5), Scored("a", 0.5)))]), end="")
    q%201 Q0 b 1 0.5 graphcontext
    q%201 Q0 a 2 0.49999997 graphcontext
    """
    lines = []
    for ranking in rankings:
        last = np.float32(np.inf)
        for rank, hit in enumerate(ranking.passages, 1):
            last = min(np.float32(hit.score), np.nextafter(last, np.float32(-np.inf)))
            lines.append(f"{word(ranking.id)} Q0 {word(hit.id)} {rank} {last!s} {TAG}\n")
    return "".join(lines)


def qrels_file(questions: Sequence[Question]) -> str:
    """Return TREC relevance judgements, ``question 0 passage grade``, a line per gold passage; empty without any."""
    return "".join(f"{word(q.id)} 0 {word(name)} {grade}\n" for q in questions for name, grade in q.gold.items())


def word(name: str) -> str:
    """Return an id without blanks, which end a field: percent-encoded, so that distinct ids stay distinct."""
    return re.sub(r"[\s%]", lambda found: quote(found[0]), name)
