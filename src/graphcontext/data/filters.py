"""The filters of GraphContextGen §3 (duplicates, non-specific answers, lengths), each with a count."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from graphcontext.data.dump import Dump, Thread
from graphcontext.data.leaks import Fingerprint, fingerprint, link_duplicates
from graphcontext.data.plain_text import has_link, html_to_text, n_words, text_beside_links
from graphcontext.data.records import Answer
from graphcontext.data.splits import in_time
from graphcontext.errors import InputError

FILTERS = (
    "dangling accepted answer",
    "duplicate by link",
    "non-specific answer",
    "question length",
    "answer length",
    "duplicate by text",
)


@dataclass(frozen=True)
class Rules:
    """What is kept. Word limits are inclusive, None is no limit.

    Args:
        exclude_duplicates: leave out duplicates by link and by text, keeping the original.
        non_specific: regular expressions, searched without regard to case in short answers.
        non_specific_max_words: an answer of more words is never non-specific by pattern.
        min_words_beside_links: an answer with a link must say this many words outside of its links.
    """

    exclude_duplicates: bool
    non_specific: tuple[str, ...]
    non_specific_max_words: int
    min_words_beside_links: int
    min_question_words: int
    max_question_words: int | None
    min_answer_words: int
    max_answer_words: int | None

    def __post_init__(self) -> None:
        for pattern in self.non_specific:
            try:
                re.compile(pattern)
            except re.error as fault:
                raise InputError(f"dataset.non_specific: {pattern!r} is no pattern: {fault}") from fault
        for side in ("question", "answer"):
            low, high = getattr(self, f"min_{side}_words"), getattr(self, f"max_{side}_words")
            if low < 0 or (high is not None and high < low):
                got = f"dataset.min_{side}_words={low}, dataset.max_{side}_words={high}"
                raise InputError(f"{got}; allowed: 0 <= min <= max")


@dataclass(frozen=True, slots=True)
class Item:
    """A kept question with its answers as text."""

    id: int | str
    title: str
    question: str  # title, newline, body
    answer: str  # the accepted one, the gold answer
    answers: tuple[Answer, ...]
    date: str
    tags: tuple[str, ...]
    author: str
    license: str


@dataclass
class Filtered:
    """Kept items in time order, what each filter took, and fingerprints (of filtered duplicates too)."""

    items: tuple[Item, ...]
    counts: Counter[str] = field(default_factory=Counter)
    prints: list[Fingerprint] = field(default_factory=list)


def filter_threads(dump: Dump, rules: Rules) -> Filtered:
    """Turn threads into text and keep those that pass; a thread counts under the first filter that it fails.

    Takes the threads out of ``dump`` one by one, so that all their HTML is never held beside the text.
    """
    counts = Counter(dict.fromkeys(FILTERS, 0))
    marked = link_duplicates(dump.duplicates) if rules.exclude_duplicates else set()
    items: list[Item] = []
    prints: list[Fingerprint] = []
    for post_id in sorted(dump.threads):
        thread = dump.threads.pop(post_id)
        if thread.accepted is None:
            counts["dangling accepted answer"] += 1
            continue
        question = f"{thread.title.strip()}\n{html_to_text(thread.html)}"
        if post_id in marked:
            counts["duplicate by link"] += 1
            prints.append(fingerprint(post_id, question))
            continue
        item = _item(thread, question)
        reason = _reason(item, thread.accepted.html, rules)
        if reason:
            counts[reason] += 1
            continue
        items.append(item)
        prints.append(fingerprint(post_id, question))
    if rules.exclude_duplicates:
        items = _first_of_each_text(items, prints, counts)
    return Filtered(tuple(in_time(items)), counts, prints)


def is_non_specific(text: str, html: str, rules: Rules) -> bool:
    """Tell whether an answer says nothing by itself: thanks, "see the link above", only a link.

    Args:
        text: the answer as text.
        html: the same answer as the dump has it.
        rules: the patterns and bounds.
    """
    is_short = n_words(text) <= rules.non_specific_max_words
    if is_short and any(re.search(pattern, text, re.IGNORECASE) for pattern in rules.non_specific):
        return True
    return has_link(html) and n_words(text_beside_links(html)) < rules.min_words_beside_links


def _reason(item: Item, answer_html: str, rules: Rules) -> str | None:
    """Return the filter that takes an item, None where it passes."""
    if is_non_specific(item.answer, answer_html, rules):
        return "non-specific answer"
    if not _fits(n_words(item.question), rules.min_question_words, rules.max_question_words):
        return "question length"
    if not _fits(n_words(item.answer), rules.min_answer_words, rules.max_answer_words):
        return "answer length"
    return None


def _fits(n: int, low: int, high: int | None) -> bool:
    return low <= n and (high is None or n <= high)


def _first_of_each_text(items: Sequence[Item], prints: Sequence[Fingerprint], counts: Counter[str]) -> list[Item]:
    """Keep the earliest of the items with one normalised text."""
    text_of = {p.id: p.text for p in prints}
    kept: dict[int, Item] = {}
    for item in in_time(items):
        kept.setdefault(text_of[item.id], item)
    counts["duplicate by text"] += len(items) - len(kept)
    return list(kept.values())


def _item(thread: Thread, question: str) -> Item:
    texts = {answer.id: html_to_text(answer.html) for answer in thread.answers}
    answers = tuple(
        Answer(texts[answer.id], answer.score, answer.id == thread.accepted_id, answer.author)
        for answer in thread.answers
    )
    return Item(
        id=thread.id,
        title=thread.title.strip(),
        question=question,
        answer=texts[thread.accepted_id],
        answers=answers,
        date=thread.date,
        tags=thread.tags,
        author=thread.author,
        license=thread.license,
    )
