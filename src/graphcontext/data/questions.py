"""A user's own questions, of which side each is, and the cut into sides where no side is given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from graphcontext.data import splits
from graphcontext.data.dump import check_date
from graphcontext.data.json_lines import Row, entry, entry_id, rows
from graphcontext.data.jsonl_files import SIDE_OF, WHOLE, Files
from graphcontext.data.leaks import normalise
from graphcontext.data.qrels import read_qrels
from graphcontext.errors import InputError, did_you_mean

KEYS = frozenset(("id", "_id", "question", "text", "query", "answers", "golden_answers", "supports", "split", "date"))

TEST_COPIES = "questions of other sides equal to a test question"
VALIDATION_COPIES = "training questions equal to a validation question"


@dataclass(frozen=True, slots=True)
class Asked:
    """One question as its file has it, gold passages with their grades; ``side`` is empty where the file says none."""

    id: str
    text: str
    answers: tuple[str, ...]
    supports: dict[str, int]
    side: str = ""
    date: str = ""


@dataclass(frozen=True)
class Cut:
    """The questions of each side; ``copies`` counts those that equal one of another side, left out or kept."""

    by_side: dict[str, tuple[Asked, ...]]
    rule: str
    why: str
    copies: dict[str, int]


def read_questions(files: Files, counts: Counter[str], ignored: Counter[str]) -> list[Asked]:
    """Read the questions of all sides, with the gold passages of their own lines and of the qrels.

    Args:
        files: where they are.
        counts: gets what was left out or is to be known.
        ignored: gets the keys that nothing reads.

    Raises:
        InputError: with file and line.
    """
    asked: list[Asked] = []
    for side, path in files.questions.items():
        lines: dict[str, int] = {}
        for row in rows(path):
            ignored.update(row.unread(KEYS))
            question = _asked(row, side, counts)
            first = lines.setdefault(question.id, row.line)
            if first != row.line:
                row.fail(f"question id {question.id} stands in line {first} too")
            asked.append(question)
    return _judged(asked, files, counts) if files.qrels else asked


def _asked(row: Row, side: str, counts: Counter[str]) -> Asked:
    text = row.text("question", "text", "query").strip()
    if not text:
        row.fail("the question is empty")
    given = row.list_of("answers" if "answers" in row.values else "golden_answers", entry)
    answers = tuple(answer for answer in given if answer.strip())
    counts["blank answers"] += len(given) - len(answers)
    named = row.optional_text("split").lower()
    if named and named not in SIDE_OF:
        row.fail(f"split is {named}{did_you_mean(named, SIDE_OF)}")
    if named and side and SIDE_OF[named] != side:
        row.fail(f"split is {named}, but the file is of {side}")
    return Asked(
        id=row.identifier("id", "_id"),
        text=text,
        answers=answers,
        supports=dict.fromkeys(row.list_of("supports", entry_id), 1),
        side=side or SIDE_OF.get(named, ""),
        date=check_date(row.optional_text("date"), f"{row.path}: line {row.line}", "date"),
    )


def _judged(asked: Sequence[Asked], files: Files, counts: Counter[str]) -> list[Asked]:
    """Add gold passages of the qrels, each at its highest grade; a qrels file of a side says which questions it has."""
    judged = {side: read_qrels(path) for side, path in files.qrels.items()}
    known = {question.id for question in asked}
    counts["judged questions that are not there"] += sum(q not in known for found in judged.values() for q in found)
    result: list[Asked] = []
    for question in asked:
        sides = [side for side, found in judged.items() if question.id in found and side != WHOLE]
        gold = dict(question.supports)
        for passage, grade in (pair for found in judged.values() for pair in found.get(question.id, {}).items()):
            gold[passage] = max(grade, gold.get(passage, 1))
        side = question.side
        if not side and sides:
            side = next(name for name in ("test", "validation", "train") if name in sides)
            counts["questions judged on two sides"] += len(sides) > 1
        result.append(replace(question, supports=gold, side=side))
    return result


def cut(asked: Sequence[Asked], rule: str, exclude: bool, counts: Counter[str]) -> Cut:
    """Cut questions into sides: official ones are kept, else the last quarter is the test side.

    Without a test file the dev file is the test side. Without a dev file (or where it is the test side) the last
    tenth of the training side is validation.

    Args:
        asked: questions of all sides.
        rule: ``auto``, or ``last_quarter`` whatever the files say.
        exclude: whether copies of test questions leave train and validation, and copies of validation train.
        counts: gets ``questions of no side``.
    """
    train, held, test, rule, why = _sides(asked, rule, counts)
    has_validation = bool(held)
    of_train, of_held = _apart(train, test), _apart(held, test)
    copies = {TEST_COPIES: len(train) + len(held) - len(of_train) - len(of_held)}
    if exclude:
        train, held = of_train, of_held
    if not has_validation:
        train, held = splits.hold_out(train)
        why += "; validation is the last tenth of train" if held and rule == "official" else ""
    of_train = _apart(train, held)
    copies[VALIDATION_COPIES] = len(train) - len(of_train)
    sides = {"train": of_train if exclude else train, "validation": held, "test": test}
    return Cut({side: tuple(found) for side, found in sides.items()}, rule, why, copies)


def _sides(
    asked: Sequence[Asked], rule: str, counts: Counter[str]
) -> tuple[Sequence[Asked], Sequence[Asked], Sequence[Asked], str, str]:
    """Return train, validation (empty where none is named) and test, the rule and why it was taken."""
    official = {side: [q for q in asked if q.side == side] for side in splits.SIDES}
    if rule != "last_quarter" and (official["test"] or official["validation"]):
        counts["questions of no side"] += sum(not question.side for question in asked)
        train, validation, test = official.values()
        if test:
            return train, validation, test, "official", "the data set names its sides"
        return train, (), validation, "official", "the data set names no test side: dev is scored as test"
    twice = [name for name, n in Counter(question.id for question in asked).items() if n > 1]
    if twice:
        raise InputError(f"question id {twice[0]} stands in two files; the rule last_quarter needs them distinct")
    why = f"dataset.split={rule}" if rule != "auto" else "the files name no test or dev side"
    sides = splits.last_quarter(asked, why)
    if len(asked) == 1:  # the corpus answers it: there is no pool that needs a question
        sides = replace(sides, train=(), test=tuple(asked))
    return sides.train, (), sides.test, sides.rule, why


def _apart(questions: Sequence[Asked], scored: Sequence[Asked]) -> Sequence[Asked]:
    """Return the questions whose normalised text is not that of a scored one."""
    texts = {normalise(question.text) for question in scored} - {""}  # two questions of signs alone are no copies
    return [question for question in questions if normalise(question.text) not in texts]


def scored(made: Cut, side: str, path: Path) -> tuple[Asked, ...]:
    """Return the questions of a side, in id order.

    Raises:
        InputError: it has none.
    """
    found = made.by_side[side]
    if not any(made.by_side.values()):
        raise InputError(f"{path} holds no question")
    if not found:
        sizes = ", ".join(f"{name} {len(questions)}" for name, questions in made.by_side.items())
        mend = "add questions"
        if made.rule == "official":
            mend = "add a file of that side, or cut all questions by dataset.split=last_quarter"
        if n := sum(made.copies.values()):
            mend = f"{n} that are {'; '.join(what for what, k in made.copies.items() if k)} were left out"
            mend += " (dataset.exclude_duplicates)"
        raise InputError(f"{path}: split={side} has no question ({made.rule}: {sizes}); {mend}")
    return tuple(sorted(found, key=lambda question: splits.id_order(question.id)))
