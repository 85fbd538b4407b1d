"""Gold passages of questions: BEIR's three columns with a header, or TREC's four without one."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path

from graphcontext.data.packed import DAMAGE, open_text
from graphcontext.errors import InputError

EXPECTED = "expected question, passage and score (BEIR, with or without a header), or the four columns of TREC"
_ROLES = {"question": r"quer|question|qid|topic", "passage": r"corpus|doc|passage|pid", "score": r"score|rel|label"}


def read_qrels(path: Path) -> dict[str, dict[str, int]]:
    """Return the passages with a grade above 0 of each question that the file names, in the file's order.

    A question whose passages all score 0 or less has none.

    Raises:
        InputError: with the line: no UTF-8, another number of columns, a score that is no whole number, or two
            scores for one pair.
    """
    scores: dict[str, dict[str, int]] = {}
    columns: tuple[int, int, int] | None = None
    width = 0
    for number, fields in _lines(path):
        where = f"{path}: line {number}"
        if columns is None:
            width = len(fields)
            columns, is_header = _columns(where, fields)
            if is_header:
                continue
        if len(fields) != width:
            raise InputError(f"{where} has {len(fields)} columns, the lines before it {width}")
        question, passage, score = (fields[i] for i in columns)
        if not question or not passage:
            raise InputError(f"{where}: an id is empty")
        of_question = scores.setdefault(question, {})
        value = _score(where, score)
        if of_question.setdefault(passage, value) != value:
            raise InputError(f"{where}: passage {passage} of question {question} has another score in a line before")
    return {q: {p: score for p, score in found.items() if score > 0} for q, found in scores.items()}


def _columns(where: str, first: list[str]) -> tuple[tuple[int, int, int], bool]:
    """Return where question, passage and score stand, and whether the first line is a header."""
    if len(first) not in (3, 4):
        raise InputError(f"{where} has {len(first)} columns; {EXPECTED}")
    plain = (0, len(first) - 2, len(first) - 1)
    try:
        float(first[-1])
        return plain, False
    except ValueError:
        pass
    found = [[i for i, name in enumerate(first) if re.search(like, name.lower())] for like in _ROLES.values()]
    if any(len(places) != 1 for places in found):
        raise InputError(f"{where}: {' '.join(first)[:80]!r} is no header and no judgement; {EXPECTED}")
    return (found[0][0], found[1][0], found[2][0]), True


def _score(where: str, text: str) -> int:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not value.is_integer():
        raise InputError(f"{where}: the score is {text[:40]!r}, expected a whole number, as trec_eval's grades are")
    return int(value)


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number, fields) of each line that is not blank."""
    number = 0
    try:
        with open_text(path) as stream:
            for number, line in enumerate(stream, 1):
                if line.strip():
                    fields = line.split("\t") if "\t" in line else line.split()
                    yield number, [field.strip() for field in fields]
    except UnicodeDecodeError as fault:
        raise InputError(f"{path} is no UTF-8 text after line {number} ({fault.reason}); save it as UTF-8") from fault
    except DAMAGE as fault:
        raise InputError(f"{path} is cut or damaged after line {number}: {fault}; fetch it again") from fault
