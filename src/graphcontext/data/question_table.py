"""Read a CSV of questions with answers, as data.stackexchange.com exports it, into the threads of a dump."""

from __future__ import annotations

import codecs
import csv
import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from graphcontext.data.dump import LEFT_OUT, Dump, Post, Thread, check_date, license_of, number_of, split_tags
from graphcontext.errors import InputError, did_you_mean

NEEDED = ("QuestionId", "QuestionTitle", "QuestionBody", "AnswerId", "AnswerBody")
OPTIONAL = ("Tags", "CreationDate", "OwnerDisplayName", "ContentLicense", "AcceptedAnswerId")
OPTIONAL += ("AnswerOwnerDisplayName", "AnswerScore", "Score")
DOUBLED, UNANSWERED = "doubled rows", LEFT_OUT[0]
LONGEST_FIELD = 2**31 - 1  # characters; a C long everywhere
Row = dict[str, str]


def read_table(path: Path, years: frozenset[int] | None = None, tags: frozenset[str] | None = None) -> Dump:
    """Read the questions of a CSV that have an accepted answer: any answer, where no column says which is.

    Args:
        path: UTF-8 (with or without byte order mark) or UTF-16 with one; fields separated by comma, semicolon or tab.
        years: keep only questions of these years, None for all.
        tags: keep only questions with one of these tags, None for all.

    Raises:
        InputError: no such text, a column is missing, a row is cut or malformed, two rows contradict each other.
    """
    counts: Counter[str] = Counter(dict.fromkeys((*LEFT_OUT, DOUBLED), 0))
    threads: dict[int, Thread] = {}
    seen: dict[int, bytes] = {}  # hash of the row by answer id: what doubles a row, and what contradicts one
    questions: dict[int, str | None] = {}  # why a question is left out, None where it is kept
    names: set[str] = set()
    assumed = ""
    for where, row in rows(path, needs_tags=tags is not None):
        question_id = number_of(row, "QuestionId", where)
        if question_id not in questions:
            questions[question_id] = reason = _reason(row, years, tags, where)
            counts["questions"] += 1
            names.update(split_tags(row.get("Tags", "")))
            if reason:
                counts[reason] += 1
        if "AcceptedAnswerId" not in row:
            assumed = "each answer is the accepted one (no column AcceptedAnswerId)"
        if not row["AnswerId"]:
            continue
        if questions[question_id] == UNANSWERED and _is_accepted(row):
            raise InputError(f"{where}: question {question_id} has an accepted answer here and none in its first row")
        answer_id = number_of(row, "AnswerId", where)
        if answer_id in seen:
            if seen[answer_id] != _hash(row):
                raise InputError(f"{where}: AnswerId {answer_id} stands in another row with other values")
            counts[DOUBLED] += 1
            continue
        seen[answer_id] = _hash(row)
        counts["answers"] += 1
        if questions[question_id] is None:
            _add(threads, question_id, answer_id, row, where)
    for thread in threads.values():
        thread.answers.sort(key=lambda answer: answer.id)
    return Dump(threads, counts, [], frozenset(names), assumed)


def rows(path: Path, needs_tags: bool = False) -> Iterator[tuple[str, Row]]:
    """Yield (place for messages, value by column name) of every row, in constant memory.

    Raises:
        InputError: see :func:`read_table`.
    """
    before = csv.field_size_limit(LONGEST_FIELD)
    try:
        with path.open(encoding=_encoding(path), newline="") as stream:
            yield from _rows(path, stream, needs_tags)
    except UnicodeError as fault:
        reason = getattr(fault, "reason", fault)
        raise InputError(f"{path} is no UTF-8 text ({reason}); export it again, or save it as UTF-8") from fault
    finally:
        csv.field_size_limit(before)


def _rows(path: Path, stream: TextIO, needs_tags: bool) -> Iterator[tuple[str, Row]]:
    header = stream.readline()
    names, delimiter = _columns(path, header, needs_tags)
    reader = csv.reader(_checked(path, stream), delimiter=delimiter, strict=True)
    while True:
        where = f"{path}: line {reader.line_num + 2}"
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as fault:
            mend = "fetch the file again; a part of one is never read as if it were whole"
            raise InputError(f"{where}: the row is cut or malformed ({fault}); {mend}") from fault
        if not fields:
            continue
        if len(fields) != len(names):
            raise InputError(f"{where}: the row has {len(fields)} fields, the header {len(names)}; {_CUT}")
        yield where, {name: field.strip() for name, field in zip(names, fields) if name}


_CUT = "the file is cut or its quotes are damaged"


def _checked(path: Path, stream: TextIO) -> Iterator[str]:
    """Yield lines; a NUL would end an HTML body early without a word."""
    for number, line in enumerate(stream, 2):
        if "\0" in line:
            raise InputError(f"{path}: line {number} holds a NUL character: the file is damaged or of another encoding")
        yield line


def _columns(path: Path, header: str, needs_tags: bool) -> tuple[list[str], str]:
    """Return the known column names in the file's order, empty for others, and the delimiter."""
    if not header.strip():
        raise InputError(f"{path} is empty; expected a CSV with {', '.join(NEEDED)}")
    known = {_plain(name): name for name in (*NEEDED, *OPTIONAL)}
    delimiter = max(",;\t", key=header.count)
    try:
        found = next(csv.reader([header], delimiter=delimiter, strict=True))
    except csv.Error as fault:
        raise InputError(f"{path}: line 1 is no header of column names: {fault}") from fault
    names = [known.get(_plain(name), "") for name in found]
    twice = [name for name, n in Counter(filter(None, names)).items() if n > 1]
    if twice:
        raise InputError(f"{path}: the column {twice[0]} stands there {names.count(twice[0])} times")
    for name in (*NEEDED, *(("Tags",) if needs_tags else ())):
        if name not in names:
            shown = [column.strip()[:40] for column in found]
            others = [column for column, known_name in zip(shown, names) if not known_name]
            hint = did_you_mean(name, others).partition(" (")[0]
            raise InputError(f"{path} has no column {name}{hint} (found: {', '.join(shown[:12])})")
    return names, delimiter


def _reason(row: Row, years: frozenset[int] | None, tags: frozenset[str] | None, where: str) -> str | None:
    if not row["AnswerId"] or not _is_accepted(row):
        return UNANSWERED
    if not row["QuestionTitle"] or not row["QuestionBody"]:
        return "without title or body"
    date = check_date(row.get("CreationDate", ""), where)
    if years is not None and not (date and int(date[:4]) in years):
        return "outside years"
    if tags is not None and tags.isdisjoint(split_tags(row["Tags"])):
        return "other tags"
    return None


def _is_accepted(row: Row) -> bool:
    """Tell whether a row's question has an accepted answer: where the column is there, its cell is not blank."""
    return row.get("AcceptedAnswerId", "assumed") != ""


def _add(threads: dict[int, Thread], question_id: int, answer_id: int, row: Row, where: str) -> None:
    """Add a row's answer to its thread, which the first row of a question begins."""
    thread = threads.get(question_id)
    accepted = number_of(row, "AcceptedAnswerId", where) if row.get("AcceptedAnswerId") else None
    if thread is None:
        date = check_date(row.get("CreationDate", ""), where)
        thread = threads[question_id] = Thread(
            id=question_id,
            accepted_id=answer_id if accepted is None else accepted,
            title=row["QuestionTitle"],
            html=row["QuestionBody"],
            date=date,
            tags=split_tags(row.get("Tags", "")),
            author=row.get("OwnerDisplayName", ""),
            license=row.get("ContentLicense") or (license_of(date) if date else "CC BY-SA"),
        )
    elif accepted is None or accepted != thread.accepted_id:
        raise InputError(
            f"{where}: question {question_id} has a second answer; a column AcceptedAnswerId has to say which one "
            "is the accepted one, alike in each of its rows"
        )
    elif (row["QuestionTitle"], row["QuestionBody"]) != (thread.title, thread.html):
        raise InputError(f"{where}: question {question_id} has another title or body than in its first row")
    votes = row.get("AnswerScore") or row.get("Score") or "0"
    score = number_of({"Score": votes}, "Score", where, signed=True)
    thread.answers.append(Post(answer_id, row["AnswerBody"], score, row.get("AnswerOwnerDisplayName", "")))


def _hash(row: Row) -> bytes:
    return hashlib.blake2b(repr(sorted(row.items())).encode(), digest_size=16).digest()


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()


def _encoding(path: Path) -> str:
    with path.open("rb") as stream:
        start = stream.read(4)
    return "utf-16" if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
