"""The files of a data set with official sides, and its questions cut into train, validation and test."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from graphcontext.data import splits
from graphcontext.data.leaks import normalise
from graphcontext.errors import InputError

RULES = ("auto", "last_quarter")
TEST_COPIES = "questions equal to a test question"
VALIDATION_COPIES = "training questions equal to a validation question"
Patterns = Mapping[str, Sequence[str]]


class Asked(Protocol):
    """What the cut looks at: id and text of a question."""

    id: str
    text: str


Item = TypeVar("Item", bound=Asked)


@dataclass(frozen=True)
class Cut(Generic[Item]):
    """The questions of each side; ``copies`` counts those that equal one of another side, left out or kept."""

    by_side: dict[str, tuple[Item, ...]]
    rule: str
    why: str
    copies: dict[str, int]


def find(path: Path, patterns: Patterns, suffix: str) -> dict[str, Path]:
    """Return the file of each official side, ``test`` (dev where there is one) and ``train``, as far as they are there.

    Args:
        path: the folder, or one file: then it is the only one, of the side that its name says, else ``test``.
        patterns: side → patterns of file names without suffix, in lower case; the first that fits anything counts.
        suffix: of the files, which may be packed (``.gz``).

    Raises:
        InputError: two files fit one pattern, or none fits any; the message lists the candidates.
    """
    if path.is_file():
        stem = _stem(path, suffix)
        if stem is None:
            raise InputError(f"dataset.path={path} is no {suffix} file; expected {_expected(patterns, suffix)}")
        is_train = any(fnmatch.fnmatchcase(stem, pattern) for pattern in patterns["train"])
        return {"train" if is_train else "test": path}
    there = [(stem, file) for file in sorted(path.iterdir()) if file.is_file() and (stem := _stem(file, suffix))]
    found: dict[str, Path] = {}
    for side, ordered in patterns.items():
        for pattern in ordered:
            fitting = [file for stem, file in there if fnmatch.fnmatchcase(stem, pattern)]
            if len(fitting) > 1:
                listed = ", ".join(file.name for file in fitting[:8])
                raise InputError(f"{path} holds several files of the {side} side: {listed}; name one by dataset.path")
            if fitting:
                found[side] = fitting[0]
                break
    if not found:
        listed = ", ".join(entry.name for entry in sorted(path.iterdir())[:8]) or "nothing"
        wanted = _expected(patterns, suffix)
        raise InputError(f"{path} holds no file of the data set: found {listed}; expected {wanted}")
    return found


def needed(files: dict[str, Path], side: str, rule: str, path: Path) -> dict[str, Path]:
    """Return the files that a side is read from: of ``test`` its own, of the others the test file too, for copies.

    Raises:
        InputError: the side has no file.
    """
    if rule == "last_quarter":
        return files
    own = "test" if side == "test" else "train"
    if own not in files:
        listed = ", ".join(file.name for file in files.values())
        mend = "put one beside it and name the folder, or cut all questions by dataset.split=last_quarter"
        raise InputError(f"{path}: split={side} has no file, found {listed} alone; {mend}")
    return {own: files[own]} if side == "test" else files


def cut(by_file: Mapping[str, Sequence[Item]], rule: str, exclude: bool) -> Cut[Item]:
    """Cut questions into sides: those of the test file are test, the last tenth of the train file is validation.

    Args:
        by_file: the questions of each file that was read.
        rule: ``auto`` keeps official sides; ``last_quarter`` cuts all questions in the order of their hashed ids.
        exclude: whether questions equal to a test question leave train and validation, and those equal to a
            validation question leave train.

    Raises:
        InputError: an id stands in two files that are cut as one.
    """
    if rule == "last_quarter":
        everything = [item for items in by_file.values() for item in items]
        if len({item.id for item in everything}) < len(everything):
            raise InputError("a question id stands in two files; dataset.split=last_quarter needs them distinct")
        sides = splits.last_quarter(everything, "dataset.split=last_quarter", splits.by_hash)  # type: ignore[type-var]
        train, test, named, why = sides.train, sides.test, sides.rule, sides.why
    else:
        train, test = tuple(by_file.get("train", ())), tuple(by_file.get("test", ()))
        named, why = "official", "the data set has a file for each side; validation is the last tenth of train"
    apart = _apart(train, test)
    copies = {TEST_COPIES: len(train) - len(apart)}
    train, validation = splits.hold_out(apart if exclude else train, splits.by_hash)  # type: ignore[type-var]
    apart = _apart(train, validation)
    copies[VALIDATION_COPIES] = len(train) - len(apart)
    by_side = {"train": tuple(apart if exclude else train), "validation": validation, "test": test}
    return Cut(by_side, named, why, copies)


def scored(made: Cut[Item], side: str, path: Path) -> tuple[Item, ...]:
    """Return the questions of a side, in id order.

    Raises:
        InputError: it has none.
    """
    if not made.by_side[side]:
        sizes = ", ".join(f"{name} {len(items)}" for name, items in made.by_side.items())
        raise InputError(f"{path}: split={side} has no question ({made.rule}: {sizes}); add questions")
    return tuple(sorted(made.by_side[side], key=lambda item: splits.id_order(item.id)))


def _apart(items: Sequence[Item], others: Iterable[Item]) -> tuple[Item, ...]:
    """Return the questions whose normalised text is not that of another."""
    texts = {normalise(item.text) for item in others} - {""}
    return tuple(item for item in items if normalise(item.text) not in texts) if texts else tuple(items)


def _stem(file: Path, suffix: str) -> str | None:
    name = file.name.lower().removesuffix(".gz")
    return name.removesuffix(suffix) if name.endswith(suffix) else None


def _expected(patterns: Patterns, suffix: str) -> str:
    return ", ".join(f"{ordered[0]}{suffix}" for ordered in patterns.values())
