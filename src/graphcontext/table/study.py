"""A human study of two systems' answers: what raters are shown, blinded, and the key that says which is which.

``results/<scale>/<paper>/<table>.ratings/`` holds ``pairs.jsonl`` and ``ratings.jsonl`` for the raters (one file of
each per data set where there are several), ``instructions.md``, and, not for them, ``key.jsonl`` and ``export.json``.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from graphcontext.data import doccano
from graphcontext.data.records import Prediction, Question
from graphcontext.data.splits import select
from graphcontext.errors import InputError, RunError
from graphcontext.files import digest, jsonl, read_lines, write_atomic
from graphcontext.lease import Lease
from graphcontext.table.expand import Column
from graphcontext.table.lines import Line, Lines

PAIR, RATING = "pair", "rating"
SIDES = ("A", "B", "tie")
ENOUGH = 5  # items on which two raters hardly say the same by chance


@dataclass(frozen=True)
class Item:
    """One text that raters label, and what it is.

    Args:
        item: an id without meaning: a hash of what is shown.
        kind: ``pair`` (which of two answers is better) or ``rating`` (how good one is).
        column: the data set.
        question: the question's id.
        rows: the table's rows whose answers are shown, A before B; one for a rating.
    """

    item: str
    kind: str
    column: str
    question: str
    rows: tuple[str, ...]


@dataclass(frozen=True)
class Study:
    """An exported study, with the labels that were imported.

    Args:
        folder: where it lies.
        facts: ``export.json``: table, scale, n, seed, levels, gold, answers (data set → row → hash of what was
            shown), left_out (data set → items that failed in a run).
        items: the key.
        judgements: rater, item, label of each.
    """

    folder: Path
    facts: dict[str, Any]
    items: tuple[Item, ...]
    judgements: tuple[doccano.Judgement, ...] = ()

    @property
    def labels(self) -> dict[str, tuple[str, ...]]:
        """Return what each kind of item may be labelled."""
        return {PAIR: SIDES, RATING: tuple(str(level) for level in range(1, self.facts["levels"] + 1))}

    def groups(self) -> list[list[str]]:
        """Return the items of each data set and kind."""
        found: dict[tuple[str, str], dict[str, None]] = {}
        for item in self.items:
            found.setdefault((item.column, item.kind), {})[item.item] = None
        return [list(names) for names in found.values()]

    def texts(self) -> dict[str, str]:
        """Return item → what raters are shown, of the files that are still here."""
        files = sorted([*self.folder.glob("pairs*.jsonl"), *self.folder.glob("ratings*.jsonl")])
        return {row["item"]: row["text"] for file in files for row in read_lines(file) if {"item", "text"} <= set(row)}

    def of(self, column: str, kind: str, row: str) -> dict[str, dict[Item, str]]:
        """Return rater → item → label of one row on one data set; only raters who labelled any."""
        items = {i.item: i for i in self.items if (i.column, i.kind) == (column, kind) and row in i.rows}
        found: dict[str, dict[Item, str]] = {}
        for judgement in self.judgements:
            if judgement.item in items:
                found.setdefault(judgement.rater, {})[items[judgement.item]] = judgement.label
        return found

    def is_of(self, column: str, line: Line) -> bool:
        """Tell whether the answers that were shown are still those of a row's run."""
        shown = [i.question for i in self.items if i.column == column and i.kind == PAIR]
        return self.facts["answers"].get(column, {}).get(line.cell.row.name) == _hash(
            _answers(line), sorted(set(shown))
        )


def folder_of(lines: Lines) -> Path:
    """Return where the study of a table lies."""
    return lines.stem.with_name(f"{lines.stem.name}.ratings")


def read_study(folder: Path) -> Study | None:
    """Read an exported study and what was imported; None where there is none."""
    path = folder / "export.json"
    if not path.is_file():
        return None
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        key = read_lines(folder / "key.jsonl")
        items = tuple(Item(**{**row, "rows": tuple(row["rows"])}) for row in key)
        whole = facts["key"] == digest(key)
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{folder} is damaged: delete it and export again") from error
    if not whole:
        raise InputError(f"{folder / 'key.jsonl'} is damaged: delete the folder and export again")
    return Study(folder, facts, items, _kept(folder / "judgements.jsonl"))


def _kept(path: Path) -> tuple[doccano.Judgement, ...]:
    """Read the labels that were imported; the last line is the hash of those before it."""
    if not path.is_file():
        return ()
    *rows, last = read_lines(path) or [{}]
    if last != {"sha256": digest(rows)}:
        raise InputError(f"{path} is not what was imported: delete it and import the labels again")
    return tuple(doccano.Judgement(**row) for row in rows)


def export(lines: Lines, view: Mapping[str, Any]) -> tuple[Study, list[Path]]:
    """Draw the items of a table, blind them and write them; the same command writes the same bytes.

    Args:
        lines: the table's rows, computed.
        view: n, seed, levels and gold of the study.

    Returns:
        The study and the files for the raters.

    Raises:
        InputError: another study was exported there: its labels would be of other texts.
        RunError: no two rows that can be compared have answers.
    """
    baseline = lines.wish.baseline
    texts: dict[str, str] = {}
    items: list[Item] = []
    answers: dict[str, dict[str, str]] = {}
    left_out: dict[str, int] = {}
    for column in lines.columns:
        base = lines.of(baseline or "", column)
        others = [line for line in lines.lines if line.cell.column == column and line.ran and line is not base]
        if base is None or not base.ran or not others:
            continue
        drawn, failed = _draw([base, *others], view["n"], view["seed"])
        left_out[column.dataset] = failed
        ids = sorted(q.id for q in drawn)
        answers[column.dataset] = {line.cell.row.name: _hash(_answers(line), ids) for line in [base, *others]}
        for line in others:
            for item, text in _shown(column, drawn, base, line, view):
                items.append(item)
                texts[item.item] = text
    if not items:
        why = lines.nothing or f"no row beside {baseline} has answers"
        raise RunError(f"nothing to rate: {why}")
    facts = {
        "generated": f"graphcontext ratings export {lines.wish.spec.name}",
        "table": lines.wish.spec.name,
        "scale": lines.scale,
        **{key: view[key] for key in ("n", "seed", "levels", "gold")},
        "n_items": len(items),
        "key": digest([asdict(item) for item in items]),
        "left_out": left_out,
        "answers": answers,
        "texts": digest([[i.item, texts[i.item]] for i in items]),
    }
    folder = folder_of(lines)
    earlier = read_study(folder)
    if earlier is not None and earlier.facts != facts:
        raise InputError(f"{folder} holds another study (other answers, n, seed or gold): move it away to draw anew")
    files = _write(folder, items, texts, lines.columns, facts)
    return Study(folder, facts, tuple(items)), files


def keep(study: Study, found: doccano.Labels, replace: bool = False, identical: bool = False) -> int:
    """Store labels beside those that were imported before; returns how many took the place of another.

    Args:
        study: what was exported.
        found: the new labels.
        replace: drop all that was imported before.
        identical: take raters who gave the same labels throughout.

    Raises:
        InputError: two raters gave the same labels throughout, which is more often one rater under two names.
    """
    with Lease(study.folder / "judgements.lock"):
        now = read_study(study.folder) or study  # another import may have stored labels since
        earlier = {} if replace else {(j.rater, j.item): j.label for j in now.judgements}
        new = {(j.rater, j.item): j.label for j in found.judgements}
        labels = {**earlier, **new}
        if not identical:
            _check_raters(study, labels, {rater for rater, _ in new})
        rows = [{"rater": r, "item": i, "label": label} for (r, i), label in sorted(labels.items())]
        write_atomic(study.folder / "judgements.jsonl", jsonl([*rows, {"sha256": digest(rows)}]))
    return sum(earlier.get(key, label) != label for key, label in new.items())


def _check_raters(study: Study, labels: Mapping[tuple[str, str], str], new: set[str]) -> None:
    """Refuse a new rater whose labels are another's on all items of both, where these are enough and differ."""
    kinds = {item.item: item.kind for item in study.items}
    given: dict[str, dict[str, str]] = {}
    for (rater, item), label in labels.items():
        given.setdefault(rater, {})[item] = label
    for a, b in itertools.combinations(sorted(given), 2):
        both = given[a].keys() & given[b].keys()
        used = {(kinds.get(item), given[a][item]) for item in both}
        varied = len(used) > len({kind for kind, _ in used})
        if {a, b} & new and len(both) >= ENOUGH and varied and all(given[a][i] == given[b][i] for i in both):
            raise InputError(
                f"{a} and {b} gave the same labels to all {len(both)} items of both, nothing imported: one rater under "
                "two names? Leave one out (ratings.replace=true drops what was imported before); "
                "ratings.identical=true takes both"
            )


def _draw(lines: Sequence[Line], n: int, seed: int) -> tuple[tuple[Question, ...], int]:
    """Return the questions to rate, and how many were left out since a run failed on them."""
    asked = [{q.id: q for q in line.run.questions()} for line in lines]  # type: ignore[union-attr]
    answered = [_answers(line) for line in lines]
    shared = [q for q in asked[0].values() if all(i.get(q.id) and i[q.id].text == q.text for i in asked)]
    whole = [q for q in shared if all(a[q.id].status != "failed" for a in answered)]
    return select(whole, n, seed), len(shared) - len(whole)


def _shown(
    column: Column, drawn: Sequence[Question], base: Line, line: Line, view: Mapping[str, Any]
) -> list[tuple[Item, str]]:
    """Return the pairs and the single answers of one row, each kind in an order of its own."""
    names = [base.cell.row.name, line.cell.row.name]
    answers = {base.cell.row.name: _answers(base), line.cell.row.name: _answers(line)}
    rng = random.Random(digest([view["seed"], column.dataset, names]))
    found: list[tuple[Item, str]] = []
    for kind in (PAIR, RATING):
        for question in rng.sample(list(drawn), len(drawn)):
            rows = tuple(rng.sample(names, 2)) if kind == PAIR else (names[1],)
            text = _text(question, [answers[row][question.id].prediction for row in rows], view["gold"])
            name = digest([column.dataset, kind, question.id, text])[:12]
            found.append((Item(name, kind, column.dataset, question.id, rows), text))
    return found


def _text(question: Question, answers: Sequence[str], gold: bool) -> str:
    parts = [("Question", question.text)]
    if gold:
        parts += [("Accepted answer, for reference", "\n\n".join(question.references))]
    names = ["Answer"] if len(answers) == 1 else [f"Answer {side}" for side in SIDES]
    parts += zip(names, answers)
    return "\n\n".join(f"--- {name} ---\n{text.strip() or '(no answer)'}" for name, text in parts)


def _answers(line: Line) -> dict[str, Prediction]:
    return {p.id: p for p in line.run.predictions()}  # type: ignore[union-attr]


def _hash(answers: Mapping[str, Prediction], ids: Sequence[str]) -> str:
    return digest([[i, answers[i].prediction if i in answers else None] for i in ids])


def _write(
    folder: Path, items: Sequence[Item], texts: Mapping[str, str], columns: Sequence[Column], facts: dict[str, Any]
) -> list[Path]:
    """Write the blinded files, then the key, then ``export.json``, which says that all is there."""
    files = []
    several = len({item.column for item in items}) > 1
    for column in columns:
        for kind, name in ((PAIR, "pairs"), (RATING, "ratings")):
            mine = {i.item: texts[i.item] for i in items if (i.column, i.kind) == (column.dataset, kind)}
            if mine:  # equal texts are one item
                path = folder / f"{name}{f'-{column.dataset}' if several else ''}.jsonl"
                write_atomic(path, doccano.lines(mine.items()))
                files.append(path)
    files.append(folder / "instructions.md")
    write_atomic(files[-1], instructions(facts["levels"], facts["gold"]))
    write_atomic(folder / "key.jsonl", jsonl([asdict(item) for item in items]))
    write_atomic(folder / "export.json", json.dumps(facts, indent=1, ensure_ascii=False) + "\n")
    return files


def instructions(levels: int, gold: bool) -> str:
    """Return what raters are told, and how the project is set up."""
    reference = (
        "The accepted answer is shown for reference; an answer may be better than it."
        if gold
        else "No reference answer is shown: judge by what you know of the subject."
    )
    scale = ", ".join(f"`{level}`" for level in range(1, levels + 1))
    return f"""<!-- Generated by: graphcontext ratings export -->
# Rating answers

You see questions and answers. Who or what wrote an answer is not shown. {reference} Rate alone, each item on its own,
and give every item exactly one label.

**pairs**: two answers to one question. Label `A` or `B`, whichever you would rather have been given, `tie` where you
see no difference. The order of the two is random.

**ratings**: one answer. Label {scale}: 1 is unhelpful or misleading, {levels} is exemplary. `(no answer)` is rated too.

## The project in Doccano

Two projects of type *Text Classification*, one per file, with *allow single label* on and *share annotations across
all users* off. Make the labels named above, import the file as JSONL (column *text*, label *label*), let each rater
label all of it, export as JSONL: Doccano writes one file per rater.
"""
