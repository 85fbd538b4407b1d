"""From kept questions and their cut to scored questions, pool and card: what every pool of answered questions shares.

A passage is matched on "title, newline, body" and shown as question with accepted answer; the accepted answer is
the gold answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphcontext.data import splits
from graphcontext.data.card import card_of
from graphcontext.data.filters import Filtered, Item
from graphcontext.data.loaded import Loaded
from graphcontext.data.records import Corpus, Passage, Question, Source, content_id
from graphcontext.errors import InputError

LEAST_KEPT = {"test": 2, "validation": 3, "train": 4}  # kept questions below which a side is empty in any case
MATCHES = ("question", "answer", "question_answer")  # what of a pooled question is retrieved on
Guard = Callable[[Sequence[Item], Sequence[Item]], tuple[Sequence[Item], Counter[str]]]


@dataclass(frozen=True)
class Kept:
    """The questions of a data set that its filters kept, cut into sides.

    Args:
        path: what was read, for messages; its last part stands on the card.
        facts: name, site (for links, empty for none), license, and what else the card says first.
        counts: what was read, and what was left out while reading (:data:`graphcontext.data.card.READ`).
        filtered: what the filters kept and took.
        sides: the cut.
        guard: takes (scored, candidates) and returns the candidates that may be retrieved, and what was taken out.
        match: what is retrieved on, one of ``MATCHES``.
    """

    path: Path
    facts: dict[str, Any]
    counts: Counter[str]
    filtered: Filtered
    sides: splits.Sides[Item]
    guard: Guard
    match: str = "question"


def load_side(kept: Kept, side: str) -> Loaded:
    """Return the scored candidates of one side, the pool (two for ``train``) and the card.

    Raises:
        InputError: no scored question or an empty pool, with all counts.
    """
    site = kept.facts.get("site", "")
    questions: list[Question] = []
    corpora: dict[str, Corpus] = {}
    pooled: list[Item] = []
    asked: list[Item] = []
    folds, leaked = _folds(kept, side)
    for scored, candidates in folds:
        pool, taken = kept.guard(scored, candidates)
        ordered = sorted(pool, key=lambda item: splits.id_order(str(item.id)))
        corpus = Corpus.of([_passage(item, site, kept.match) for item in ordered])
        corpora[corpus.id] = corpus
        questions += [_question(item, site, corpus.id) for item in scored]
        pooled += pool
        asked += scored
        leaked.update(taken)
    cut = {"side": side, "rule": kept.sides.rule, "why": kept.sides.why}
    cut |= {"train": len(kept.sides.train), "test": len(kept.sides.test)}
    facts = {**kept.facts, "path": kept.path.name, "split": cut}
    card = card_of(facts, kept.counts, kept.filtered, pooled, asked, leaked)
    _require_both(kept.path, card, corpora)
    questions.sort(key=lambda question: splits.id_order(question.id))
    return Loaded(tuple(questions), corpora, card)


def _require_both(path: Path, card: dict[str, Any], corpora: dict[str, Corpus]) -> None:
    """Stop where nothing can be asked, or nothing can be retrieved, and say what took it.

    Raises:
        InputError: with the counts of all filters.
    """
    if card["scored_candidates"] and all(corpus.passages for corpus in corpora.values()):
        return
    lacking = "the pool is empty" if card["scored_candidates"] else "no question to score"
    kept, side = card["kept"], card["split"]["side"]
    if 0 < kept < LEAST_KEPT[side]:
        few = f"{kept} {'question was' if kept == 1 else 'questions were'} kept"
        lacking += f", as {few} and the split {side} needs at least {LEAST_KEPT[side]}: some are asked, others answer"
    took = {**card["filters"], **{f"leak guard, {layer}": n for layer, n in card["leak_guard"].items()}}
    spelled = ", ".join(f"{reason} {n}" for reason, n in took.items() if n) or "nothing"
    read = f"read {card['read']['questions']} questions and {card['read']['answers']} answers"
    raise InputError(f"{path}: {lacking}; {read}, kept {card['kept']}; left out: {spelled}")


def _folds(kept: Kept, side: str) -> tuple[list[tuple[Sequence[Item], Sequence[Item]]], Counter[str]]:
    """Return (scored, candidates for the pool) pairs of one side, and how many copies of later questions left it."""
    if side == "test":
        return [(kept.sides.test, kept.sides.train)], Counter()
    train, taken = kept.guard(kept.sides.test, kept.sides.train)
    rest, validation = splits.hold_out(train, kept.sides.order)
    leaked = Counter({"training questions that copy a test question": taken.total()})
    if side == "validation":
        return [(validation, rest)], leaked
    rest, taken = kept.guard(validation, rest)
    leaked["training questions that copy a validation question"] = taken.total()
    even, odd = rest[::2], rest[1::2]
    return [(even, odd), (odd, even)], leaked


def _source(item: Item, site: str) -> Source:
    link = f"https://{site}/questions/{item.id}" if site else ""
    return Source(link=link, author=item.author, license=item.license, date=item.date)


def _passage(item: Item, site: str, match: str) -> Passage:
    matched = {"question": item.question, "answer": item.answer, "question_answer": f"{item.question}\n{item.answer}"}
    return Passage(
        id=content_id(str(item.id), item.question, item.answer),
        title=item.title,
        match_text=matched[match],
        context_text=f"Question: {item.question}\n\nAnswer: {item.answer}",
        source=_source(item, site),
        answers=item.answers,
    )


def _question(item: Item, site: str, corpus_id: str) -> Question:
    return Question(
        id=str(item.id),
        text=item.question,
        corpus_id=corpus_id,
        references=(item.answer,),
        title=item.title,
        source=_source(item, site),
    )
