"""Stream a Stack Exchange dump: rows of its XML files, and from them the threads that may be kept.

Memory is bounded by what is kept: rows are parsed in chunks and dropped at once, and only threads with an
accepted answer keep their HTML.
"""

from __future__ import annotations

import datetime
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from graphcontext.data.archive import DumpFiles
from graphcontext.data.xml_rows import MEND, rows
from graphcontext.errors import InputError

LEFT_OUT = ("no accepted answer", "without title or body", "outside years", "other tags")
DUPLICATE = "3"  # LinkTypeId of PostLinks.xml: PostId is a duplicate of RelatedPostId
Where = tuple[Path, int] | str  # file and row, or the place in words


@dataclass(slots=True)
class Post:
    """An answer as the dump has it; ``html`` is its body."""

    id: int
    html: str
    score: int
    author: str


@dataclass(slots=True)
class Thread:
    """A question that has an accepted answer, with all answers of the thread in id order."""

    id: int
    accepted_id: int
    title: str
    html: str
    date: str  # ISO 8601, "" where the dump has none
    tags: tuple[str, ...]
    author: str
    license: str
    answers: list[Post] = field(default_factory=list)

    @property
    def year(self) -> int | None:
        return int(self.date[:4]) if self.date else None

    @property
    def accepted(self) -> Post | None:
        """The accepted answer, None where ``AcceptedAnswerId`` points to no answer of this thread."""
        return next((answer for answer in self.answers if answer.id == self.accepted_id), None)


@dataclass
class Dump:
    """What one pass over a dump kept.

    Args:
        threads: thread by question id, each with an ``AcceptedAnswerId`` (which may still point nowhere).
        counts: ``questions``, ``answers``, ``other posts``, ``answers without question`` read, and questions
            left out while reading (``LEFT_OUT``).
        duplicates: pairs (duplicate, original) of question ids.
        tag_names: every tag of ``Tags.xml``, empty where the dump has none.
        assumed: what the card must say was taken for granted, empty for nothing.
    """

    threads: dict[int, Thread]
    counts: Counter[str]
    duplicates: list[tuple[int, int]]
    tag_names: frozenset[str]
    assumed: str = ""


def read_dump(files: DumpFiles, years: frozenset[int] | None = None, tags: frozenset[str] | None = None) -> Dump:
    """Read the threads of a dump that have an accepted answer, in one pass and in any order of rows.

    Args:
        files: the dump's XML files, plain or gzipped.
        years: keep only questions of these years, None for all.
        tags: keep only questions with one of these tags, None for all.

    Raises:
        InputError: a file is cut, no XML, of another kind, or declares a DOCTYPE; a row lacks its ``Id``.
    """
    threads, counts = _read_posts(files.posts, years, tags)
    duplicates = []
    if files.links:
        for number, row in enumerate(rows(files.links, "postlinks"), 1):
            if row.get("LinkTypeId") == DUPLICATE:
                where = (files.links, number)
                duplicates.append((number_of(row, "PostId", where), number_of(row, "RelatedPostId", where)))
    tag_rows = rows(files.tags, "tags") if files.tags else ()
    return Dump(threads, counts, duplicates, frozenset(row.get("TagName", "") for row in tag_rows))


def split_tags(tags: str) -> tuple[str, ...]:
    """Return the tags of a question in either layout, ``<a><b>`` (to 2023) or ``|a|b|`` (from 2024)."""
    return tuple(re.findall(r"[^<>|]+", tags))


def license_of(date: str) -> str:
    """Return the licence of a post of this date, for dumps without ``ContentLicense``."""
    if not date or date >= "2018-05-02":
        return "CC BY-SA 4.0"
    return "CC BY-SA 3.0" if date >= "2011-04-08" else "CC BY-SA 2.5"


def _read_posts(
    path: Path, years: frozenset[int] | None, tags: frozenset[str] | None
) -> tuple[dict[int, Thread], Counter[str]]:
    threads: dict[int, Thread] = {}
    left_out: set[int] = set()  # questions whose answers need not be kept
    waiting: dict[int, list[Post]] = {}  # answers that stand before their question
    counts: Counter[str] = Counter(dict.fromkeys(LEFT_OUT, 0))
    for number, row in enumerate(rows(path, "posts"), 1):
        where = (path, number)
        kind = row.get("PostTypeId")
        if kind == "2":
            counts["answers"] += 1
            parent = number_of(row, "ParentId", where)
            if parent not in left_out:
                kept = threads[parent].answers if parent in threads else waiting.setdefault(parent, [])
                kept.append(_answer(row, where))
        elif kind == "1":
            counts["questions"] += 1
            question_id = number_of(row, "Id", where)
            if question_id in threads or question_id in left_out:
                raise InputError(f"{path}: row {number} repeats question Id {question_id}; {MEND}")
            answers = waiting.pop(question_id, [])
            reason = _reason_to_leave(row, years, tags, where)
            if reason:
                counts[reason] += 1
                left_out.add(question_id)
            else:
                threads[question_id] = _thread(row, where, answers)
        else:
            counts["other posts"] += 1
    counts["answers without question"] = sum(map(len, waiting.values()))
    for thread in threads.values():
        thread.answers.sort(key=lambda answer: answer.id)
        _check_distinct(path, thread, threads)
    return threads, counts


def _check_distinct(path: Path, thread: Thread, threads: dict[int, Thread]) -> None:
    """Refuse a thread in which an id stands for two posts."""
    ids = [answer.id for answer in thread.answers]
    for n, post_id in enumerate(ids):  # in id order
        if post_id in threads or ids[n - 1 : n] == [post_id]:
            raise InputError(f"{path}: two rows have the Id {post_id}, an answer of question {thread.id}; {MEND}")


def _reason_to_leave(
    row: dict[str, str], years: frozenset[int] | None, tags: frozenset[str] | None, where: Where
) -> str | None:
    """Return the count that a question falls under when it is not kept, None when it is."""
    if "AcceptedAnswerId" not in row:
        return "no accepted answer"
    if not row.get("Title", "").strip() or not row.get("Body"):
        return "without title or body"
    date = check_date(row.get("CreationDate", ""), where)
    if years is not None and not (date and int(date[:4]) in years):
        return "outside years"
    if tags is not None and tags.isdisjoint(split_tags(row.get("Tags", ""))):
        return "other tags"
    return None


def _thread(row: dict[str, str], where: Where, answers: list[Post]) -> Thread:
    date = check_date(row.get("CreationDate", ""), where)
    return Thread(
        id=number_of(row, "Id", where),
        accepted_id=number_of(row, "AcceptedAnswerId", where),
        title=row["Title"],
        html=row["Body"],
        date=date,
        tags=split_tags(row.get("Tags", "")),
        author=_author(row),
        license=row.get("ContentLicense") or license_of(date),
        answers=answers,
    )


def _answer(row: dict[str, str], where: Where) -> Post:
    score = number_of(row, "Score", where, signed=True) if "Score" in row else 0
    return Post(number_of(row, "Id", where), row.get("Body", ""), score, _author(row))


def _author(row: dict[str, str]) -> str:
    """Return the display name, else ``user`` and its number; a deleted user has neither."""
    return row.get("OwnerDisplayName") or (f"user{row['OwnerUserId']}" if "OwnerUserId" in row else "")


def check_date(date: str, where: Where, key: str = "CreationDate") -> str:
    """Return a date, empty where there is none.

    Raises:
        InputError: it is no day of the calendar in ISO 8601.
    """
    if not date:
        return ""
    try:
        if date[4:5] + date[7:8] == "--":  # 20190501 and 2019-W18-3 are ISO 8601 too, but not what a dump has
            datetime.date.fromisoformat(date[:10])
            return date
    except ValueError:
        pass
    raise InputError(f"{_at(where)} has {key}={date[:40]!r}, expected an ISO 8601 date")


def number_of(row: dict[str, str], key: str, where: Where, signed: bool = False) -> int:
    """Return the whole number of a row's attribute: an id, or with ``signed`` a score, which may be below 0.

    Raises:
        InputError: it is missing or anything else.
    """
    text = row.get(key, "")
    if text.isdecimal() and text.isascii() and len(text) <= 18:
        return int(text)
    if signed and text[:1] == "-" and text[1:].isdecimal() and text.isascii() and len(text) <= 18:
        return int(text)
    got = f"{key}={text[:40]!r}" if key in row else f"no {key}"
    raise InputError(f"{_at(where)} has {got}, expected an integer")


def _at(where: Where) -> str:
    return where if isinstance(where, str) else f"{where[0]}: row {where[1]}"
