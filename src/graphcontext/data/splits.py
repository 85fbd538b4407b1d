"""Which questions are training, validation and test, and which of them are scored (GraphContextGen §3)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from graphcontext.errors import InputError, did_you_mean

SIDES = ("train", "validation", "test")  # which side is scored: the root key ``split``
RULES = ("auto", "years", "last_quarter")  # how the sides are cut: ``dataset.split``
LEAST = 20  # kept questions that either side must hold for ``auto`` to take the paper's years


class Dated(Protocol):
    """What a split looks at: the post's id and its date (ISO 8601, empty where unknown)."""

    id: int | str
    date: str


class Identified(Protocol):
    """What a selection looks at."""

    @property
    def id(self) -> str: ...


Item = TypeVar("Item", bound=Dated)
Named = TypeVar("Named", bound=Identified)


@dataclass(frozen=True)
class Sides(Generic[Item]):
    """A data set cut in time, or as ``order`` says; ``rule`` names the rule and ``why`` says why it was taken."""

    train: tuple[Item, ...]
    test: tuple[Item, ...]
    rule: str
    why: str
    order: Callable[[Iterable[Item]], list[Item]]


def check_split(rule: str, side: str, rules: Sequence[str] = RULES) -> None:
    """Check the rule of the cut (``dataset.split``) and the side that is scored (``split``).

    Raises:
        InputError: another word; where the two were mixed up, with the one to type.
    """
    if rule in SIDES:
        named = f"it names the rule of the cut ({', '.join(rules)})"
        raise InputError(f"dataset.split={rule}: {named}; the scored side is split={rule}")
    if rule not in rules:
        raise InputError(f"dataset.split={rule}{did_you_mean(rule, rules)}")
    check_side(side)


def check_side(side: str) -> None:
    """Check the side that is scored."""
    if side not in SIDES:
        rule = f"; the rule of the cut is dataset.split={side}" if side in RULES else did_you_mean(str(side), SIDES)
        raise InputError(f"split={side}: no such side{rule}")


def later(side: str) -> tuple[str, ...]:
    """Return the sides that are scored after ``side``, whose questions it must not show: of ``train`` both others."""
    return SIDES[SIDES.index(side) + 1 :]


def apart_from(side: str) -> dict[str, str]:
    """Return what the key of a side says of them: nothing for ``test``, whose keys are older than the others' pools.

    >>> apart_from("train")
    {'apart_from': 'validation and test'}
    """
    return {"apart_from": " and ".join(later(side))} if side in SIDES and later(side) else {}


def check_limit(limit: int | None) -> None:
    """Check the number of scored questions."""
    if limit is not None and limit < 1:
        raise InputError(f"dataset.limit={limit}; allowed: null (all) or a whole number from 1")


def select(questions: Iterable[Named], limit: int | None, seed: int) -> tuple[Named, ...]:
    """Return the ``limit`` scored questions of one seed, in id order; the subsets of one seed are nested.

    Questions are ranked by a hash of seed and id: neither their order nor the other questions matter.

    Args:
        questions: all scored candidates of a split.
        limit: how many to score, None for all.
        seed: ``dataset.seed``, the only seed that touches which questions are scored.
    """
    ordered = sorted(questions, key=lambda question: id_order(question.id))
    if limit is None or limit >= len(ordered):
        return tuple(ordered)
    drawn = sorted(ordered, key=lambda question: _rank(question.id, seed))[:limit]
    return tuple(sorted(drawn, key=lambda question: id_order(question.id)))


def id_order(identifier: str) -> tuple[int, str]:
    """Sort key of ids: shorter first, so that numbers written as text come in numeric order."""
    return (len(identifier), identifier)


def in_time(items: Iterable[Item]) -> list[Item]:
    """Return items in time order; in id order where a date is missing."""
    listed = sorted(items, key=lambda item: id_order(str(item.id)))
    return sorted(listed, key=lambda item: item.date) if all(item.date for item in listed) else listed


def by_hash(items: Iterable[Item]) -> list[Item]:
    """Return items in the order of a hash of their ids, for ids whose order says something of the question."""
    return sorted(items, key=lambda item: hashlib.sha256(f"side\0{item.id}".encode()).digest())


def by_years(
    items: Iterable[Item], train: Sequence[int], test: Sequence[int], least: int = LEAST
) -> Sides[Item] | None:
    """Cut by the paper's years, None where a side holds fewer than ``least`` items.

    Args:
        items: kept questions.
        train: first and last year of the training side, inclusive (the paper: 2019, 2020).
        test: first and last year of the test side, inclusive (the paper: 2021, 2023).
        least: items that either side must hold; 0 where the years were asked for.
    """
    ordered = in_time(items)
    sides = [tuple(item for item in ordered if _within(item, years)) for years in (train, test)]
    if min(map(len, sides)) < least:
        return None
    held = f"{len(sides[0])} and {len(sides[1])}"
    why = f"both sides hold at least {least} kept questions ({held})" if least else f"dataset.split=years ({held})"
    return Sides(*sides, f"years {_span(train)} / {_span(test)}", why, in_time)


def last_quarter(
    items: Iterable[Item], why: str, order: Callable[[Iterable[Item]], list[Item]] = in_time
) -> Sides[Item]:
    """Cut off the last quarter in time order (at least one item of two or more), or in another, as the test side."""
    ordered = order(items)
    n_test = max(1, len(ordered) // 4) if len(ordered) > 1 else 0
    name = "hashed id" if order is by_hash else "time" if all(item.date for item in ordered) else "id"
    cut = len(ordered) - n_test
    return Sides(tuple(ordered[:cut]), tuple(ordered[cut:]), f"last quarter in {name} order", why, order)


def hold_out(
    train: Sequence[Item], order: Callable[[Iterable[Item]], list[Item]] = in_time
) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
    """Return the training side without its last tenth in time order or another, and that tenth, for validation."""
    ordered = order(train)
    n_validation = max(1, len(ordered) // 10) if len(ordered) > 1 else 0
    cut = len(ordered) - n_validation
    return tuple(ordered[:cut]), tuple(ordered[cut:])


def _rank(identifier: str, seed: int) -> bytes:
    return hashlib.sha256(f"{seed}\0{identifier}".encode()).digest()


def _within(item: Any, years: Sequence[int]) -> bool:
    return bool(item.date) and years[0] <= int(item.date[:4]) <= years[1]


def _span(years: Sequence[int]) -> str:
    return f"{years[0]}–{years[1]}"
